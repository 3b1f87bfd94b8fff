package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/pgtest"
)

// leastTested is the size above which these tests have indexes rebuilt.
const leastTested = 1 << 20

func execute(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// one answers a query for one value.
func one[T any](t testing.TB, db *sql.DB, query string) (value T) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// waitFor waits until a query says true.
func waitFor(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !one[bool](t, db, query); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never true: %s", query)
		}
	}
}

// appendToGroups fills settings (of a schema) as imports fill findings: each row goes to the end of one of many groups inside the
// index of names. The primary key only grows at its end.
func appendToGroups(t testing.TB, db *sql.DB, schema string) {
	t.Helper()
	execute(t, db, `INSERT INTO `+schema+`.settings (name, value)
		SELECT 'group ' || lpad(g::text, 4, '0') || ' of a setting ' || lpad(n::text, 6, '0'), 'x' FROM generate_series(1, 400) n, generate_series(1, 150) g ORDER BY n, g`,
		"ANALYZE "+schema+".settings")
}

// bloatedStore has one index of a megabyte or more that is half empty, settings_by_name, and one that is full, settings_pkey.
func bloatedStore(t testing.TB) (*Store, string) {
	t.Helper()
	database := pgtest.NewDatabase(t)
	st := openMigrated(t, Options{Database: database})
	appendToGroups(t, st.writerDB, "public")
	return st, database
}

const (
	invalidIndexes = "SELECT count(*) FROM pg_index WHERE NOT indisvalid AND indrelid = 'public.settings'::regclass"
	reindexing     = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query LIKE 'REINDEX%')"
)

func names(rebuilt []RebuiltIndex) (list []string) {
	for _, index := range rebuilt {
		list = append(list, index.Name)
	}
	return list
}

func TestRebuildIndexes(t *testing.T) {
	t.Parallel()
	st, _ := bloatedStore(t)
	db := st.writerDB
	execute(t, db, "CREATE SCHEMA other", "CREATE TABLE other.settings (LIKE public.settings INCLUDING ALL)")
	appendToGroups(t, db, "other")
	for _, invalid := range []string{`settings_by_name_ccnew1 ON public.settings`, `"odd one" ON public.settings`, `settings_name_idx_ccnew ON other.settings`} {
		if _, err := db.ExecContext(t.Context(), "CREATE UNIQUE INDEX CONCURRENTLY "+invalid+" (value)"); err == nil {
			t.Fatal("values are not unique, and yet it could be built")
		}
	}
	before := one[string](t, db, "SELECT md5(string_agg(id || name, ',' ORDER BY name)) FROM settings")
	others := one[string](t, db, "SELECT string_agg(relfilenode::text, ',' ORDER BY oid) FROM pg_class WHERE relnamespace = 'other'::regnamespace")

	if rebuilt, err := st.RebuildIndexes(t.Context()); err != nil || rebuilt != nil {
		t.Errorf("small indexes: rebuilt %v, %v", rebuilt, err)
	}
	rebuilt, err := st.rebuildIndexes(t.Context(), leastTested)
	if err != nil || !slices.Equal(names(rebuilt), []string{"settings_by_name"}) {
		t.Fatalf("rebuilt %v, %v", rebuilt, err)
	}
	if r := rebuilt[0]; float64(r.Before) < mostBloat*float64(r.After) || r.After != one[int64](t, db, "SELECT pg_relation_size('settings_by_name')") {
		t.Errorf("rebuilt %+v", r)
	}
	if again, err := st.rebuildIndexes(t.Context(), leastTested); err != nil || again != nil {
		t.Errorf("again: rebuilt %v, %v", again, err)
	}

	if after := one[string](t, db, "SELECT md5(string_agg(id || name, ',' ORDER BY name)) FROM settings"); after != before {
		t.Error("the rows have changed")
	}
	if after := one[string](t, db, "SELECT string_agg(relfilenode::text, ',' ORDER BY oid) FROM pg_class WHERE relnamespace = 'other'::regnamespace"); after != others {
		t.Error("the indexes of another schema were touched")
	}
	if left := one[string](t, db, "SELECT string_agg(relname, ',' ORDER BY relname) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE NOT indisvalid"); left != "odd one,settings_name_idx_ccnew" {
		t.Errorf("invalid indexes afterwards: %s", left)
	}
	if !one[bool](t, db, "SELECT indisvalid AND indisunique FROM pg_index WHERE indexrelid = 'settings_by_name'::regclass") {
		t.Error("the new index is not valid")
	}
}

// TestRebuildIndexesLeavesFullOnes: an index that was just built is never found bloated, whatever its columns are.
func TestRebuildIndexesLeavesFullOnes(t *testing.T) {
	t.Parallel()
	st := openMigrated(t, Options{Database: pgtest.NewDatabase(t)})
	db := st.writerDB
	execute(t, db, `INSERT INTO settings (name, value) SELECT CASE WHEN n % 3 = 0 THEN repeat('long ', 30) ELSE '' END || n, CASE WHEN n % 2 = 0 THEN ''::bytea ELSE 'odd' END
		FROM generate_series(1, 40000) n`,
		"ALTER TABLE settings ADD rare bigint", "UPDATE settings SET rare = id WHERE id % 50 = 0", "ALTER TABLE settings ADD flag boolean DEFAULT true",
		"CREATE INDEX wide ON settings (id, flag, name, id)", "CREATE INDEX loose ON settings (name, id) WITH (fillfactor = 40)",
		"CREATE INDEX partial ON settings (rare, name, id) WHERE rare IS NOT NULL", "CREATE INDEX equals ON settings (flag, value)", "CREATE INDEX mostly_null ON settings (rare)",
		"CREATE INDEX expression ON settings (lower(name))", "REINDEX TABLE settings", "VACUUM ANALYZE settings")
	if rebuilt, err := st.rebuildIndexes(t.Context(), 1); err != nil || rebuilt != nil {
		t.Errorf("rebuilt %v, %v", rebuilt, err)
	}
}

