package projects_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// v2 is a path below the projects of version 2.
func (c caller) v2(more string, args ...any) string {
	return fmt.Sprintf("/api/v2/deployments/%d/projects", c.DeploymentID) + fmt.Sprintf(more, args...)
}

func TestProjectsV2(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedRepositories(t, s)
		s.addTeams(t)
		client, ctx := projectsv1.NewProjectsV2ServiceClient(s.Conn), s.Context(t, s.Token)

		list := s.mustDo(t, http.MethodPost, s.v2("/list"), `{}`)
		apitest.Golden(t, "list_v2", list)
		same(t, list)(client.ListProjectsV2(ctx, &projectsv1.ListProjectsV2Request{DeploymentId: s.DeploymentID}))
		one := s.Get(t, s.v2("/1"))
		apitest.Golden(t, "get_v2", one)
		same(t, one)(client.GetProjectV2(ctx, &projectsv1.GetProjectV2Request{DeploymentId: s.DeploymentID, ProjectId: 1}))
		if got := s.Get(t, s.v2("/3")); !strings.Contains(got, `"acme/old"`) {
			t.Errorf("an archived project: %s", got)
		}
		s.requireBranches(t, one)

		for body, want := range map[string]string{
			``: "1 2 4", `{"pageSize":0,"pageToken":"","filter":null}`: "1 2 4", `{"filter":{"names":null,"statuses":null}}`: "1 2 4",
			`{"filter":{"names":["WEB","empt",""]}}`:                                                "1 4",
			`{"filter":{"statuses":["PROJECT_STATUS_SETUP"]}}`:                                      "1 2",
			`{"filter":{"statuses":["PROJECT_STATUS_ACTIVE"]}}`:                                     "1 2",
			`{"filter":{"statuses":["PROJECT_STATUS_NOT_SETUP"]}}`:                                  "4",
			`{"filter":{"statuses":["PROJECT_STATUS_UNINITIALIZED"]}}`:                              "4",
			`{"filter":{"statuses":["PROJECT_STATUS_ARCHIVED"]}}`:                                   "3",
			`{"filter":{"statuses":["PROJECT_STATUS_ARCHIVED","PROJECT_STATUS_UNINITIALIZED"]}}`:    "3 4",
			`{"filter":{"statuses":["PROJECT_STATUS_UNSPECIFIED"]}}`:                                "1 2 4",
			`{"filter":{"assignedToTeams":true}}`:                                                   "1",
			`{"filter":{"assignedToTeams":false}}`:                                                  "2 4",
			`{"filter":{"assignedToTeams":true,"names":["managed"]}}`:                               "",
			`{"pageSize":3000,"filter":{"names":["acme"],"statuses":["PROJECT_STATUS_NOT_SETUP"]}}`: "4",
		} {
			if got, _ := projectsOf(t, s.mustDo(t, http.MethodPost, s.v2("/list"), body)); got != want {
				t.Errorf("%s: %q, want %q", body, got, want)
			}
		}
		for _, body := range []string{`{"pageSize":3001}`, `{"pageSize":-1}`, `{"pageToken":"x"}`, `{"filter":{"statuses":["PROJECT_STATUS_GONE"]}}`} {
			if got := s.Do(t, s.Token, http.MethodPost, s.v2("/list"), body); got.Status != http.StatusBadRequest {
				t.Errorf("%s: %d %s", body, got.Status, got.Body)
			}
		}
		var pages []string
		for token := ""; ; {
			ids, next := projectsOf(t, s.mustDo(t, http.MethodPost, s.v2("/list"), fmt.Sprintf(`{"pageSize":1,"pageToken":%q}`, token)))
			if pages = append(pages, ids); next == "" {
				break
			}
			token = next
		}
		if !slices.Equal(pages, []string{"1", "2", "4"}) {
			t.Errorf("%q", pages)
		}
	})
}

