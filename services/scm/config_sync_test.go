package scm_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// sync runs a synchronization of a configuration and waits for its end.
func (c configCaller) sync(t testing.TB, id int64) string {
	t.Helper()
	before := c.read(t, id).LastSuccessfulSyncAt
	token := c.do(t, http.MethodPost, c.path("/%d/_sync", id), `{"debug":true}`, http.StatusOK)
	apitest.Eventually(t, "the repositories are read", func() bool { return c.read(t, id).LastSuccessfulSyncAt != before })
	return token
}

func (c configCaller) project(t testing.TB, name string) *ent.Project {
	t.Helper()
	row, err := c.Store.Reader.Project.Query().Where(project.Name(name), project.DeploymentID(c.DeploymentID)).Only(c.System(t))
	if err != nil {
		t.Fatalf("project %s: %v", name, err)
	}
	return row
}

func TestSync(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, `,"autoScan":true`)
		s.seedProject(t, "Acme/API", "")
		s.seedProject(t, "acme/mirror", "https://elsewhere.example.com/acme/mirror")
		h.Repositories = []hosttest.Repository{
			{ID: 1, Name: "acme/web", DefaultBranch: "main", Visibility: "private"}, {ID: 2, Name: "acme/api", DefaultBranch: "trunk", Visibility: "public"},
			{ID: 3, Name: "acme/old", DefaultBranch: "master", Visibility: "public", Archived: true}, {ID: 4, Name: "acme/mirror", DefaultBranch: "main", Visibility: "private"},
		}
		h.Repositories = append(h.Repositories, hosttest.Repository{ID: 5, Name: "acme/x" + strings.Repeat("y", 250)}, hosttest.Repository{ID: 6, Name: "acme/nu\x00l", DefaultBranch: "ma\x00in", Visibility: "private"})
		for i := range 201 {
			h.Repositories = append(h.Repositories, hosttest.Repository{ID: int64(100 + i), Name: fmt.Sprintf("acme/service-%d", i), Visibility: "private"})
		}
		token := s.sync(t, id)
		parts := strings.Split(token, ".")
		if len(parts) != 3 {
			t.Fatalf("no JSON Web Token: %s", token)
		}
		if claims, err := base64.RawURLEncoding.DecodeString(parts[1]); err != nil || !strings.Contains(string(claims), `"sub":"scm_sync"`) {
			t.Errorf("claims %s, %v", claims, err)
		}
		jwt := strings.TrimSuffix(strings.TrimPrefix(token, `{"taskTokenJwt":"`), `"}`)
		if got := s.Do(t, jwt, http.MethodGet, s.path(""), ""); got.Status != http.StatusUnauthorized {
			t.Errorf("a task token is a credential: %d", got.Status)
		}
		web := s.project(t, "acme/web")
		if web.URL != h.URL+"/acme/web" || web.DefaultBranch != "refs/heads/main" || web.Visibility != "private" || web.ScmType != "SCM_TYPE_GITHUB_ENTERPRISE" || !web.ManagedFullScan || web.ManagedDiffScan || web.ArchivedAt != nil {
			t.Errorf("new: %+v", web)
		}
		if api := s.project(t, "Acme/API"); api.URL != h.URL+"/acme/api" || api.DefaultBranch != "refs/heads/trunk" || api.Visibility != "public" || api.ManagedFullScan {
			t.Errorf("known: %+v", api)
		}
		if old := s.project(t, "acme/old"); old.ArchivedAt == nil {
			t.Errorf("archived: %+v", old)
		}
		if mirror := s.project(t, "acme/mirror"); mirror.URL != "https://elsewhere.example.com/acme/mirror" || mirror.ScmType != "SCM_TYPE_UNKNOWN" {
			t.Errorf("of another host: %+v", mirror)
		}
		for name, want := range map[string]string{"acme/web": "/acme/web", "Acme/API": "/acme/api"} {
			if row := s.project(t, name); row.RepositoryURL != h.URL+want || row.BoundBy != "sync" {
				t.Errorf("%s is bound to %q by %q", name, row.RepositoryURL, row.BoundBy)
			}
		}
		if mirror := s.project(t, "acme/mirror"); mirror.RepositoryURL != "" {
			t.Errorf("of another host, bound to %q", mirror.RepositoryURL)
		}
		chosen := h.URL + "/acme/elsewhere"
		s.Body(t, s.Token, http.MethodPatch, "/api/v1/deployments/"+s.Slug+"/projects/acme/old", fmt.Sprintf(`{"repository_url":%q}`, chosen), http.StatusOK)
		if n := s.Store.Reader.Project.Query().CountX(s.System(t)); n != 206 {
			t.Errorf("%d projects, want 206", n)
		}
		h.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/web", DefaultBranch: "next", Visibility: "public", Archived: true}, {ID: 3, Name: "acme/old", DefaultBranch: "master", Visibility: "public"}}
		s.sync(t, id)
		if again := s.project(t, "acme/web"); again.ID != web.ID || again.DefaultBranch != "refs/heads/next" || again.Visibility != "public" || again.ArchivedAt == nil || !again.ManagedFullScan {
			t.Errorf("changed: %+v", again)
		}
		wantList(t, "branches before and after", s.branchChanges(t), "main to next")
		if old := s.project(t, "acme/old"); old.RepositoryURL != chosen || old.BoundBy != "admin" {
			t.Errorf("what an administrator has bound: %q by %q", old.RepositoryURL, old.BoundBy)
		}
		if old := s.project(t, "acme/old"); old.ArchivedAt != nil {
			t.Errorf("no longer archived: %+v", old)
		}
		if got := s.walk(t, "sortBy=SCM_CONFIG_SORT_BY_LAST_SUCCESSFUL_SYNC_AT"); len(got) != 1 {
			t.Errorf("listed %q", got)
		}
	})
}

func TestSyncFailures(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitLab(t, "")
		h.Answer(hosttest.Status(401, `{"message":"401 Unauthorized"}`))
		s.do(t, http.MethodPost, s.path("/%d/_sync", id), "", http.StatusOK)
		apitest.Eventually(t, "the failure is noted", func() bool {
			got := s.read(t, id)
			return got.Status != nil && strings.HasPrefix(got.Status.Error, "sync: ") && strings.Contains(got.Status.Error, "set a new accessToken")
		})
		if got := s.read(t, id); got.LastSuccessfulSyncAt != "" {
			t.Errorf("%+v", got)
		}
		empty, _ := s.create(t, "SCM_TYPE_GITLAB", "", "acme", "", "")
		if got := s.do(t, http.MethodPost, s.path("/%d/_sync", empty), "", http.StatusBadRequest); !strings.Contains(got, "set accessToken") {
			t.Error(got)
		}
	})
}

func (c configCaller) seedProject(t testing.TB, name, url string) {
	t.Helper()
	err := c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Project.Create().SetDeploymentID(c.DeploymentID).SetName(name).SetNameKey(strings.ToLower(name)).SetURL(url).SetCreatedAt(store.Now()).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}
