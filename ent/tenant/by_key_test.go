package tenant_test

import (
	"strings"
	"testing"

	"entgo.io/ent/dialect"

	"github.com/palisade/palisade/ent"
	_ "github.com/palisade/palisade/ent/runtime"
	"github.com/palisade/palisade/ent/tenant"
)

// TestChangesByKeyStayInsideTheWalls: a change of rows that are named by their keys checks the deployment and, for
// limited callers, the teams. Only the form of the condition differs.
func TestChangesByKeyStayInsideTheWalls(t *testing.T) {
	for _, name := range []string{dialect.SQLite, dialect.Postgres} {
		r := &recorder{name: name}
		db := ent.NewClient(ent.Driver(r))
		ctx := tenant.ByKey(tenant.NewContext(t.Context(), 7))
		_ = db.Finding.Update().SetStatus("open").Exec(ctx) // nothing is run
		if !strings.Contains(r.text, "deployment_id") || !strings.Contains(r.text, "+") || len(r.args) == 0 || r.args[len(r.args)-1] != int64(7) {
			t.Errorf("%s: %s %v", name, r.text, r.args)
		}
		plain := &recorder{name: name}
		_ = ent.NewClient(ent.Driver(plain)).Finding.Update().SetStatus("open").Exec(tenant.WithTeams(tenant.NewContext(t.Context(), 7), []int64{4}))
		_ = db.Finding.Update().SetStatus("open").Exec(tenant.WithTeams(ctx, []int64{4}))
		if got, want := strings.Count(r.text, "team_projects"), strings.Count(plain.text, "team_projects"); got != want {
			t.Errorf("%s: teams are looked at %d times, want %d: %s", name, got, want, r.text)
		}
	}
}
