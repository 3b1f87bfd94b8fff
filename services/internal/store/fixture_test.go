package store

import (
	"database/sql"
	"testing"
	"time"
)

func execute(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// one returns the single value of a query.
func one[T any](t testing.TB, db *sql.DB, query string) (value T) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// waitFor polls until the query returns true.
func waitFor(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !one[bool](t, db, query); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never true: %s", query)
		}
	}
}
