package deployments_test

import (
	"context"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/ent/tenant"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
)

// TestDependencyQueryIsOn: scanners ask about dependencies unless an administrator turned that off. The migration finds
// in the audit trail who did.
func TestDependencyQueryIsOn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		if body := s.admin(t, http.MethodGet, s.of(""), ""); !strings.Contains(body, `"has_dependency_query":true`) {
			t.Errorf("a new deployment: %s", body)
		}
		answer, err := deploymentsv1.NewDeploymentServiceClient(s.Conn).GetDeploymentByToken(s.Context(t, s.Token), &deploymentsv1.GetDeploymentByTokenRequest{})
		if err != nil || !answer.GetDeployment().GetHasDependencyQuery() {
			t.Errorf("over gRPC: %v, %v", answer, err)
		}
		s.admin(t, http.MethodPost, s.of("/has_dependency_query"), `{"hasDependencyQuery":false}`)
		s.AddTenant(t, "umbrella")
		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			ctx = tenant.System(ctx)
			if err := tx.Deployment.Update().Where(deployment.Slug("umbrella")).SetDependencyQuery(false).Exec(ctx); err != nil {
				return err
			}
			return s.Store.Exec(ctx, tx, s.migration(t, "_dependency_query.sql"))
		})
		for slug, want := range map[string]bool{"acme": false, "umbrella": true} {
			if got := s.Store.Reader.Deployment.Query().Where(deployment.Slug(slug)).OnlyX(s.System(t)).DependencyQuery; got != want {
				t.Errorf("after the migration %s has %t, want %t", slug, got, want)
			}
		}
	})
}

// migration returns the statements of a migration, by the end of its name.
func (s caller) migration(t *testing.T, end string) string {
	t.Helper()
	dir := "sqlite"
	if s.Store.Postgres() {
		dir = "postgres"
	}
	names, err := fs.Glob(migrate.Files, dir+"/*"+end)
	if err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	text, err := fs.ReadFile(migrate.Files, names[0])
	if err != nil {
		t.Fatal(err)
	}
	up, _, _ := strings.Cut(string(text), "-- +goose Down")
	return up
}
