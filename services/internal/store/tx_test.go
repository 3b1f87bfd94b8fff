package store

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
)

func TestTxIsTheTransactionOfWrite(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, o Options) {
		st, other := open(t, o), open(t, o)
		if _, err := st.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx := tenant.System(t.Context())
		if _, ok := st.Tx(ctx); ok {
			t.Error("there is a transaction outside of Write")
		}
		var kept *sql.Tx
		broken := errors.New("broken")
		err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			if _, ok := other.Tx(ctx); ok {
				t.Error("another store has this transaction")
			}
			own, ok := st.Tx(ctx)
			if !ok {
				t.Fatal("no transaction")
			}
			kept = own
			if err := tx.Setting.Create().SetName("by ent").SetValue([]byte("x")).Exec(ctx); err != nil {
				return err
			}
			var n int
			if err := own.QueryRowContext(ctx, "SELECT COUNT(*) FROM settings WHERE name = 'by ent'").Scan(&n); err != nil || n != 1 {
				t.Errorf("it sees %d rows, %v", n, err)
			}
			if other.Reader.Setting.Query().ExistX(ctx) {
				t.Error("the row is visible before the commit")
			}
			return broken
		})
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
		if _, err := kept.ExecContext(ctx, "DELETE FROM settings"); !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("after Write it is %v, want %v", err, sql.ErrTxDone)
		}
		if n := st.Reader.Setting.Query().CountX(ctx); n != 0 {
			t.Errorf("%d rows survived the rollback", n)
		}
	})
}

func TestRefreshStatistics(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, o Options) {
		st := openMigrated(t, o)
		ctx := tenant.System(t.Context())
		err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			return tx.Setting.Create().SetName("one").SetValue([]byte("x")).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		schemas := [3]int{}
		for i := range schemas { // the first refresh changes the schema, the second finds nothing to do
			if i > 0 {
				if err := st.RefreshStatistics(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if !st.Postgres() {
				if err := st.readerDB.QueryRowContext(ctx, "PRAGMA schema_version").Scan(&schemas[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !st.Postgres() && (schemas[1] <= schemas[0] || schemas[2] != schemas[1]) {
			t.Errorf("schema versions %v: want that connections reload new statistics, and only then", schemas)
		}
		query := "SELECT stat FROM sqlite_stat1 WHERE tbl = 'settings' LIMIT 1"
		if st.Postgres() {
			query = "SELECT reltuples::text FROM pg_class WHERE relname = 'settings'"
		}
		var statistics string
		if err := st.readerDB.QueryRowContext(ctx, query).Scan(&statistics); err != nil || statistics[0] != '1' {
			t.Errorf("statistics are %q, %v; want statistics of one row", statistics, err)
		}
	})
}

func TestBeforeCommitAndOnEnd(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, o Options) {
		st := openMigrated(t, o)
		ctx := tenant.System(t.Context())
		if _, ok := CurrentTransaction(ctx); ok {
			t.Error("there is a transaction outside of Write")
		}
		broken := errors.New("broken")
		for _, c := range []struct {
			name        string
			inFn, later error
			ran, stored bool
		}{
			{"all is well", nil, nil, true, true},
			{"the function fails", broken, nil, false, false},
			{"the last step fails", nil, broken, true, false},
		} {
			ran, ends := false, []bool(nil)
			err := st.Write(ctx, func(ctx context.Context, _ *ent.Tx) error {
				current, ok := CurrentTransaction(ctx)
				if !ok {
					t.Fatal("no transaction")
				}
				current.OnEnd(func(committed bool) { ends = append(ends, committed) })
				current.BeforeCommit(func(ctx context.Context, tx *ent.Tx) error {
					ran = true
					if own, ok := st.Tx(ctx); !ok || own == nil {
						t.Error("BeforeCommit ran outside the transaction")
					}
					if err := tx.Setting.Create().SetName(c.name).SetValue([]byte("x")).Exec(ctx); err != nil {
						return err
					}
					return c.later
				})
				return c.inFn
			})
			if ran != c.ran || len(ends) != 1 || ends[0] != c.stored || errors.Is(err, broken) == c.stored {
				t.Errorf("%s: ran %v, ended %v, %v", c.name, ran, ends, err)
			}
			if found := st.Reader.Setting.Query().Where(setting.Name(c.name)).ExistX(ctx); found != c.stored {
				t.Errorf("%s: stored %v", c.name, found)
			}
		}
	})
}

func TestOnEndAfterAPanic(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, o Options) {
		st, ended := open(t, o), false
		defer func() {
			if recover() == nil || !ended {
				t.Error("OnEnd was not called for a transaction that panicked")
			}
		}()
		_ = st.Write(t.Context(), func(ctx context.Context, _ *ent.Tx) error {
			current, _ := CurrentTransaction(ctx)
			current.OnEnd(func(committed bool) { ended = !committed })
			panic("broken")
		})
	})
}
