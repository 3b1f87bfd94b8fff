//go:build unix

package services

import (
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/pgtest"
)

// newRole creates a role without permissions, and returns its name and the URL with which it uses the database.
func newRole(t *testing.T, database string) (role, as string) {
	t.Helper()
	role = "palisade_role_" + strings.ToLower(rand.Text()[:10])
	apitest.OnDatabase(t, database, "CREATE ROLE "+role+" LOGIN")
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return role, u.String()
}

// The doctor finds a role that cannot write and prints the commands that fix it. After these commands it finds nothing.
func TestDoctorOfARoleThatCannotWrite(t *testing.T) {
	database := pgtest.NewCluster(t) // roles belong to a whole cluster
	cfg := apitest.EmptyConfig(t)
	cfg.Database = database
	apitest.StartConfigured(t, cfg)
	role, as := newRole(t, database)
	cfg.Database = as
	look := func(detail string) (fix string) {
		t.Helper()
		c := checkOf(t, cfg, writesCheck)
		if (detail == "") != c.OK || !strings.Contains(c.Detail, detail) {
			t.Errorf("got %+v, want %q", c, detail)
		}
		return c.Fix
	}
	run := func(statements ...string) { t.Helper(); apitest.OnDatabase(t, database, statements...) }
	granted := func(fix string) string { _, statements, _ := strings.Cut(fix, "run: "); return statements }

	run(granted(look("lacks rights on tables: "))) // the printed commands
	look("")
	run("REVOKE INSERT, DELETE ON findings FROM " + role)
	fix := look("findings (INSERT, DELETE)")
	if !strings.Contains(fix, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \"public\" TO \""+role+"\"") {
		t.Errorf("the fix is %s", fix)
	}
	run(granted(fix))
	if c := checkOf(t, cfg, writesCheck); !c.OK || !strings.Contains(c.Detail, "may not create tables") {
		t.Errorf("got %+v", c)
	}
	run("REVOKE USAGE ON SCHEMA public FROM PUBLIC")
	run(granted(look("may use no schema")))
	look("")
	for _, set := range []string{"ROLE " + role, "DATABASE postgres", "ROLE " + role + " IN DATABASE postgres"} {
		run("ALTER " + set + " SET default_transaction_read_only = on")
		fix := granted(look("are read only"))
		if !strings.HasPrefix(strings.ReplaceAll(fix, `"`, ""), "ALTER "+set+" RESET") {
			t.Errorf("ALTER %s is undone by: %s", set, fix)
		}
		run("SET default_transaction_read_only = off", fix)
	}
	look("")
	run("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
	apitest.Eventually(t, "the doctor sees it", func() bool { return !checkOf(t, cfg, writesCheck).OK })
	if fix := look("all transactions are read only"); !strings.Contains(fix, "ALTER SYSTEM RESET") {
		t.Errorf("the fix is %s", fix)
	}
}

// An empty database needs a role that may create its tables.
func TestDoctorOfARoleThatCannotMakeTables(t *testing.T) {
	database := pgtest.NewCluster(t)
	role, as := newRole(t, database)
	apitest.OnDatabase(t, database, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	cfg := apitest.EmptyConfig(t)
	cfg.Database = as
	c := checkOf(t, cfg, writesCheck)
	if c.OK || !strings.Contains(c.Fix, "GRANT CREATE ON SCHEMA \"public\" TO \""+role+"\"") {
		t.Errorf("got %+v", c)
	}
	apitest.OnDatabase(t, database, "GRANT CREATE ON SCHEMA public TO "+role)
	if c := checkOf(t, cfg, writesCheck); !c.OK {
		t.Errorf("got %+v", c)
	}
}

// checkOf is the doctor's check of this name.
func checkOf(t *testing.T, cfg config.Config, name string) Check {
	t.Helper()
	for _, c := range Doctor(t.Context(), cfg) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q", name)
	return Check{}
}