// requireBranches: the ids of branches that a project shows lead to their names, and so does every scanned ref.
func (c caller) requireBranches(t *testing.T, body string) {
	t.Helper()
	var one struct {
		Project struct {
			PrimaryBranchID, DefaultBranchID int64 `json:",string"`
		}
	}
	if err := json.Unmarshal([]byte(body), &one); err != nil {
		t.Fatal(err)
	}
	client := projectsv1.NewProjectsV2ServiceClient(c.Conn)
	branch := c.Get(t, c.v2("/1/branches/%d", one.Project.PrimaryBranchID))
	apitest.Golden(t, "get_branch", branch)
	same(t, branch)(client.GetBranch(c.Context(t, c.Token), &projectsv1.GetBranchRequest{
		DeploymentId: c.DeploymentID, ProjectId: 1, BranchId: one.Project.PrimaryBranchID}))
	if got := c.Get(t, c.v2("/1/branches/%d", one.Project.DefaultBranchID)); !strings.Contains(got, `"refs/heads/main"`) {
		t.Error(got)
	}
	const pull = 1963827294874171 // the hash of project 1 and refs/pull/7/merge
	if got := c.Get(t, c.v2("/1/branches/%d", pull)); !strings.Contains(got, `"refs/pull/7/merge"`) {
		t.Error(got)
	}
	for _, path := range []string{c.v2("/1/branches/7"), c.v2("/2/branches/%d", one.Project.DefaultBranchID), c.v2("/77/branches/%d", one.Project.DefaultBranchID)} {
		if got := c.Do(t, c.Token, http.MethodGet, path, ""); got.Status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
}

// addTeams puts project 1 into a team, and all into a default team.
func (c caller) addTeams(t *testing.T) {
	t.Helper()
	err := c.Store.Write(tenant.NewContext(t.Context(), c.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		now := store.Now()
		team := tx.Team.Create().SetName("web").SetSlug("web").SetCreatedAt(now).SetUpdatedAt(now).SaveX(ctx)
		all := tx.Team.Create().SetName("all").SetSlug("all").SetIsProjectDefault(true).SetCreatedAt(now).SetUpdatedAt(now).SaveX(ctx)
		tx.TeamProject.Create().SetTeamID(team.ID).SetProjectID(1).SetCreatedAt(now).SaveX(ctx)
		for id := range int64(4) {
			tx.TeamProject.Create().SetTeamID(all.ID).SetProjectID(id + 1).SetCreatedAt(now).SaveX(ctx)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func projectsOf(t *testing.T, body string) (ids, token string) {
	t.Helper()
	var page struct {
		Projects  []struct{ ID json.Number }
		PageToken string
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, one := range page.Projects {
		list = append(list, one.ID.String())
	}
	return strings.Join(list, " "), page.PageToken
}

func TestDeleteProjectV2(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		s.Upload(t, "acme/web", "main", []byte(report))
		s.Upload(t, "acme/api", "main", []byte(report))
		web := s.Store.Reader.Project.Query().Where(project.Name("acme/web")).OnlyX(s.System(t))
		client := projectsv1.NewProjectsV2ServiceClient(s.Conn)
		body := s.mustDo(t, http.MethodDelete, s.v2("/%d", web.ID), "")
		apitest.Golden(t, "delete_v2", body)
		if got := s.Do(t, s.Token, http.MethodDelete, s.v2("/%d", web.ID), ""); got.Status != http.StatusNotFound {
			t.Errorf("twice: %d %s", got.Status, got.Body)
		}
		if n := s.Store.Reader.Finding.Query().Where(finding.ProjectID(web.ID)).CountX(s.System(t)) + s.Store.Reader.Scan.Query().Where(scan.ProjectID(web.ID)).CountX(s.System(t)); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		if n := s.Store.Reader.Finding.Query().CountX(s.System(t)); n != 1 {
			t.Errorf("%d findings of the other project, want 1", n)
		}
		api := s.Store.Reader.Project.Query().OnlyX(s.System(t))
		deleted, err := client.DeleteProjectV2(s.Context(t, s.Token), &projectsv1.DeleteProjectV2Request{DeploymentId: s.DeploymentID, ProjectId: api.ID})
		if err != nil || deleted.GetProject().GetName() != "acme/api" {
			t.Errorf("%v, %v", deleted, err)
		}
	})
}

// TestProjectsV2OfOthers: projects of other deployments and teams look as if they did not exist. Only administrators
// delete projects.
func TestProjectsV2OfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedRepositories(t, s)
		s.addTeams(t)
		other := s.AddTenant(t, "umbrella")
		member := s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleMember) // in no team
		for _, path := range []string{"/1", "/1/branches/1963827294874171"} {
			foreign := s.Do(t, other.Token, http.MethodGet, fmt.Sprintf("/api/v2/deployments/%d/projects%s", other.DeploymentID, path), "")
			hidden := s.Do(t, member, http.MethodGet, s.v2("%s", path), "")
			for _, got := range []apitest.Answer{foreign, hidden} {
				if got.Status != http.StatusNotFound || !strings.Contains(got.Body, "project 1 not found") {
					t.Errorf("%s: %d %s", path, got.Status, got.Body)
				}
			}
		}
		for token, deploymentID := range map[string]int64{other.Token: other.DeploymentID, member: s.DeploymentID} {
			body := s.Body(t, token, http.MethodPost, fmt.Sprintf("/api/v2/deployments/%d/projects/list", deploymentID), "{}", 200)
			if ids, _ := projectsOf(t, body); ids != "" {
				t.Errorf("listed: %s", body)
			}
			tags := s.Body(t, token, http.MethodGet, fmt.Sprintf("/api/agent/deployments/%d/repos/by-tag", deploymentID), "", 200)
			if tags != `{"tagIdToRepoIds":{}}` {
				t.Errorf("tags: %s", tags)
			}
			if count := s.Body(t, token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/repos/count", deploymentID), "", 200); count != `{"count":"0"}` {
				t.Errorf("count: %s", count)
			}
		}
		if got := s.Do(t, other.Token, http.MethodDelete, fmt.Sprintf("/api/v2/deployments/%d/projects/1", other.DeploymentID), ""); got.Status != http.StatusNotFound {
			t.Errorf("%d %s", got.Status, got.Body)
		}
		if got := s.Do(t, member, http.MethodDelete, s.v2("/1"), ""); got.Status != http.StatusForbidden {
			t.Errorf("%d %s", got.Status, got.Body)
		}
		client := projectsv1.NewProjectsV2ServiceClient(s.Conn)
		_, err := client.DeleteProjectV2(s.Context(t, other.Token), &projectsv1.DeleteProjectV2Request{DeploymentId: s.DeploymentID, ProjectId: 1})
		if status.Code(err) != codes.NotFound {
			t.Errorf("%v", err)
		}
		if n := s.Store.Reader.Project.Query().CountX(s.System(t)); n != 4 {
			t.Errorf("%d projects, want 4", n)
		}
	})
}
