package store

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	atlas "ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/palisade/palisade/services/internal/pgtest"
)

// onEachDatabase runs a test on an empty database of each kind.
func onEachDatabase(t *testing.T, test func(t *testing.T, o Options)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, Options{DataDir: t.TempDir()})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Options{Database: pgtest.NewDatabase(t)})
	})
}

func open(t testing.TB, o Options) *Store {
	t.Helper()
	st, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// openMigrated opens a store with the newest schema.
func openMigrated(t testing.TB, o Options) *Store {
	t.Helper()
	st := open(t, o)
	if _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

// migrations counts all migrations and the pending ones.
func migrations(t testing.TB, st *Store) (total, pending int) {
	t.Helper()
	list, err := st.Migrations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if m.AppliedAt.IsZero() {
			pending++
		}
	}
	return len(list), pending
}

func TestMigrateIsIdempotent(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, o Options) {
		st := open(t, o)
		total, pending := migrations(t, st)
		if total < 7 || pending != total {
			t.Fatalf("an empty database has %d of %d migrations pending", pending, total)
		}
		applied, err := st.Migrate(t.Context())
		if err != nil || len(applied) != total {
			t.Fatalf("applied %d of %d: %v", len(applied), total, err)
		}
		if last := applied[total-1]; last.Name != "job queue: turns" || last.AppliedAt.IsZero() {
			t.Errorf("the last is %+v", last)
		}
		if _, pending = migrations(t, st); pending != 0 {
			t.Errorf("afterwards %d are pending", pending)
		}
		if applied, err = st.Migrate(t.Context()); err != nil || len(applied) != 0 {
			t.Errorf("the second time %v were applied: %v", applied, err)
		}
		if backup, err := st.MigrateOnStart(t.Context()); err != nil || backup != "" {
			t.Errorf("an up-to-date schema: backup %q, %v", backup, err)
		}
	})
}

// TestPendingQueueMigration: a schema that lacks only a migration of the job queue is outdated too.
func TestPendingQueueMigration(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, o Options) {
		st := open(t, o)
		if _, err := st.MigrateOnStart(t.Context()); err != nil {
			t.Fatal(err)
		}
		migrator, err := st.queueMigrator()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionDown, &rivermigrate.MigrateOpts{MaxSteps: 1}); err != nil {
			t.Fatal(err)
		}
		want := 1
		if !st.Postgres() {
			want++ // rolling back this version drops the table, and with it Palisade's index
		}
		if _, pending := migrations(t, st); pending != want {
			t.Errorf("%d migrations are pending, want %d", pending, want)
		}
		backup, err := st.MigrateOnStart(t.Context())
		if st.Postgres() {
			if !errors.Is(err, ErrPending) {
				t.Errorf("got %v, want %v", err, ErrPending)
			}
			if _, err := st.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else {
			if err != nil || !strings.HasPrefix(backup, st.Location()+".before-") {
				t.Errorf("backup %q, %v", backup, err)
			}
			if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("backup: %v, %v", info, err)
			}
		}
		if _, pending := migrations(t, st); pending != 0 {
			t.Errorf("afterwards %d are pending", pending)
		}
	})
}

// TestNodesMigrateTogether: nodes that start together on an empty database all start; none sees a partial schema.
func TestNodesMigrateTogether(t *testing.T) {
	t.Parallel()
	o := Options{Database: pgtest.NewDatabase(t), MaxOpen: 1}
	var nodes sync.WaitGroup
	for range 4 {
		st := open(t, o)
		nodes.Go(func() {
			if backup, err := st.MigrateOnStart(t.Context()); err != nil || backup != "" {
				t.Errorf("backup %q, %v", backup, err)
			}
		})
	}
	nodes.Wait()
	st := open(t, o)
	if total, pending := migrations(t, st); pending != 0 {
		t.Errorf("%d of %d are pending", pending, total)
	}
	var locks int
	if err := st.readerDB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&locks); err != nil || locks != 0 {
		t.Errorf("%d locks are left: %v", locks, err)
	}
}

