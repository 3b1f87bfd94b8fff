package apierr_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"entgo.io/ent/privacy"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

// secret is part of every raw error below and must never be in a status.
const secret = "hunter2"

var mappings = map[string]struct {
	err    error
	code   codes.Code
	reason string
	http   int
	text   string
}{
	"own error":               {apierr.NotFound("no project %q", "a"), codes.NotFound, "NOT_FOUND", 404, `no project "a"`},
	"own error, wrapped":      {fmt.Errorf(secret+": %w", apierr.Conflict("stale")), codes.Aborted, "CONFLICT", 409, "stale"},
	"own error, joined":       {errors.Join(errors.New(secret), apierr.NotFound("no")), codes.NotFound, "NOT_FOUND", 404, "no"},
	"migrated":                {apierr.New(codes.FailedPrecondition, errorsv1.Reason_REASON_DEPLOYMENT_MIGRATED, "moved"), codes.FailedPrecondition, "DEPLOYMENT_MIGRATED", 410, "moved"},
	"stale":                   {fmt.Errorf(secret+": %w", apierr.Stale("v2", "not v1")), codes.Aborted, "CONFLICT", 409, "not v1"},
	"precondition required":   {apierr.PreconditionRequired("If-Match?"), codes.FailedPrecondition, "PRECONDITION_REQUIRED", 428, "If-Match?"},
	"deadline":                {fmt.Errorf(secret+": %w", context.DeadlineExceeded), codes.DeadlineExceeded, "DEADLINE_EXCEEDED", 504, "the request took longer than allowed"},
	"cancelled":               {context.Canceled, codes.Canceled, "CANCELLED", 499, "the caller went away"},
	"too large":               {&http.MaxBytesError{Limit: 5}, codes.ResourceExhausted, "BODY_TOO_LARGE", 413, "the body must have at most 5 bytes"},
	"status by gRPC":          {status.Error(codes.Unimplemented, "unknown service x"), codes.Unimplemented, "NOT_IMPLEMENTED", 501, "unknown service x"},
	"status of a raw error":   {status.Error(codes.Unknown, secret), codes.Internal, "INTERNAL", 500, "internal error"},
	"status internal":         {status.Error(codes.Internal, secret), codes.Internal, "INTERNAL", 500, "internal error"},
	"status unavailable":      {status.Error(codes.Unavailable, secret), codes.Unavailable, "UNAVAILABLE", 503, "the server cannot answer now: try again"},
	"message too large":       {status.Error(codes.ResourceExhausted, "grpc: received message larger than max (9 vs. 4)"), codes.ResourceExhausted, "BODY_TOO_LARGE", 413, "grpc: received message larger than max (9 vs. 4)"},
	"no rows":                 {fmt.Errorf("%w", sql.ErrNoRows), codes.NotFound, "NOT_FOUND", 404, "not found"},
	"ent: deny":               {fmt.Errorf(secret+": %w", privacy.Deny), codes.PermissionDenied, "PERMISSION_DENIED", 403, "this is not allowed"},
	"bad connection":          {driver.ErrBadConn, codes.Unavailable, "UNAVAILABLE", 503, "the database cannot be reached: try again"},
	"sqlite: busy":            {fmt.Errorf("x: %w", sqlite3.Error{Code: sqlite3.ErrBusy}), codes.Unavailable, "UNAVAILABLE", 503, "the database is busy: try again"},
	"sqlite: unique":          {sqlite3.Error{Code: sqlite3.ErrConstraint, ExtendedCode: sqlite3.ErrConstraintUnique}, codes.AlreadyExists, "ALREADY_EXISTS", 409, "a thing of this name exists"},
	"sqlite: foreign key":     {sqlite3.Error{Code: sqlite3.ErrConstraint, ExtendedCode: sqlite3.ErrConstraintForeignKey}, codes.FailedPrecondition, "FAILED_PRECONDITION", 400, "the change names a thing that does not exist, or removes one that is in use"},
	"sqlite: full":            {fmt.Errorf(secret+": %w", sqlite3.Error{Code: sqlite3.ErrFull}), codes.ResourceExhausted, "STORAGE_FULL", 507, "the server's disk has no room for this change: its administrator has to make room"},
	"sqlite: no space":        {sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.ENOSPC}, codes.ResourceExhausted, "STORAGE_FULL", 507, "the server's disk has no room for this change: its administrator has to make room"},
	"file: no space":          {&fs.PathError{Op: secret, Path: secret, Err: syscall.ENOSPC}, codes.ResourceExhausted, "STORAGE_FULL", 507, "the server's disk has no room for this change: its administrator has to make room"},
	"postgres: disk full":     {&pgconn.PgError{Code: "53100", Message: secret}, codes.ResourceExhausted, "STORAGE_FULL", 507, "the server's disk has no room for this change: its administrator has to make room"},
	"postgres: unique":        {&pgconn.PgError{Code: "23505", Message: secret}, codes.AlreadyExists, "ALREADY_EXISTS", 409, "a thing of this name exists"},
	"postgres: serialization": {&pgconn.PgError{Code: "40001", Message: secret}, codes.Unavailable, "UNAVAILABLE", 503, "the database is busy: try again"},
	"postgres: cancelled":     {&pgconn.PgError{Code: "57014", Message: secret}, codes.DeadlineExceeded, "DEADLINE_EXCEEDED", 504, "the request took longer than allowed"},
	"postgres: shutdown":      {&pgconn.PgError{Code: "57P01", Message: secret}, codes.Unavailable, "UNAVAILABLE", 503, "the database cannot be reached: try again"},
	"postgres: starting":      {&pgconn.PgError{Code: "57P03", Message: secret}, codes.Unavailable, "UNAVAILABLE", 503, "the database cannot be reached: try again"},
	"postgres: 08":            {&pgconn.PgError{Code: "08006", Message: secret}, codes.Unavailable, "UNAVAILABLE", 503, "the database cannot be reached: try again"},
	"connection reset":        {fmt.Errorf("x: %w", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), codes.Unavailable, "UNAVAILABLE", 503, "the database cannot be reached: try again"},
	"connection ended":        {fmt.Errorf("x: %w", io.ErrUnexpectedEOF), codes.Unavailable, "UNAVAILABLE", 503, "the database cannot be reached: try again"},
	"postgres: NUL":           {&pgconn.PgError{Code: "22021", Message: secret}, codes.InvalidArgument, "INVALID_ARGUMENT", 400, "a text has a character that cannot be stored"},
	"postgres: other":         {&pgconn.PgError{Code: "42P01", Message: secret}, codes.Internal, "INTERNAL", 500, "internal error"},
	"raw":                     {errors.New(secret), codes.Internal, "INTERNAL", 500, "internal error"},
}

