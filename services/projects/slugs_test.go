package projects_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// A slug that differs by "-" and "_" is another deployment's, except where clients write "_" for "-".
func TestSlugsOfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		s.AddTenant(t, "umbrella-x")
		lower, upper := s.AddTenant(t, "umbrella_x"), s.AddTenant(t, "stark-tools-y")
		number := s.AddTenant(t, fmt.Sprint(upper.DeploymentID)) // its slug is the id of another deployment
		seedProject(t, s, lower.DeploymentID, 501)
		seedProject(t, s, upper.DeploymentID, 502)
		answer := func(of apitest.Tenant, method, path, body string) string {
			got := s.Do(t, of.Token, method, path, body)
			text, _, _ := strings.Cut(got.Body, `,"requestId"`)
			return fmt.Sprintf("%d %s", got.Status, text)
		}
		missing := answer(lower, http.MethodGet, "/api/v1/deployments/nobody/projects", "")
		projects := projectsv1.NewProjectsServiceClient(s.Conn)
		for _, c := range []struct {
			of   apitest.Tenant
			slug string
		}{
			{lower, "umbrella-x"}, {upper, "stark_tools_y"}, {upper, "stark-tools_y"}, {upper, number.Slug},
		} {
			path := "/api/v1/deployments/" + c.slug + "/projects"
			for _, request := range [][3]string{
				{http.MethodGet, path, ""}, {http.MethodGet, path + "/acme/web", ""}, {http.MethodDelete, path + "/acme/web", ""},
				{http.MethodPut, path + "/acme/web/tags", `{"tags":["x"]}`},
			} {
				if got := answer(c.of, request[0], request[1], request[2]); got != missing {
					t.Errorf("%s with the token of %s: %s", request, c.of.Slug, got)
				}
			}
			_, err := projects.DeleteProject(s.Context(t, c.of.Token), &projectsv1.DeleteProjectRequest{DeploymentSlug: c.slug, ProjectName: "acme/web"})
			if status.Code(err) != codes.NotFound {
				t.Errorf("%s with the token of %s: %v", c.slug, c.of.Slug, err)
			}
		}
		repositories := projectsv1.NewRepositoriesServiceClient(s.Conn)
		for _, c := range []struct {
			of    apitest.Tenant
			slug  string
			id    int64
			found bool
		}{
			{upper, "stark-tools-y", 502, true}, {upper, "stark_tools_y", 502, true}, {upper, "stark-tools_y", 502, false},
			{lower, "umbrella_x", 501, true}, {lower, fmt.Sprint(lower.DeploymentID), 501, true},
			{lower, "umbrella-x", 501, false}, {upper, number.Slug, 502, false},
		} {
			got := answer(c.of, http.MethodGet, fmt.Sprintf("/api/agent/deployments/%s/repos/%d", c.slug, c.id), "")
			_, err := repositories.GetRepo(s.Context(t, c.of.Token), &projectsv1.GetRepoRequest{DeploymentSlug: c.slug, RepoId: c.id})
			if c.found != strings.HasPrefix(got, "200 ") || c.found != (err == nil) || !c.found && (got != missing || status.Code(err) != codes.NotFound) {
				t.Errorf("%s with the token of %s: %s; %v", c.slug, c.of.Slug, got, err)
			}
		}
		// Now the slug with "_" is another deployment's.
		s.AddTenant(t, "stark_tools_y")
		if got := answer(upper, http.MethodGet, "/api/agent/deployments/stark_tools_y/repos/502", ""); got != missing {
			t.Errorf("an exact slug of others: %s", got)
		}
	})
}

func seedProject(t *testing.T, s caller, deploymentID, id int64) {
	t.Helper()
	err := s.Store.Write(tenant.NewContext(t.Context(), deploymentID), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Project.Create().SetID(id).SetName("acme/web").SetNameKey("acme/web").SetCreatedAt(store.Now()).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}
