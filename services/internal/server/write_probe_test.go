package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
)

// A database that others keep busy takes changes: the node stays ready behind a long import, and while another process has the file.
func TestBusyIsNotFailing(t *testing.T) {
	o := newOutage(t, "")
	long := writeProbeInterval + writeProbeTimeout + time.Second
	stays := func(what string, until <-chan error) {
		t.Helper()
		for {
			select {
			case err := <-until:
				if err != nil {
					t.Fatal(err)
				}
				return
			case <-time.After(50 * time.Millisecond):
				if ok, reason := o.ready(); !ok {
					t.Fatalf("behind %s: %s", what, reason)
				}
			}
		}
	}
	done := make(chan error, 1)
	go func() {
		done <- o.s.store.Write(tenant.System(context.Background()), func(context.Context, *ent.Tx) error { time.Sleep(long); return nil })
	}()
	stays("a long import", done)
	go func() {
		db, err := sql.Open("sqlite3", "file:"+o.s.config.SQLitePath()+"?_busy_timeout=10000")
		if err != nil {
			done <- err
			return
		}
		db.SetMaxOpenConns(1)
		_, err = db.ExecContext(context.Background(), "BEGIN IMMEDIATE")
		time.Sleep(long)
		done <- errors.Join(err, db.Close())
	}()
	stays("another process", done)
	if n := o.s.store.Reader.Setting.Query().Where(setting.NameHasPrefix("write_probe")).CountX(tenant.System(t.Context())); n != 0 {
		t.Errorf("%d probes are left in the database", n)
	}
}

func TestRefusal(t *testing.T) {
	const readOnly, full, away, other = "the database takes no changes: it is read only", "the database takes no changes: the disk is full",
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
