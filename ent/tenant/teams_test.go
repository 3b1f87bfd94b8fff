package tenant_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"entgo.io/ent/dialect"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/ent/privacy"
	_ "github.com/palisade/palisade/ent/runtime"
	"github.com/palisade/palisade/ent/tenant"
)

var errRecorded = errors.New("recorded")

// recorder is a driver that records the last statement and runs none.
type recorder struct {
	dialect.Driver
	name string
	text string
	args []any
}

func (r *recorder) Dialect() string { return r.name }

func (r *recorder) Query(_ context.Context, query string, args, _ any) error {
	r.text, r.args = query, args.([]any)
	return errRecorded
}

func (r *recorder) Exec(ctx context.Context, query string, args, v any) error {
	return r.Query(ctx, query, args, v)
}

func (r *recorder) Tx(context.Context) (dialect.Tx, error) { return dialect.NopTx(r), nil }

func TestTeams(t *testing.T) {
	ctx := tenant.NewContext(t.Context(), 7)
	if ids, limited := tenant.Teams(ctx); limited || ids != nil || tenant.Visibility(ctx) != "" {
		t.Errorf("without teams: %v %v", ids, limited)
	}
	limited := tenant.WithTeams(ctx, []int64{9, 4})
	if ids, ok := tenant.Teams(limited); !ok || !slices.Equal(ids, []int64{4, 9}) || tenant.Visibility(limited) != "teams[4,9]" {
		t.Errorf("of two teams: %v %v %s", ids, ok, tenant.Visibility(limited))
	}
	none := tenant.WithTeams(ctx, nil)
	if ids, ok := tenant.Teams(none); !ok || len(ids) != 0 || tenant.Visibility(none) != "teams[]" {
		t.Errorf("of no team: %v %v", ids, ok)
	}
	if _, ok := tenant.Teams(tenant.NewContext(limited, 7)); !ok {
		t.Error("naming the deployment again lifts the limit")
	}
	if _, ok := tenant.Teams(tenant.System(limited)); ok {
		t.Error("the server itself is limited")
	}
}

// notLimited lists tables with a project id or finding id that team limits do not apply to: members may see all rows,
// or never read the table.
var notLimited = map[string]string{
	"team_projects":   "readable as its team",
	"tokens":          "for administrators; a token of a project's CI names the project",
	"deliveries":      "for administrators",
	"digest_parts":    "read by the server alone, for the receivers of rules",
	"page_boundaries": "where walks are, under the digest of who walks and what he sees",
	"branch_changes":  "read for the columns that all callers share; their views are limited",
}

// TestTablesOfProjectsAreLimited: every table with a project id or finding id must be limited to the projects of the
// caller's teams.
func TestTablesOfProjectsAreLimited(t *testing.T) {
	ctx := tenant.WithTeams(tenant.NewContext(t.Context(), 7), []int64{4, 9})
	for _, name := range []string{dialect.SQLite, dialect.Postgres} {
		r, found := &recorder{name: name}, 0
		client := reflect.ValueOf(ent.NewClient(ent.Driver(r))).Elem()
		for i := range client.NumField() {
			if !client.Type().Field(i).IsExported() || !client.Field(i).MethodByName("Query").IsValid() {
				continue
			}
			r.text = ""
			query := client.Field(i).MethodByName("Query").Call(nil)[0]
			query.MethodByName("Count").Call([]reflect.Value{reflect.ValueOf(ctx)})
			table := tableIn(r.text)
			if table == "" { // denied: it belongs to the server
				continue
			}
			_, exempt := notLimited[table]
			if limited := strings.Contains(r.text, "team_projects") && table != "team_projects"; limited != (ofProject(table) && !exempt) {
				t.Errorf("%s: %s: limited to the caller's teams: %v", name, table, limited)
			} else if limited {
				found++
			}
		}
		if found < 5 {
			t.Errorf("%s: only %d tables are limited: has the test lost its way?", name, found)
		}
	}
}

// tableIn returns the table that a statement reads.
func tableIn(text string) string {
	_, rest, _ := strings.Cut(text, "FROM ")
	name, _, _ := strings.Cut(rest, " ")
	return strings.Trim(name, "`\"")
}

func ofProject(table string) bool {
	for _, t := range migrate.Tables {
		if t.Name == table {
			return table == "projects" || table == "tags" || slices.ContainsFunc(t.Columns, func(c *migrate.Column) bool {
				return c.Name == "project_id" || c.Name == "finding_id"
			})
		}
	}
	return false
}

// TestChangesAreLimited: updates, deletes and creates are limited like queries.
func TestChangesAreLimited(t *testing.T) {
	ctx := tenant.WithTeams(tenant.NewContext(t.Context(), 7), []int64{4, 9})
	r := &recorder{name: dialect.SQLite}
	client := ent.NewClient(ent.Driver(r))
	for what, change := range map[string]func() error{
		"update":     func() error { return client.Finding.Update().SetSeverity("low").Exec(ctx) },
		"update one": func() error { return client.Finding.UpdateOneID(1).SetSeverity("low").Exec(ctx) },
		"delete":     func() error { _, err := client.Finding.Delete().Exec(ctx); return err },
		"delete one": func() error { return client.Project.DeleteOneID(1).Exec(ctx) },
		"of events":  func() error { _, err := client.FindingEvent.Delete().Exec(ctx); return err },
	} {
		r.text = ""
		if err := change(); !errors.Is(err, errRecorded) || !strings.Contains(r.text, "`team_projects`") || !slices.Contains(r.args, any("[4,9]")) {
			t.Errorf("%s: %v\n%s %v", what, err, r.text, r.args)
		}
	}
	if err := client.Project.Create().SetDeploymentID(7).SetName("a").SetNameKey("a").SetCreatedAt(1).Exec(ctx); !errors.Is(err, privacy.Deny) {
		t.Errorf("create a project: %v", err)
	}
	r.text = ""
	if err := client.ProjectTag.Create().SetDeploymentID(7).SetProjectID(3).SetTagID(1).Exec(ctx); !errors.Is(err, errRecorded) || !strings.Contains(r.text, "FROM `projects`") {
		t.Errorf("create a row of a project: it is not looked up: %v %s", err, r.text)
	}
}
