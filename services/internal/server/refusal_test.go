package server

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"
)

func TestRefusal(t *testing.T) {
	const readOnly, full, away, other = "the database accepts no writes: it is read only", "the database accepts no writes: the disk is full",
		"the database cannot be reached", "the database refuses changes; the log says why"
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.DeadlineExceeded, ""},
		{context.Canceled, ""},
		{sqlite3.Error{Code: sqlite3.ErrBusy}, ""},
		{&pgconn.PgError{Code: "55P03"}, ""},
		{&pgconn.PgError{Code: "53300"}, ""},
		{sqlite3.Error{Code: sqlite3.ErrReadonly}, readOnly},
		{&pgconn.PgError{Code: "25006"}, readOnly},
		{sqlite3.Error{Code: sqlite3.ErrFull}, full},
		{syscall.ENOSPC, full},
		{&pgconn.PgError{Code: "57P01"}, away},
		{&pgconn.PgError{Code: "42501"}, other},
		{sqlite3.Error{Code: sqlite3.ErrCorrupt}, other},
	} {
		if got := Refusal(fmt.Errorf("x: %w", c.err)); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
