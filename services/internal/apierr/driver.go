package apierr

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"
	"google.golang.org/grpc/codes"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
)

const (
	textFull     = "the server's disk has no room for this change: its administrator has to make room"
	textBusy     = "the database is busy: try again"
	textDown     = "the database cannot be reached: try again"
	textReadOnly = "the database accepts no writes now: try again"
	textBroken   = "the database cannot read or write its files now: try again"
	textTaken    = "a thing of this name exists"
	textDangling = "the change names a thing that does not exist, or removes one that is in use"
)

// fullRetry is the retry delay of a change that failed because a disk is full.
const fullRetry = time.Minute

// mapDriver maps the errors of both databases and of a full disk. It hides their texts, which contain names of tables
// and values.
func mapDriver(err error) *Error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return full(err)
	}
	var lite sqlite3.Error
	if errors.As(err, &lite) {
		return mapSQLite(lite, err)
	}
	// Check this before the SQLSTATE: the server may refuse a password or the name of the database, which is not the
	// caller's error.
	if connecting(err) {
		return unavailable(err, textDown)
	}
	if state := SQLState(err); state != "" {
		return mapPostgres(state, err)
	}
	if lostConnection(err) {
		return unavailable(err, textDown)
	}
	return nil
}

// SQLState is the SQLSTATE (five characters) with which PostgreSQL, or a pooler in front of it, refused a statement. It
// is "" for any other error.
func SQLState(err error) string {
	var post *pgconn.PgError
	if errors.As(err, &post) {
		return post.Code
	}
	return ""
}

// connecting reports whether the connection to PostgreSQL failed to open.
func connecting(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect)
}

// lostConnection reports whether a connection broke during a query, as when PostgreSQL or a pooler restarts. The driver
// then passes on the network error. Code that talks to other machines has its own errors.
func lostConnection(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || chainHas(err, "*pgconn.connLockError") {
		return true
	}
	var network *net.OpError
	if !errors.As(err, &network) {
		return false
	}
	var number syscall.Errno
	return network.Op == "read" || network.Op == "write" || errors.As(err, &number)
}

// IsCorrupt reports an error of a SQLite file that is damaged or not a database.
func IsCorrupt(err error) bool {
	var lite sqlite3.Error
	return errors.As(err, &lite) && (lite.Code == sqlite3.ErrCorrupt || lite.Code == sqlite3.ErrNotADB)
}

// IsBusy reports an error of a busy database: a locked SQLite file, a locked row, or no free connection.
func IsBusy(err error) bool {
	var lite sqlite3.Error
	if errors.As(err, &lite) {
		return lite.Code == sqlite3.ErrBusy || lite.Code == sqlite3.ErrLocked
	}
	return slices.Contains([]string{"40001", "40P01", "53300", "55P03"}, SQLState(err))
}

// IsReadOnly reports an error of a database that accepts no writes: a standby, a setting, or a file that is not
// writable.
func IsReadOnly(err error) bool {
	var lite sqlite3.Error
	return errors.As(err, &lite) && lite.Code == sqlite3.ErrReadonly || SQLState(err) == StateReadOnly
}

// RefusesWrites reports an error of a database that cannot write: it is read-only, its disk is full, or its file cannot
// be written. It is false for errors of a transaction, and for a database that is busy or does not answer.
func RefusesWrites(err error) bool {
	var lite sqlite3.Error
	if errors.As(err, &lite) {
		return lite.SystemErrno == syscall.ENOSPC ||
			slices.Contains([]sqlite3.ErrNo{sqlite3.ErrFull, sqlite3.ErrReadonly, sqlite3.ErrIoErr, sqlite3.ErrCantOpen}, lite.Code)
	}
	return IsReadOnly(err) || SQLState(err) == StateDiskFull
}

