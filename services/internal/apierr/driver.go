package apierr

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
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
	textTaken    = "a thing of this name exists"
	textDangling = "the change names a thing that does not exist, or removes one that is in use"
)

// fullRetry is when a change may be tried again that found no room on a disk.
const fullRetry = time.Minute

// mapDriver knows the errors of both databases and of a full disk. None of their texts leaves: they name tables and values.
func mapDriver(err error) *Error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return full(err)
	}
	var lite sqlite3.Error
	if errors.As(err, &lite) {
		return mapSQLite(lite, err)
	}
	var post *pgconn.PgError
	if errors.As(err, &post) {
		return mapPostgres(post.Code, err)
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return unavailable(err, textDown)
	}
	if lostConnection(err) {
		return unavailable(err, textDown)
	}
	return nil
}

// lostConnection reports whether a connection ended in the middle of a question, as when PostgreSQL restarts: its driver passes on
// what the network said. What talks to other machines has errors of its own.
func lostConnection(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED)) ||
		errors.Is(err, io.ErrUnexpectedEOF) || chainHas(err, "*pgconn.connLockError")
}

// IsCorrupt reports an error of a SQLite file that is damaged, or is no database at all.
func IsCorrupt(err error) bool {
	var lite sqlite3.Error
	return errors.As(err, &lite) && (lite.Code == sqlite3.ErrCorrupt || lite.Code == sqlite3.ErrNotADB)
}

func mapSQLite(lite sqlite3.Error, err error) *Error {
	if lite.SystemErrno == syscall.ENOSPC {
		return full(err)
	}
	switch lite.Code {
	case sqlite3.ErrFull:
		return full(err)
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return unavailable(err, textBusy)
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

// mapPostgres reads the SQLSTATE, see appendix A of the PostgreSQL manual.
func mapPostgres(state string, err error) *Error {
	switch state {
	case "23505": // unique_violation
		return taken(err)
	case "23503": // foreign_key_violation
		return dangling(err)
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return unavailable(err, textBusy)
	case "53100": // disk_full
		return full(err)
	case "57014": // query_canceled: only our deadline cancels queries
		return DeadlineExceeded(err).(*Error)
	case "22021", "22P05": // character_not_in_repertoire, untranslatable_character
		return newf(codes.InvalidArgument, errorsv1.Reason_REASON_INVALID_ARGUMENT,
			"a text has a character that cannot be stored").WithCause(err)
	}
	// connection exceptions, insufficient resources, operator intervention
	if len(state) == 5 && slices.Contains([]string{"08", "53", "57"}, state[:2]) {
		return unavailable(err, textDown)
	}
	return nil
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
