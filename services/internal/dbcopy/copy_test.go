package dbcopy

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/palisade/palisade/services/internal/newname/nolinks"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
)

func mustRun(t *testing.T, o Options) Result {
	t.Helper()
	result, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range result.Tables {
		if !table.OK {
			t.Errorf("%s: %d rows %s, target %d rows %s", table.Name, table.Rows, table.Checksum, table.TargetRows, table.TargetChecksum)
		}
	}
	if !result.OK {
		t.Fatal("the target is not the same")
	}
	return result
}

// TestRoundTrip: a copy to PostgreSQL and back keeps every value of every table, and the next ids.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 60)
	there := newPostgres(t)
	out := mustRun(t, f.options(there))
	back := Endpoint{SQLite: filepath.Join(t.TempDir(), "new", store.SQLiteFile)}
	in := mustRun(t, Options{From: there, To: back, KeyFile: f.keyFile, BatchRows: 11})
	unlinked := Endpoint{SQLite: filepath.Join(t.TempDir(), "volume without hard links", store.SQLiteFile)}
	err := nolinks.Run(t, syscall.EPERM, func() error {
		_, err := Run(t.Context(), Options{From: there, To: unlinked, KeyFile: f.keyFile, BatchRows: 11})
		return err
	})
	if _, missing := os.Stat(unlinked.SQLite); err != nil || missing != nil {
		t.Errorf("without hard links: %v, %v", err, missing)
	}
	if !slices.Equal(out.Tables, in.Tables) {
		t.Error("the checksums of the copy back differ")
	}
	before, after := dump(t, f.path), dump(t, back.SQLite)
	for i := range before {
		if i >= len(after) || before[i] != after[i] {
			t.Fatalf("line %d of %d/%d\nbefore %.3000s\nafter  %.3000s", i, len(before), len(after), before[i], after[min(i, len(after)-1)])
		}
	}
	if len(before) != len(after) {
		t.Errorf("%d lines before, %d after", len(before), len(after))
	}
	wantNextID(t, there, f.path)
	if _, err := os.Stat(back.stagingDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s still exists: %v", back.stagingDir(), err)
	}
	if _, err := Run(t.Context(), f.options(there)); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a second copy into the same database: %v", err)
	}
	if _, err := Run(t.Context(), Options{From: there, To: back, KeyFile: f.keyFile}); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a second copy into the same file: %v", err)
	}
}