func mapSQLite(lite sqlite3.Error, err error) *Error {
	if lite.SystemErrno == syscall.ENOSPC {
		return full(err)
	}
	switch lite.Code {
	case sqlite3.ErrFull:
		return full(err)
	case sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrProtocol:
		return unavailable(err, textBusy)
	case sqlite3.ErrReadonly:
		return unavailable(err, textReadOnly)
	case sqlite3.ErrIoErr, sqlite3.ErrCantOpen, sqlite3.ErrNomem:
		return unavailable(err, textBroken)
	case sqlite3.ErrInterrupt:
		return DeadlineExceeded(err).(*Error)
	case sqlite3.ErrConstraint:
		switch lite.ExtendedCode {
		case sqlite3.ErrConstraintUnique, sqlite3.ErrConstraintPrimaryKey:
			return taken(err)
		case sqlite3.ErrConstraintForeignKey:
			return dangling(err)
		}
	}
	return nil
}

// The SQLSTATEs that other packages check, see appendix A of the PostgreSQL manual.
const (
	StateReadOnly      = "25006" // read_only_sql_transaction
	StateNoPrivilege   = "42501" // insufficient_privilege
	StateDiskFull      = "53100" // disk_full
	StateQueryCanceled = "57014" // query_canceled
	// StateProtocol is protocol_violation. PgBouncer uses it for nearly all its own errors: it lost the database, the
	// wait for a connection was too long, or it does not know a setting.
	StateProtocol = "08P01"
)

// mapPostgres maps a SQLSTATE.
func mapPostgres(state string, err error) *Error {
	switch state {
	case "23505": // unique_violation
		return taken(err)
	case "23503": // foreign_key_violation
		return dangling(err)
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return unavailable(err, textBusy)
	case StateDiskFull:
		return full(err)
	case StateReadOnly:
		return unavailable(err, textReadOnly)
	case StateQueryCanceled:
		return mapCanceled(err)
	case "22021", "22P05": // character_not_in_repertoire, untranslatable_character
		return newf(codes.InvalidArgument, errorsv1.Reason_REASON_INVALID_ARGUMENT,
			"a text has a character that cannot be stored").WithCause(err)
	case "0A000", "55000": // feature_not_supported, object_not_in_prerequisite_state: a standby has no unlogged tables
		if serverSays(err, "recovery") {
			return unavailable(err, textReadOnly)
		}
		return nil
	case "25P03", "25P04", "40003": // idle_in_transaction_session_timeout, transaction_timeout, statement_completion_unknown
		return unavailable(err, textDown)
	}
	if len(state) != 5 {
		return nil
	}
	switch state[:2] {
	case "08", "53", "57": // connection exceptions, insufficient resources, operator intervention
		return unavailable(err, textDown)
	case "58": // system errors outside PostgreSQL
		return unavailable(err, textBroken)
	}
	return nil
}

// mapCanceled distinguishes a statement timeout from a statement that an administrator cancelled (pg_cancel_backend).
// Our own deadlines end the connection instead, and are context errors. The text is PostgreSQL's English text; in other
// languages the result is the timeout.
func mapCanceled(err error) *Error {
	if serverSays(err, "due to user request") {
		return unavailable(err, textBusy)
	}
	return DeadlineExceeded(err).(*Error)
}

// serverSays searches PostgreSQL's text, for codes with several meanings.
func serverSays(err error, words string) bool {
	var post *pgconn.PgError
	return errors.As(err, &post) && strings.Contains(post.Message, words)
}

func full(err error) *Error { return StorageFull(fullRetry, textFull).(*Error).WithCause(err) }

func taken(err error) *Error {
	return newf(codes.AlreadyExists, errorsv1.Reason_REASON_ALREADY_EXISTS, textTaken).WithCause(err)
}

func dangling(err error) *Error {
	return newf(codes.FailedPrecondition, errorsv1.Reason_REASON_FAILED_PRECONDITION, textDangling).WithCause(err)
}

// chainHas reports whether err or anything that it wraps has one of the type names, as %T prints them.
func chainHas(err error, names ...string) bool {
	if err == nil {
		return false
	}
	if slices.Contains(names, fmt.Sprintf("%T", err)) {
		return true
	}
	switch wrapped := err.(type) { //nolint:errorlint // walks the chain itself
	case interface{ Unwrap() error }:
		return chainHas(wrapped.Unwrap(), names...)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wrapped.Unwrap(), func(e error) bool { return chainHas(e, names...) })
	}
	return false
}