// heldTable begins a transaction that has written to settings: a rebuild waits for its end.
func heldTable(t *testing.T, st *Store) *sql.Tx {
	t.Helper()
	tx, err := st.writerDB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO settings (name, value) VALUES ('held', 'x')"); err != nil {
		t.Fatal(err)
	}
	return tx
}

// TestRebuildIndexesCutOff: a rebuild that is cancelled takes its half-made copy with it, at once or, where a transaction keeps it
// from that, at the next run.
func TestRebuildIndexesCutOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		left int
	}{{"and cleans up", 0}, {"and cannot clean up", 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			st, _ := bloatedStore(t)
			tx := heldTable(t, st)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := st.rebuildIndexes(ctx, leastTested)
				done <- err
			}()
			waitFor(t, st.writerDB, "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'settings_by_name_ccnew')")
			cancel()
			waitFor(t, st.writerDB, strings.Replace(reindexing, "EXISTS", "NOT EXISTS", 1))
			if c.left == 0 {
				_ = tx.Rollback()
			}
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if n := one[int](t, st.writerDB, invalidIndexes); n != c.left {
				t.Errorf("%d invalid indexes are left, want %d", n, c.left)
			}
			_ = tx.Rollback()
			rebuilt, err := st.rebuildIndexes(t.Context(), leastTested)
			if err != nil || len(rebuilt) != 1 {
				t.Errorf("the next time: rebuilt %v, %v", rebuilt, err)
			}
			if n := one[int](t, st.writerDB, invalidIndexes); n != 0 {
				t.Errorf("%d invalid indexes are left after the next time", n)
			}
		})
	}
}

// TestRebuildIndexesTakesTurns: nodes do not rebuild at the same time, and statistics come later: without that each would wait for the
// other, and PostgreSQL would end the rebuild.
func TestRebuildIndexesTakesTurns(t *testing.T) {
	t.Parallel()
	st, database := bloatedStore(t)
	second := open(t, Options{Database: database})
	tx := heldTable(t, st)
	type result struct {
		rebuilt []RebuiltIndex
		err     error
	}
	results := make(chan result, 2)
	rebuild := func(st *Store) {
		rebuilt, err := st.rebuildIndexes(t.Context(), leastTested)
		results <- result{rebuilt, err}
	}
	go rebuild(st)
	waitFor(t, st.writerDB, reindexing)
	go rebuild(second)
	if err := second.RefreshStatistics(t.Context()); !errors.Is(err, ErrBusy) {
		t.Errorf("statistics meanwhile: %v", err)
	}
	time.Sleep(500 * time.Millisecond) // the second asks for its turn a few times
	select {
	case r := <-results:
		t.Errorf("a rebuild did not wait: %+v", r)
		results <- r
	default:
	}
	_ = tx.Rollback()
	n := 0
	for range 2 {
		r := <-results
		if n += len(r.rebuilt); r.err != nil {
			t.Error(r.err)
		}
	}
	if n != 1 {
		t.Errorf("%d rebuilds of one index", n)
	}
	if err := second.RefreshStatistics(t.Context()); err != nil {
		t.Errorf("statistics: %v", err)
	}
}

// TestRebuildIndexesOfAnotherOwner: the error names the index and says what to do, also where a pooler needs simple statements.
func TestRebuildIndexesOfAnotherOwner(t *testing.T) {
	t.Parallel()
	st, database := bloatedStore(t)
	role := "palisade_test_" + strings.ToLower(rand.Text()[:10])
	execute(t, st.writerDB, "CREATE ROLE "+role, "GRANT SELECT ON settings TO "+role)
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := st.writerDB.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
	guest := open(t, Options{Database: withParameter(t, withParameter(t, database, "role", role), "default_query_exec_mode", "simple_protocol")})
	rebuilt, err := guest.rebuildIndexes(t.Context(), leastTested)
	if err == nil || rebuilt != nil || !strings.Contains(err.Error(), "rebuild index settings_by_name") || !strings.Contains(err.Error(), `OWNER TO), or let its owner run: REINDEX INDEX CONCURRENTLY "public"."settings_by_name"`) {
		t.Errorf("rebuilt %v, %v", rebuilt, err)
	}
	owner := open(t, Options{Database: withParameter(t, database, "default_query_exec_mode", "cache_describe")})
	if rebuilt, err := owner.rebuildIndexes(t.Context(), leastTested); err != nil || len(rebuilt) != 1 {
		t.Errorf("the owner: rebuilt %v, %v", rebuilt, err)
	}
}

func TestRebuildIndexesOnSQLite(t *testing.T) {
	t.Parallel()
	if rebuilt, err := openMigrated(t, Options{DataDir: t.TempDir()}).RebuildIndexes(t.Context()); err != nil || rebuilt != nil {
		t.Errorf("rebuilt %v, %v", rebuilt, err)
	}
}
