package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/testrun"
)

func TestReleaseMemory(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, o Options) {
		st := openMigrated(t, o)
		ctx := tenant.System(t.Context())
		write := func(name string) {
			err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
				// It does not wait for an open transaction.
				if err := st.ReleaseMemory(ctx); err != nil {
					return err
				}
				return tx.Setting.Create().SetName(name).SetValue([]byte("x")).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		write("first")
		before := st.readerDB.Stats().OpenConnections
		if err := st.ReleaseMemory(ctx); err != nil {
			t.Fatal(err)
		}
		if after := st.readerDB.Stats(); after.OpenConnections != before || after.InUse != 0 {
			t.Errorf("%d connections, %d in use: want %d, idle", after.OpenConnections, after.InUse, before)
		}
		write("second")
		if n := st.Reader.Setting.Query().CountX(ctx); n != 2 {
			t.Errorf("%d rows, want 2", n)
		}
	})
}

func TestWaitsForOtherProcesses(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	t.Parallel()
	o := Options{DataDir: t.TempDir()}
	server, command := openMigrated(t, o), openMigrated(t, o)
	ctx := tenant.System(t.Context())
	create := func(st *Store, name string, meanwhile func()) error {
		return st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			meanwhile()
			return tx.Setting.Create().SetName(name).SetValue([]byte("x")).Exec(ctx)
		})
	}
	waited := make(chan error, 1)
	err := create(server, "long", func() {
		go func() { waited <- create(command, "short", func() {}) }()
		time.Sleep(6 * time.Second) // a slow disk: longer than the default timeout of 5 s
	})
	if err := errors.Join(err, <-waited); err != nil {
		t.Error(err)
	}
}
