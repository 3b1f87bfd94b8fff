package dbcopy

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// fixture is a SQLite database with random rows in every table.
type fixture struct {
	path, keyFile string
	seed          uint64
}

// newFixture inserts about this number of rows into each table.
func newFixture(t *testing.T, rows int) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{path: filepath.Join(dir, store.SQLiteFile), keyFile: filepath.Join(dir, keyName), seed: rand.Uint64()}
	t.Logf("seed %d", f.seed)
	st, err := store.Open(t.Context(), store.Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := secret.OpenFor(t.Context(), st, f.keyFile); err != nil {
		t.Fatal(err)
	}
	_, writer := st.DB()
	g := &generator{rand.New(rand.NewPCG(f.seed, 1))}
	for _, table := range allTables() {
		g.fill(t, writer, table, rows)
	}
	if _, err := writer.ExecContext(t.Context(), "UPDATE sqlite_sequence SET seq = seq + 1000 WHERE name = 'findings'"); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

// exec changes the database without the knowledge of the copy.
func (f *fixture) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite3", sqliteDSN(f.path, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) options(to Endpoint) Options {
	return Options{From: Endpoint{SQLite: f.path}, To: to, KeyFile: f.keyFile, BatchRows: 7}
}

func newPostgres(t *testing.T) Endpoint { return Endpoint{Postgres: pgtest.NewDatabase(t)} }

// generator generates random rows.
type generator struct{ *rand.Rand }

func (g *generator) fill(t *testing.T, db *sql.DB, table *table, rows int) {
	t.Helper()
	nullable := nullableColumns(t, db, table.name)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	id := int64(1)
	for range rows/2 + g.IntN(rows) {
		id += 1 + int64(g.IntN(3)*g.IntN(50))
		row := make([]any, len(table.columns))
		for i, c := range table.columns {
			switch {
			case c.name == "id":
				row[i] = id
			case nullable[c.name] && g.IntN(4) == 0:
			default:
				row[i] = g.value(&table.columns[i])
			}
		}
		g.keepRules(table, row)
		if err := insertSQLite(t.Context(), tx, table, [][]any{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// keepRules sets the columns that the job queue's constraints check.
func (g *generator) keepRules(table *table, row []any) {
	if table.name != "river_job" {
		return
	}
	states := []string{"available", "cancelled", "completed", "discarded", "pending", "retryable", "scheduled"}
	state := states[g.IntN(len(states))]
	for i, c := range table.columns {
		switch c.name {
		case "state":
			row[i] = state
		case "finalized_at":
			row[i] = nil
			if strings.HasSuffix(state, "ed") && state != "scheduled" {
				row[i] = g.time()
			}
		case "priority", "max_attempts", "attempt":
			row[i] = int64(1 + g.IntN(4))
		case "unique_states":
			row[i] = int64(g.IntN(256))
		case "queue", "kind":
			row[i] = "default"
		case "attempted_by", "tags":
			row[i] = `["node-1","ü"]`
		case "errors":
			row[i] = `[{"at":"2026-01-01T00:00:00Z","attempt":1},{"error":"x"}]`
		}
	}
}

func (g *generator) value(c *column) any {
	switch c.kind {
	case kindInt:
		return []int64{0, 1, -1, g.Int64(), -g.Int64(), int64(g.IntN(1000))}[g.IntN(6)] + g.Int64N(1<<40)
	case kindInt32:
		return int64(int32(g.Uint32()))
	case kindBool:
		return g.IntN(2) == 0
	case kindFloat:
		return []float64{0, 1, 1e300, 1.0 / 3, -2.5, g.NormFloat64()}[g.IntN(6)]
	case kindBytes:
		least := 0
		if strings.HasSuffix(c.name, "hash") || c.name == "unique_key" { // unique in practice, like texts
			least = 8
		}
		out := make([]byte, least+g.IntN(300))
		for i := range out {
			out[i] = byte(g.Uint32())
		}
		return out
	case kindJSON, kindRawJSON:
		return g.json(3)
	case kindTime:
		return g.time()
	}
	return g.text()
}

func (g *generator) time() time.Time {
	return time.UnixMilli(g.Int64N(2_000_000_000_000)).UTC()
}

// text is unique in practice, so that unique indexes accept it.
func (g *generator) text() string {
	const letters = "abc äöü\t\"'\\\n€𝄞%_"
	all := []rune(letters)
	var b strings.Builder
	for range g.IntN(20) {
		b.WriteRune(all[g.IntN(len(all))])
	}
	return b.String() + fmt.Sprintf("%x", g.Uint64())
}

func (g *generator) json(depth int) string {
	text, err := json.Marshal(g.jsonValue(depth))
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (g *generator) jsonValue(depth int) any {
	switch n := g.IntN(9); {
	case n < 2 && depth > 0:
		out := map[string]any{}
		for range g.IntN(4) {
			out[g.text()] = g.jsonValue(depth - 1)
		}
		return out
	case n < 4 && depth > 0:
		out := []any{}
		for range g.IntN(4) {
			out = append(out, g.jsonValue(depth-1))
		}
		return out
	case n == 4:
		return nil
	case n == 5:
		return g.IntN(2) == 0
	case n == 6:
		return []any{0, -1, 1 << 60, 1e-7, 1.5, 1e22, 123456.75, g.NormFloat64() * 1e100}[g.IntN(8)]
	}
	return g.text() + "<&>"
}

func nullableColumns(t *testing.T, db *sql.DB, table string) map[string]bool {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT name FROM pragma_table_info($1) WHERE "notnull" = 0`, table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		out[name] = true
	}
	return out
}

// dump returns all rows as SQLite writes them, except JSON, because PostgreSQL does not keep its bytes.
func dump(t *testing.T, path string) []string {
	t.Helper()
	db, err := sql.Open("sqlite3", sqliteDSN(path, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out []string
	for _, table := range allTables() {
		var parts []string
		for _, c := range table.columns {
			name := quote(c.name)
			if c.kind == kindJSON {
				name += " IS NULL"
			}
			parts = append(parts, "typeof("+name+") || quote("+name+")")
		}
		out = append(out, lines(t.Context(), t, db, "SELECT "+strings.Join(parts, " || ' ' || ")+" FROM "+quote(table.name)+" ORDER BY "+quote(table.key), table.name)...)
	}
	return append(out, lines(t.Context(), t, db, "SELECT name || ' ' || seq FROM sqlite_sequence WHERE name <> 'river_job' ORDER BY name", "sequence")...)
}

func lines(ctx context.Context, t *testing.T, db *sql.DB, query, label string) []string {
	t.Helper()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		out = append(out, label+": "+line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
