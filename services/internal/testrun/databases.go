package testrun

import (
	"os"
	"strings"
	"testing"
)

// The databases that tests run on. They are the names of subtests, too.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// only is the one database of this run, or "" for both. `make test` runs most packages twice: with the race detector on
// SQLite, and without it on PostgreSQL.
var only = os.Getenv("TESTRUN_DATABASE")

func init() {
	if only != "" && only != SQLite && only != Postgres {
		panic("TESTRUN_DATABASE is " + only + ", want " + SQLite + " or " + Postgres)
	}
}

// On reports whether tests that run on both databases are to run on this one.
func On(database string) bool { return only == "" || only == database }

// SkipRepeated leaves out a test that is not one of both databases, in the run that repeats those on PostgreSQL.
func SkipRepeated(t testing.TB) {
	t.Helper()
	if only == Postgres && !strings.Contains(t.Name(), "/"+Postgres) {
		t.Skip("runs beside the tests on SQLite")
	}
}
