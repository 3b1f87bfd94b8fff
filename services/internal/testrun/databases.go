package testrun

import (
	"os"
	"strings"
	"testing"
)

// The databases that tests run on. They are also the names of subtests.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// only is the one database of this run, or "" for both.
var only = os.Getenv("TESTRUN_DATABASE")

func init() {
	if only != "" && only != SQLite && only != Postgres {
		panic("TESTRUN_DATABASE is " + only + ", want " + SQLite + " or " + Postgres)
	}
}

// On reports whether tests of both databases should run on this one.
func On(database string) bool { return only == "" || only == database }

// SkipRepeated skips a test that does not depend on the database, in the run that repeats the others on PostgreSQL.
func SkipRepeated(t testing.TB) {
	t.Helper()
	if only == Postgres && !strings.Contains(t.Name(), "/"+Postgres) {
		t.Skip("runs beside the tests on SQLite")
	}
}