// wantNextID checks that PostgreSQL continues after the highest id that SQLite has ever assigned.
func wantNextID(t *testing.T, e Endpoint, path string) {
	t.Helper()
	sqlite, err := sql.Open("sqlite3", sqliteDSN(path, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer sqlite.Close()
	post, err := sql.Open("pgx", e.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer post.Close()
	for _, table := range []string{"findings", "tokens", "audit_entries"} {
		var last, next int64
		if err := sqlite.QueryRow("SELECT seq FROM sqlite_sequence WHERE name = $1", table).Scan(&last); err != nil {
			t.Fatal(err)
		}
		if err := post.QueryRow("SELECT nextval(pg_get_serial_sequence($1, 'id'))", table).Scan(&next); err != nil {
			t.Fatal(err)
		}
		if next != last+1 {
			t.Errorf("%s: next id %d, want %d", table, next, last+1)
		}
	}
}

// TestResume: a copy that is interrupted repeatedly, anywhere, ends like an uninterrupted one.
func TestResume(t *testing.T) {
	testrun.Deep(t) // kills processes
	t.Parallel()
	f := newFixture(t, 40)
	whole := mustRun(t, f.options(newPostgres(t)))
	there := newPostgres(t)
	back := Endpoint{SQLite: filepath.Join(t.TempDir(), store.SQLiteFile)}
	for _, o := range []Options{f.options(there), {From: there, To: back, KeyFile: f.keyFile, BatchRows: 5}} {
		broken := 0
		for {
			ctx, cancel := context.WithCancel(t.Context())
			left := 1 + rand.IntN(300) + 100*broken
			o.Progress = func(Phase, string, int64, int64) {
				if left--; left == 0 {
					cancel()
				}
			}
			result, err := Run(ctx, o)
			cancel()
			if err != nil {
				if !errors.Is(err, ErrInterrupted) {
					t.Fatalf("%T %v", err, err)
				}
				if broken++; broken > 100 {
					t.Fatal("it does not finish")
				}
				continue
			}
			if !result.OK || !slices.Equal(result.Tables, whole.Tables) || broken > 0 && result.ResumedFrom.IsZero() {
				t.Errorf("%+v", result)
			}
			break
		}
		t.Logf("interrupted %d times", broken)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 10)
	refused := func(o Options, want ...string) {
		t.Helper()
		_, err := Run(t.Context(), o)
		if err == nil {
			t.Errorf("want an error with %q", want)
			return
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("missing %q in: %v", part, err)
			}
		}
	}
	there := newPostgres(t)
	refused(Options{From: there, To: newPostgres(t)}, "pg_dump")
	refused(Options{From: Endpoint{SQLite: f.path}, To: Endpoint{SQLite: "x"}}, "palisade backup")
	refused(Options{From: there, To: Endpoint{SQLite: filepath.Join(t.TempDir(), "other.db")}}, "other.db", "palisade.db")
	stray := Endpoint{SQLite: filepath.Join(t.TempDir(), store.SQLiteFile)}
	if err := os.WriteFile(stray.SQLite+"-wal", []byte("of another database"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(Options{From: there, To: stray}, store.SQLiteFile+"-wal", "move it away")
	o := f.options(there)
	o.KeyFile = filepath.Join(t.TempDir(), "none")
	refused(o, "--key-file")

	open, err := store.Open(t.Context(), store.Options{DataDir: filepath.Dir(f.path)})
	if err != nil {
		t.Fatal(err)
	}
	refused(f.options(there), ErrInUse.Error(), f.path)
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	f.exec(t, "UPDATE river_job SET state = 'running', finalized_at = NULL, kind = 'chore' WHERE id = (SELECT MAX(id) FROM river_job)")
	refused(f.options(there), "1 background jobs", "chore", "--requeue-jobs")
	f.exec(t, "DELETE FROM river_job WHERE state = 'running'")

	f.exec(t, "UPDATE findings SET tool = 'a' || char(0) WHERE id = (SELECT MAX(id) FROM findings)")
	refused(f.options(there), "findings", "tool", "NUL")
	o = f.options(there)
	o.ReplaceText = true
	refused(o, "--replace-text")
	o.To = newPostgres(t)
	if result := mustRun(t, o); result.Replaced != 1 {
		t.Errorf("%d texts replaced, want 1", result.Replaced)
	}
	f.exec(t, "DELETE FROM goose_db_version WHERE version_id = (SELECT MAX(version_id) FROM goose_db_version)")
	refused(f.options(there), "palisade migrate up")
	f.exec(t, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999999999999, 1)")
	refused(f.options(there), "99999999999999")
}

// TestPostgresIsWrittenTo: a PostgreSQL database that any program writes to is rejected as a source.
func TestPostgresIsWrittenTo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 5)
	there := newPostgres(t)
	mustRun(t, f.options(there))
	post, err := sql.Open("pgx", there.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer post.Close()
	tx, err := post.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("DELETE FROM tokens"); err != nil {
		t.Fatal(err)
	}
	back := Options{From: there, To: Endpoint{SQLite: filepath.Join(t.TempDir(), store.SQLiteFile)}, KeyFile: f.keyFile}
	if _, err := Run(t.Context(), back); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "writing") {
		t.Errorf("got %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	mustRun(t, back)
}

// TestBatchesOfLargeRows: a batch stays small when large rows follow small ones.
func TestBatchesOfLargeRows(t *testing.T) {
	f := newFixture(t, 5)
	f.exec(t, "DELETE FROM settings")
	f.exec(t, "INSERT INTO settings (name, value) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) "+
		"SELECT 'name ' || i, zeroblob(CASE WHEN i <= 100 THEN 1 ELSE 1000000 END) FROM n")
	d, err := openSQLiteSource(t.Context(), Endpoint{SQLite: f.path}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	conn, end, err := d.session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	at := slices.IndexFunc(allTables(), func(t *table) bool { return t.name == "settings" })
	reader := newReader(conn, false, allTables()[at], &normalizer{}, maxBatchRows)
	for total := 0; ; {
		rows, err := reader.next(t.Context(), maxBatchRows)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > 100 || total >= 100 && len(rows) > 2*batchBytes/1000000+1 {
			t.Errorf("%d rows after %d", len(rows), total)
		}
		if total += len(rows); len(rows) == 0 {
			if total != 300 {
				t.Errorf("%d rows, want 300", total)
			}
			return
		}
	}
}

// TestSourceChanged: any change of the source between two runs is detected.
func TestSourceChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 20)
	o := f.options(newPostgres(t))
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(phase Phase, _ string, _, _ int64) {
		if phase == PhaseVerify {
			cancel()
		}
	}
	if _, err := Run(ctx, o); err == nil {
		t.Fatal("it was not interrupted")
	}
	f.exec(t, "UPDATE tokens SET name = name || '!' WHERE id = (SELECT MIN(id) FROM tokens)")
	o.Progress = nil
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrSourceChanged) || !strings.Contains(err.Error(), "tokens") {
		t.Errorf("got %v", err)
	}
}

// TestVerificationSeesTheTarget: a change of the target is detected.
func TestVerificationSeesTheTarget(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 20)
	o := f.options(newPostgres(t))
	post, err := sql.Open("pgx", o.To.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer post.Close()
	changed := false
	o.Progress = func(phase Phase, table string, _, _ int64) {
		if phase == PhaseVerify && !changed {
			changed = true
			if _, err := post.Exec("UPDATE workflows SET name = name || '!' WHERE id = (SELECT MIN(id) FROM workflows)"); err != nil {
				t.Error(err)
			}
		}
	}
	result, err := Run(t.Context(), o)
	if err != nil || result.OK {
		t.Fatalf("%v %v", result.OK, err)
	}
	for _, table := range result.Tables {
		if table.OK == (table.Name == "workflows") {
			t.Errorf("%s: %v", table.Name, table.OK)
		}
	}
}

// TestNoTableIsForgotten: every table is either copied or listed in notCopied.
func TestNoTableIsForgotten(t *testing.T) {
	f := newFixture(t, 2)
	db, err := sql.Open("sqlite3", sqliteDSN(f.path, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	known := map[string]*table{}
	for _, table := range allTables() {
		known[table.name] = table
	}
	for _, line := range lines(t.Context(), t, db, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'", "") {
		name := strings.TrimPrefix(line, ": ")
		if _, left := notCopied[name]; !left && known[name] == nil {
			t.Errorf("table %s is neither copied nor in notCopied", name)
		}
	}
	for name, table := range known {
		var want []string
		for _, line := range lines(t.Context(), t, db, "SELECT name FROM pragma_table_info('"+name+"')", "") {
			want = append(want, strings.TrimPrefix(line, ": "))
		}
		got := table.columnNames()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: columns %v, want %v", name, got, want)
		}
	}
}

// TestLockLost: a copy that has lost its lock is incomplete, and the same command resumes it.
func TestLockLost(t *testing.T) {
	t.Parallel()
	f, there := newFixture(t, 5), newPostgres(t)
	admin, err := sql.Open("pgx", there.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	const holder = "FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
	o, lost := f.options(there), false
	o.Progress = func(phase Phase, _ string, _, _ int64) {
		if lost || phase != PhaseVerify {
			return
		}
		if err := admin.QueryRowContext(t.Context(), "SELECT pg_terminate_backend(pid, 60000) "+holder).Scan(&lost); err != nil || !lost {
			t.Errorf("end the session with the lock: %t, %v", lost, err)
		}
	}
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrLockLost) {
		t.Errorf("got %v, want %v", err, ErrLockLost)
	}
	if result := mustRun(t, f.options(there)); result.ResumedFrom.IsZero() {
		t.Error("the copy started over")
	}
	var locks int
	if err := admin.QueryRowContext(t.Context(), "SELECT COUNT(*) "+holder).Scan(&locks); err != nil || locks != 0 {
		t.Errorf("%d locks are left, %v", locks, err)
	}
}