func TestMap(t *testing.T) {
	for name, test := range mappings {
		t.Run(name, func(t *testing.T) {
			mapped := apierr.Map(test.err)
			st, ok := status.FromError(mapped)
			if !ok || st.Code() != test.code || st.Message() != test.text {
				t.Errorf("status %v", st)
			}
			if got := apierr.ReasonName(apierr.ReasonOf(mapped)); got != test.reason {
				t.Errorf("reason %s", got)
			}
			// The reason must be in the status, which is all that crosses a socket.
			if got := apierr.ReasonName(apierr.ReasonOf(st.Err())); got != test.reason {
				t.Errorf("reason %s in the status", got)
			}
			if got := apierr.HTTPStatus(mapped); got != test.http {
				t.Errorf("HTTP %d", got)
			}
			if strings.Contains(st.Proto().String(), secret) || strings.Contains(string(apierr.HTTPBody(mapped, "")), secret) {
				t.Errorf("a raw text leaves: %v", st.Proto())
			}
			if test.text == "internal error" && !errors.Is(mapped, test.err) {
				t.Error("the cause is lost to the log")
			}
			if again := apierr.Map(mapped); again != mapped {
				t.Errorf("mapping again changed it to %v", again)
			}
		})
	}
	if apierr.Map(nil) != nil {
		t.Error("nil became an error")
	}
}

// TestStaleSaysTheVersion: the version survives a socket, and the body of every other error has no such key.
func TestStaleSaysTheVersion(t *testing.T) {
	sent, _ := status.FromError(apierr.Stale("sha256:ab", "changed"))
	if body := string(apierr.HTTPBody(sent.Err(), "r-1")); !strings.HasSuffix(body, `"requestId":"r-1","state_version":"sha256:ab"}`) {
		t.Error(body)
	}
	if body := string(apierr.HTTPBody(apierr.Conflict("changed"), "")); strings.Contains(body, "state_version") {
		t.Error(body)
	}
}

// TestMapNeverLeaks: no text of a raw error leaks, with any wrapping.
func TestMapNeverLeaks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		err := errors.New(secret)
		for range rapid.IntRange(0, 4).Draw(t, "depth") {
			switch rapid.IntRange(0, 3).Draw(t, "wrap") {
			case 0:
				err = fmt.Errorf("%s: %w", secret, err)
			case 1:
				err = errors.Join(err, errors.New(secret))
			case 2:
				err = status.Error(codes.Code(rapid.SampledFrom([]int{2, 13, 14, 15, 4, 1}).Draw(t, "code")), err.Error())
			case 3:
				err = &pgconn.PgError{Message: err.Error(), Code: rapid.StringMatching(`[0-9A-Z]{5}`).Draw(t, "state")}
			}
		}
		if body := string(apierr.HTTPBody(err, "")); strings.Contains(body, secret) {
			t.Fatalf("%v became %s", err, body)
		}
	})
}

// TestOverSocket: an error that arrives as a plain status, as from a client connection, keeps its reason and details.
func TestOverSocket(t *testing.T) {
	sent := apierr.RateLimited(3 * time.Second)
	st, _ := status.FromError(sent)
	received := status.FromProto(st.Proto()).Err()
	want := `{"error":"too many requests: try again in 3 s","message":"too many requests: try again in 3 s","code":"RATE_LIMITED",` +
		`"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}],"requestId":"r"}`
	if got := string(apierr.HTTPBody(received, "r")); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTextsThatAreNotUTF8(t *testing.T) {
	err := apierr.InvalidArgument("a\xff", "a\xff is bad")
	st, _ := status.FromError(err)
	if st.Code() != codes.InvalidArgument || len(st.Details()) != 2 {
		t.Errorf("%v", st)
	}
}
