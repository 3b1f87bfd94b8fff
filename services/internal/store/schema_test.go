package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"strings"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"

	atlas "github.com/palisade/palisade/ent/migrate/atlas"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/store"
)

// TestMigrationsMatchSchema: the files in ent/migrate create exactly the schema of ent/schema on both databases.
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

// missingChanges returns the SQL that would change the database to ent/schema.
func missingChanges(ctx context.Context, t *testing.T, dialectName string, db *sql.DB) string {
	var plan bytes.Buffer
	to := &schema.WriteDriver{Driver: entsql.OpenDB(dialectName, db), Writer: &plan}
	m, err := schema.NewMigrate(to, schema.WithDropColumn(true), schema.WithDropIndex(true))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Create(ctx, atlas.Tables...); err != nil {
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

// serverTables belong to the server and not to one deployment, or are the deployments.
var serverTables = map[string]bool{"deployments": true, "settings": true, "signing_keys": true, "users": true,
	// Users sign in before it is known which deployments they use.
	"console_links": true, "sessions": true}

// acrossTenants has the only indexes of tenant tables that do not begin with the deployment. With sharding by
// tenant, the unique ones would become lookup tables that name the shard, and the others would be scanned on each
// shard.
var acrossTenants = map[string]string{
	// Random values in requests, looked up before the deployment is known.
	"tokens_by_hash":         "the credential names the deployment",
	"token_requests_by_key":  "the key is all that a program has before it logs in",
	"projects_by_badge":      "the key in the address of a badge names the project",
	"scm_apps_by_request":    "a code host answers with the request's id only",
	"scm_apps_by_webhook":    "the key in the address of a webhook names the deployment",
	"scm_configs_by_webhook": "the key in the address of a webhook names the deployment",
	// A user may belong to several deployments.
	"memberships_of_user":  "which deployments a user may enter",
	"invitations_of_email": "which deployments a new user was invited to",
	// Another deployment may use the same workspace.
	"chat_installations_of_team": "a token is given back only if no deployment uses it",
	// Background work reads due rows of all deployments.
	"notification_rules_digests": "digests of all deployments are sent",
	"projects_by_next_full_scan": "full scans of all deployments that are due",
	"managed_scans_leased":       "scans whose node has died",
	"automation_runs_by_age":     "old runs of all deployments are deleted",
	"policy_runs_by_age":         "old runs of all deployments are deleted",
	"notification_rules_reports": "rules whose next report is due",
	"deliveries_finished":        "old deliveries to delete",
	"exports_expired":            "expired exports to delete",
	"webhook_events_by_time":     "old events to delete",
	"webhook_receipts_by_time":   "old receipts to delete",
	"workflow_attempts_leased":   "attempts whose worker has died",
	"workflow_runs_finished":     "old runs to delete",
}

// readByID are tables that are read only by primary key.
var readByID = map[string]bool{"ai_task_groups": true}

// TestKeysBeginWithTheTenant: every index and unique key of a tenant table begins with the deployment. One tenant's
// rows are then adjacent, and the tables can be sharded by tenant.
//
// Primary keys are the exception: ids are unique in the whole database, because cursors, events and the queue
// identify rows by id alone. The only request that reads a table in id order is a report, which looks for new
// events of its tenant among all events (see loader.since of package reporting). Such events are few, and an index
// by tenant and id would cost a write for each event.
func TestKeysBeginWithTheTenant(t *testing.T) {
	exceptions := map[string]bool{}
	for _, table := range atlas.Tables {
		first := ""
		if len(table.Columns) > 1 {
			first = table.Columns[1].Name
		}
		if serverTables[table.Name] {
			if first == "deployment_id" {
				t.Errorf("%s has a deployment: it is not a table of the server", table.Name)
			}
			continue
		}
		if first != "deployment_id" {
			t.Errorf("%s has no deployment_id after its id: give it the TenantMixin, or name it in serverTables and say why", table.Name)
			continue
		}
		if len(table.PrimaryKey) != 1 || table.PrimaryKey[0].Name != "id" {
			t.Errorf("%s: the primary key is not the id", table.Name)
		}
		requireTenantFirst(t, table, exceptions)
	}
	for name := range acrossTenants {
		if !exceptions[name] {
			t.Errorf("acrossTenants names %s, which is no longer an index, or begins with the deployment", name)
		}
	}
}

func requireTenantFirst(t *testing.T, table *schema.Table, exceptions map[string]bool) {
	t.Helper()
	for _, column := range table.Columns {
		if column.Unique {
			t.Errorf("%s.%s is unique across tenants: make it a unique index of (deployment_id, %s)", table.Name, column.Name, column.Name)
		}
	}
	first := false
	for _, index := range table.Indexes {
		switch {
		case index.Columns[0].Name == "deployment_id":
			first = true
		case acrossTenants[index.Name] == "":
			t.Errorf("index %s of %s begins with %s: begin it with deployment_id, or name it in acrossTenants and say why", index.Name, table.Name, index.Columns[0].Name)
		default:
			exceptions[index.Name] = true
		}
	}
	if first == readByID[table.Name] {
		t.Errorf("%s: has an index that begins with deployment_id: %t; without one a tenant's query scans the rows of all tenants", table.Name, first)
	}
}
