package server_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/testrun"
)

// A busy database still accepts writes: the node stays ready during a long import, and while another process locks the
// file.
func TestBusyIsNotFailing(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	o := newOutage(t, "")
	long := *server.WriteProbeInterval + server.WriteProbeTimeout + time.Second
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
		done <- o.s.Store().Write(tenant.System(context.Background()), func(context.Context, *ent.Tx) error { time.Sleep(long); return nil })
	}()
	stays("a long import", done)
	go func() {
		db, err := sql.Open("sqlite3", "file:"+o.s.Config().SQLitePath()+"?_busy_timeout=10000")
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
	if n := o.s.Store().Reader.Setting.Query().Where(setting.NameHasPrefix("write_probe")).CountX(tenant.System(t.Context())); n != 0 {
		t.Errorf("%d probes are left in the database", n)
	}
}
