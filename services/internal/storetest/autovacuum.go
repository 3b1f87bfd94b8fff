package storetest

import (
	"database/sql"
	"testing"
)

// stopAutovacuum changes all tables of the database.
const stopAutovacuum = `DO $$ DECLARE name regclass; BEGIN
	FOR name IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace LOOP
		EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', name);
	END LOOP; END $$`

// StopAutovacuum keeps PostgreSQL from vacuuming and analysing the tables of a database. Servers still refresh
// statistics themselves.
func StopAutovacuum(t testing.TB, db *sql.DB) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), stopAutovacuum); err != nil {
		t.Fatal(err)
	}
}
