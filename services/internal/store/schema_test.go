package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"strings"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/store"
)

// TestMigrationsMatchSchema: the files in ent/migrate lead to exactly what ent/schema declares, on both databases.
func TestMigrationsMatchSchema(t *testing.T) {
	for name, c := range map[string]struct{ dialect, database string }{
		"sqlite":   {dialect.SQLite, ""},
		"postgres": {dialect.Postgres, pgtest.NewDatabase(t)},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := store.Open(t.Context(), store.Options{DataDir: t.TempDir(), Database: c.database})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			if _, err := st.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if plan := missingChanges(t.Context(), t, c.dialect, writerOf(st)); plan != "" {
				t.Errorf("ent/schema has changes without a migration; run `make migration NAME=…`:\n%s", plan)
			}
			if _, err := writerOf(st).ExecContext(t.Context(), "DROP INDEX findings_list"); err != nil {
				t.Fatal(err)
			}
			if plan := missingChanges(t.Context(), t, c.dialect, writerOf(st)); !strings.Contains(plan, "findings_list") {
				t.Errorf("the comparison does not see a missing index: %q", plan)
			}
		})
	}
}

// missingChanges is the SQL that would bring the database to ent/schema.
func missingChanges(ctx context.Context, t *testing.T, dialectName string, db *sql.DB) string {
	var plan bytes.Buffer
	err := migrate.NewSchema(entsql.OpenDB(dialectName, db)).WriteTo(ctx, &plan, migrate.WithDropColumn(true), migrate.WithDropIndex(true))
	if err != nil {
		t.Fatal(err)
	}
	var statements []string
	for line := range strings.SplitSeq(plan.String(), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "PRAGMA") && !strings.HasPrefix(line, "--") {
			statements = append(statements, line)
		}
	}
	return strings.Join(statements, "\n")
}

func writerOf(st *store.Store) *sql.DB {
	pools := st.Pools()
	if db, ok := pools["writer"]; ok {
		return db
	}
	return pools["main"]
}