// TestCutOffIndexIsBuiltAgain: an interrupted CREATE INDEX CONCURRENTLY leaves an invalid index. The migration
// builds it again.
func TestCutOffIndexIsBuiltAgain(t *testing.T) {
	t.Parallel()
	st := openMigrated(t, Options{Database: pgtest.NewDatabase(t)})
	goBack(t, st, 20261122035752)
	execute(t, st.writerDB, "UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid = 'findings_list_status_severity'::regclass",
		"DELETE FROM goose_db_version WHERE version_id = 20261122035752")
	if _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !one[bool](t, st.readerDB, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'findings_list_status_severity'::regclass") {
		t.Error("the index is not used")
	}
}

// goBack rolls back the migrations after a version.
func goBack(t *testing.T, st *Store, version int64) {
	t.Helper()
	provider, err := st.provider()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.DownTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
}

// TestNewIndexHasStatistics: SQLite assumes that an index without statistics finds few rows when other indexes have
// some. It would then read and sort whole lists.
func TestNewIndexHasStatistics(t *testing.T) {
	t.Parallel()
	st := openMigrated(t, Options{DataDir: t.TempDir()})
	execute(t, st.writerDB, "INSERT INTO settings (name, value) VALUES ('one', 'x')")
	if err := st.RefreshStatistics(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(t, st.writerDB, "UPDATE sqlite_stat1 SET idx = 'another' WHERE idx = 'settings_by_name'")
	goBack(t, st, 20261121203709) // the next migration creates an index
	if applied, err := st.Migrate(t.Context()); err != nil || len(applied) == 0 {
		t.Fatalf("applied %v, %v", applied, err)
	}
	if n := one[int](t, st.readerDB, "SELECT count(*) FROM sqlite_stat1 WHERE idx = 'settings_by_name'"); n != 1 {
		t.Errorf("the index has %d rows of statistics", n)
	}
}

// TestIndexOfTurnsIsMadeLater: a database of the previous version gets the index, also after an interrupted
// attempt.
func TestIndexOfTurnsIsMadeLater(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, o Options) {
		st := openMigrated(t, o)
		execute(t, st.writerDB, "INSERT INTO river_job (kind, args, max_attempts, queue, priority, state) VALUES ('old', '{}', 1, 'default', 1, 'available')")
		execute(t, st.writerDB, "DROP INDEX "+TurnsIndex)
		if st.Postgres() {
			execute(t, st.writerDB, "CREATE INDEX "+TurnsIndex+" ON river_job (id)")
			execute(t, st.writerDB, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass('"+TurnsIndex+"')")
		}
		if _, pending := migrations(t, st); pending != 1 {
			t.Errorf("%d migrations are pending, want 1", pending)
		}
		applied, err := st.Migrate(t.Context())
		if err != nil || len(applied) != 1 || applied[0].Name != "job queue: turns" {
			t.Errorf("applied %+v, %v", applied, err)
		}
		if _, pending := migrations(t, st); pending != 0 {
			t.Errorf("afterwards %d are pending", pending)
		}
	})
}

// TestProcessesMigrateTheQueueTogether: when two processes open the same file at once, only one creates the job
// queue.
func TestProcessesMigrateTheQueueTogether(t *testing.T) {
	t.Parallel()
	o := Options{DataDir: t.TempDir()}
	var processes sync.WaitGroup
	for range 3 {
		st := open(t, o)
		processes.Go(func() {
			if _, err := st.migrateQueue(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	list, err := open(t, o).queueMigrations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if m.AppliedAt.IsZero() {
			t.Errorf("%s is pending", m.Name)
		}
	}
}

// TestMigrationSums: atlas.sum has the checksums of the files. Otherwise `make migration` refuses to write the next
// migration.
func TestMigrationSums(t *testing.T) {
	for _, name := range []string{"sqlite", "postgres"} {
		files, err := sqltool.NewGooseDir("../../../ent/migrate/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := atlas.Validate(files); err != nil {
			t.Errorf("ent/migrate/%s: %v: run make migration-sums", name, err)
		}
	}
}
