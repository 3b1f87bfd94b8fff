package projects_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func (c caller) badge(deployment, project int64) string {
	return fmt.Sprintf("/api/projects/v1/deployments/%d/projects/%d/badge", deployment, project)
}

// badgePathOf is the path of the image in an answer.
func badgePathOf(t *testing.T, body string) string {
	t.Helper()
	var answer struct{ Badge struct{ URL string } }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	link, err := url.Parse(answer.Badge.URL)
	if err != nil || len(link.Path) != len("/badges/.svg")+22 {
		t.Fatalf("%v: %s", err, body)
	}
	return link.Path
}

// A badge is off until an administrator makes it. Its URL works for everybody, until the badge is made anew or deleted.
func TestBadge(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedRepositories(t, s)
		client, ctx := projectsv1.NewProjectBadgesServiceClient(s.Conn), s.Context(t, s.Token)
		path := s.badge(s.DeploymentID, 1)
		if body := s.Get(t, path); body != `{}` {
			t.Errorf("before: %s", body)
		}
		first := s.mustDo(t, http.MethodPost, path, `{}`)
		same(t, first)(client.GetProjectBadge(ctx, &projectsv1.GetProjectBadgeRequest{DeploymentId: s.DeploymentID, ProjectId: 1}))
		image := s.Do(t, "", http.MethodGet, badgePathOf(t, first), "")
		if image.Status != http.StatusOK || image.Header.Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(image.Body, "<svg ") ||
			!strings.Contains(image.Body, "Open findings: ") || strings.Contains(image.Body, "acme") {
			t.Errorf("image: %d %v %s", image.Status, image.Header, image.Body)
		}
		second := s.mustDo(t, http.MethodPost, path, `{}`)
		if badgePathOf(t, first) == badgePathOf(t, second) {
			t.Error("a new badge has the old URL")
		}
		if _, err := client.DeleteProjectBadge(ctx, &projectsv1.DeleteProjectBadgeRequest{DeploymentId: s.DeploymentID, ProjectId: 1}); err != nil {
			t.Fatal(err)
		}
		s.mustDo(t, http.MethodDelete, path, "") // nothing to delete
		for _, gone := range []string{badgePathOf(t, second), "/badges/AAAAAAAAAAAAAAAAAAAAAA.svg", "/badges/", "/badges/x.svg"} {
			if image := s.Do(t, "", http.MethodGet, gone, ""); image.Status != http.StatusNotFound {
				t.Errorf("%s: %d %s", gone, image.Status, image.Body)
			}
		}
		if body := s.Get(t, path); body != `{}` {
			t.Errorf("after: %s", body)
		}
	})
}

func TestBadgeRefused(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedRepositories(t, s)
		s.addTeams(t)
		stranger, member := s.AddUser(t, s.Tenant, "sam@acme.test", access.RoleMember), s.AddUser(t, s.Tenant, "lea@acme.test", access.RoleReadOnly)
		rival := s.AddTenant(t, "rival")
		for _, c := range []struct {
			name, token, method string
			deployment, project int64
			want                int
		}{
			{"another deployment", rival.Token, http.MethodPost, s.DeploymentID, 1, http.StatusNotFound},
			{"another deployment's project", rival.Token, http.MethodPost, rival.DeploymentID, 1, http.StatusNotFound},
			{"a member without the team", stranger, http.MethodGet, s.DeploymentID, 1, http.StatusNotFound},
			{"a member who makes one", stranger, http.MethodPost, s.DeploymentID, 1, http.StatusForbidden},
			{"a reader who deletes one", member, http.MethodDelete, s.DeploymentID, 1, http.StatusForbidden},
			{"no project", s.Token, http.MethodGet, s.DeploymentID, 999, http.StatusNotFound},
			{"nobody", "", http.MethodGet, s.DeploymentID, 1, http.StatusUnauthorized},
		} {
			if answer := s.Do(t, c.token, c.method, s.badge(c.deployment, c.project), ""); answer.Status != c.want {
				t.Errorf("%s: %d %s, want %d", c.name, answer.Status, answer.Body, c.want)
			}
		}
		_, err := projectsv1.NewProjectBadgesServiceClient(s.Conn).CreateProjectBadge(s.Context(t, rival.Token),
			&projectsv1.CreateProjectBadgeRequest{DeploymentId: rival.DeploymentID, ProjectId: 1})
		if status.Code(err) != codes.NotFound {
			t.Errorf("over gRPC: %v", err)
		}
	})
}

// Patterns of ignored files replace each other, and an empty list with the mask removes them.
func TestIgnoredFiles(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedRepositories(t, s)
		path := fmt.Sprintf("/api/v1/deployments/%s/projects/acme/Web", s.Slug)
		client, ctx := projectsv1.NewProjectsServiceClient(s.Conn), s.Context(t, s.Token)
		for _, step := range []struct{ body, want string }{
			{`{"ignored_files":["vendor/","*.min.js"]}`, `"ignored_files":["vendor/","*.min.js"]`},
			{`{"primary_branch":"main"}`, `"ignored_files":["vendor/","*.min.js"]`},
			{`{"ignored_files":["docs/**"]}`, `"ignored_files":["docs/**"]`},
		} {
			body := s.mustDo(t, http.MethodPatch, path, step.body)
			if !strings.Contains(body, step.want) {
				t.Errorf("%s: %s, want %s", step.body, body, step.want)
			}
			same(t, s.Get(t, path))(client.GetProject(ctx, &projectsv1.GetProjectRequest{DeploymentSlug: s.Slug, ProjectName: "acme/Web"}))
		}
		repo := s.Get(t, fmt.Sprintf("/api/agent/deployments/%s/repos/1", s.Slug))
		if !strings.Contains(repo, `"ignoredFiles":["docs/**"]`) {
			t.Errorf("the repository: %s", repo)
		}
		if body := s.mustDo(t, http.MethodPatch, path, `{"ignored_files":[]}`); strings.Contains(body, "ignored_files") {
			t.Errorf("removed: %s", body)
		}
		for _, bad := range []string{`[""]`, `[" "]`, `["a\nb"]`, `["a","a"]`, `["` + strings.Repeat("x", 256) + `"]`} {
			if answer := s.Do(t, s.Token, http.MethodPatch, path, `{"ignored_files":`+bad+`}`); answer.Status != http.StatusBadRequest {
				t.Errorf("%s: %d %s", bad, answer.Status, answer.Body)
			}
		}
	})
}
