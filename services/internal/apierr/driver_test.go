package apierr_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/services/internal/apierr"
)

// states are SQLSTATEs with the reason and the HTTP status for the caller.
var states = map[string]string{
	"08000": unavailable, "08001": unavailable, "08003": unavailable, "08004": unavailable, "08006": unavailable, "08007": unavailable, "08P01": unavailable,
	"25006": unavailable, "25P03": unavailable, "25P04": unavailable,
	"40001": unavailable, "40003": unavailable, "40P01": unavailable,
	"53000": unavailable, "53100": "STORAGE_FULL 507", "53200": unavailable, "53300": unavailable, "53400": unavailable,
	"55P03": unavailable,
	"57000": unavailable, "57014": "DEADLINE_EXCEEDED 504", "57P01": unavailable, "57P02": unavailable, "57P03": unavailable, "57P04": unavailable, "57P05": unavailable,
	"58000": unavailable, "58030": unavailable, "58P01": unavailable, "58P02": unavailable,
	"22021": "INVALID_ARGUMENT 400", "22P05": "INVALID_ARGUMENT 400", "23503": "FAILED_PRECONDITION 400", "23505": "ALREADY_EXISTS 409",
	"0A000": internal, "55000": internal, "22P02": internal, "23502": internal, "25P02": internal, "42501": internal, "42601": internal, "42P01": internal, "54000": internal, "XX000": internal, "XX001": internal, "": internal,
}

// codes are SQLite's codes, including extended ones.
var sqliteCodes = map[sqlite3.ErrNo]string{
	sqlite3.ErrBusy: unavailable, sqlite3.ErrLocked: unavailable, sqlite3.ErrReadonly: unavailable, sqlite3.ErrIoErr: unavailable, sqlite3.ErrCantOpen: unavailable,
	sqlite3.ErrProtocol: unavailable, sqlite3.ErrNomem: unavailable, sqlite3.ErrFull: "STORAGE_FULL 507", sqlite3.ErrInterrupt: "DEADLINE_EXCEEDED 504",
	sqlite3.ErrError: internal, sqlite3.ErrCorrupt: internal, sqlite3.ErrNotADB: internal, sqlite3.ErrMisuse: internal, sqlite3.ErrSchema: internal, sqlite3.ErrPerm: internal,
}

// The errors of a pooler and of the driver for a lost connection.
var lost = map[string]error{
	"EOF": io.EOF, "unexpected EOF": io.ErrUnexpectedEOF, "bad connection": driver.ErrBadConn, "returned": sql.ErrConnDone, "closed": pgconn.ErrConnClosed,
	"reset":               &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
	"broken pipe":         &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)},
	"timed out":           &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)},
	"refused":             &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
	"no route":            &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)},
	"closed by us":        &net.OpError{Op: "write", Err: net.ErrClosed},
	"server conn crashed": &pgconn.PgError{Severity: "FATAL", Code: "08P01", Message: "server conn crashed?"},
	"query_wait_timeout":  &pgconn.PgError{Severity: "FATAL", Code: "08P01", Message: "query_wait_timeout"},
	"login timeout":       &pgconn.PgError{Severity: "FATAL", Code: "08P01", Message: "client_login_timeout"},
	"cancelled by others": &pgconn.PgError{Severity: "ERROR", Code: "57014", Message: "canceling statement due to user request"},
	"a standby's tables":  &pgconn.PgError{Code: "0A000", Message: "cannot access temporary or unlogged relations during recovery"},
	"a standby":           &pgconn.PgError{Code: "55000", Message: "recovery is in progress"},
	"in a rollback":       errors.Join(&pgconn.PgError{Code: "57P01"}, fmt.Errorf("roll back: %w", pgconn.ErrConnClosed)),
	"a commit":            fmt.Errorf("commit: %w", io.ErrUnexpectedEOF),
}

const (
	unavailable = "UNAVAILABLE 503"
	internal    = "INTERNAL 500"
)

// got returns what a caller sees. It requires the retry delay and the cause for the log, and that the caller sees
// nothing of the cause.
func got(t *testing.T, err error) string {
	t.Helper()
	err = fmt.Errorf("%s: %w", secret, err)
	mapped := apierr.Map(err)
	st, _ := status.FromError(mapped)
	reason := apierr.ReasonName(apierr.ReasonOf(mapped))
	retry := false
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			retry = info.GetRetryDelay().AsDuration() >= time.Second
		}
	}
	if want := reason == "UNAVAILABLE" || reason == "STORAGE_FULL"; retry != want {
		t.Errorf("%v: %s says when to come back: %t", err, reason, retry)
	}
	if !errors.Is(apierr.Cause(mapped), errors.Unwrap(err)) || strings.Contains(st.Message(), secret) {
		t.Errorf("%v: cause %v, text %q", err, apierr.Cause(mapped), st.Message())
	}
	return fmt.Sprintf("%s %d", reason, apierr.HTTPStatus(mapped))
}

func TestEveryErrorOfADatabase(t *testing.T) {
	for state, want := range states {
		if got := got(t, &pgconn.PgError{Code: state, Message: secret}); got != want {
			t.Errorf("SQLSTATE %s: %s, want %s", state, got, want)
		}
	}
	for code, want := range sqliteCodes {
		for extended := range 20 {
			err := sqlite3.Error{Code: code, ExtendedCode: code.Extend(extended)}
			if got := got(t, err); got != want {
				t.Errorf("%v: %s, want %s", err, got, want)
			}
			if apierr.IsReadOnly(err) != (code == sqlite3.ErrReadonly) || apierr.IsBusy(err) != (code == sqlite3.ErrBusy || code == sqlite3.ErrLocked) {
				t.Errorf("%v: read only %t, busy %t", err, apierr.IsReadOnly(err), apierr.IsBusy(err))
			}
		}
	}
	for what, err := range lost {
		if got := got(t, err); got != unavailable {
			t.Errorf("%s: %s", what, got)
		}
	}
	if err := error(&pgconn.PgError{Code: "25006"}); !apierr.IsReadOnly(err) || apierr.SQLState(fmt.Errorf("x: %w", err)) != "25006" || apierr.SQLState(io.EOF) != "" {
		t.Error("25006 is not known")
	}
}

// A server that refuses connections is unavailable, regardless of the cause. A caller that disconnected is cancelled.
func TestConnectionsThatWereNotMade(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = pgx.Connect(ctx, "postgres://nobody@"+listener.Addr().String()+"/none?sslmode=disable") // the listener never answers
	if got := got(t, err); !errors.Is(err, context.DeadlineExceeded) || got != unavailable {
		t.Errorf("%v: %s", err, got)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err = pgx.Connect(gone, "postgres://nobody@"+listener.Addr().String()+"/none?sslmode=disable")
	if got := got(t, err); got != "CANCELLED 499" {
		t.Errorf("%v: %s", err, got)
	}
	_, err = pgx.Connect(t.Context(), "postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	if got := got(t, err); got != unavailable {
		t.Errorf("%v: %s", err, got)
	}
}
