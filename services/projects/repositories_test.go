package projects_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// seedRepositories adds four projects: bound and scanned, managed, archived, and without anything.
func seedRepositories(t *testing.T, s caller) {
	t.Helper()
	err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		now := store.Now()
		add := func(name string) *ent.ProjectCreate {
			return tx.Project.Create().SetName(name).SetNameKey(strings.ToLower(name)).SetCreatedAt(now)
		}
		scanned := add("acme/Web").SetURL("https://git.acme.test/acme/web").SetRepositoryURL("https://git.acme.test/acme/web").SetBoundBy("sync").
			SetScmType("SCM_TYPE_GITLAB_SELFMANAGED").SetDefaultBranch("refs/heads/main").SetPrimaryBranch("refs/heads/next").SetLatestScanAt(now).SaveX(ctx)
		managed := add("acme/managed").SetManagedFullScan(true).SetRepositoryURL("https://other.acme.test/acme/managed").SetBoundBy("admin").SaveX(ctx)
		add("acme/old").SetArchivedAt(now).SaveX(ctx)
		add("acme/empty").SaveX(ctx)
		tag := tx.Tag.Create().SetName("backend").SetCreatedAt(now).SaveX(ctx)
		tx.ProjectTag.Create().SetProjectID(managed.ID).SetTagID(tag.ID).SaveX(ctx)
		tx.ScmConfig.Create().SetType("SCM_TYPE_GITLAB_SELFMANAGED").SetNamespace("acme").SetBaseURL("https://git.acme.test").SetAccessToken([]byte("x")).
			SetLastSuccessfulSyncAt(1_767_225_600_500_000).SetCreatedAt(now).SetUpdatedAt(now).SaveX(ctx)
		var scans []*ent.Scan
		for i, ref := range []string{"refs/heads/main", "refs/pull/7/merge"} {
			scans = append(scans, tx.Scan.Create().SetProjectID(scanned.ID).SetRef(ref).SetCommit("3f2a9c1").SetStatus("SCAN_STATUS_COMPLETED").SetProducts(4).
				SetIsFullScan(i == 0).SetExitCode(int32(i)).SetMeta([]byte{}).SetStats(map[string]any{}).SetStartedAt(now+int64(i)).SetCompletedAt(now+9).SaveX(ctx))
		}
		for i, ecosystem := range []string{"npm", "npm", "pypi"} {
			tx.Dependency.Create().SetProjectID(scanned.ID).SetScanID(scans[0].ID).SetLockfile("lock").SetEcosystem(ecosystem).SetPackage(fmt.Sprint(i)).
				SetVersion("1").SetTransitivity("direct").SetContent([]byte{}).SetSeenAt(now).SaveX(ctx)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRepositories(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedRepositories(t, s)
		client := projectsv1.NewRepositoriesServiceClient(s.Conn)
		ctx := s.Context(t, s.Token)
		for id, name := range map[int64]string{1: "repository", 2: "repository_managed", 3: "repository_archived"} {
			body := s.mustDo(t, http.MethodGet, fmt.Sprintf("/api/agent/deployments/%d/repos/%d", s.DeploymentID, id), "")
			apitest.Golden(t, name, body)
			same(t, body)(client.GetRepo(ctx, &projectsv1.GetRepoRequest{DeploymentSlug: s.Slug, RepoId: id}))
		}
		search := fmt.Sprintf("/api/agent/deployments/%d/repos/search", s.DeploymentID)
		body := s.mustDo(t, http.MethodPost, search, `{}`)
		same(t, body)(client.SearchRepos(ctx, &projectsv1.SearchReposRequest{DeploymentId: s.DeploymentID}))
		for body, want := range map[string]string{
			``:                             "1 2 4",
			`{"filters":null}`:             "1 2 4",
			`{"filters":{"search":"WEB"}}`: "1",
			`{"filters":{"search":"web","invertSearch":true}}`:                           "2 4",
			`{"filters":{"setup":true}}`:                                                 "1 2",
			`{"filters":{"setup":false}}`:                                                "4",
			`{"filters":{"archived":true}}`:                                              "3",
			`{"filters":{"ids":["2",4,77]}}`:                                             "2 4",
			`{"filters":{"hasSmsSetup":true}}`:                                           "2",
			`{"filters":{"isScmRepository":false}}`:                                      "4",
			`{"filters":{"scmType":"SCM_TYPE_GITLAB_SELFMANAGED"}}`:                      "1",
			`{"filters":{"tagId":1}}`:                                                    "2",
			`{"filters":{"lastScanSince":"2026-01-01T00:00:00Z"}}`:                       "1",
			`{"filters":{"codeAccess":true}}`:                                            "1",
			`{"filters":{"codeAccess":false}}`:                                           "2 4",
			`{"filters":{"isLocalScanProject":true}}`:                                    "4",
			`{"filters":{"isLocalScanProject":false}}`:                                   "1 2",
			`{"filters":{"latestScanStatus":"LATEST_SCAN_STATUS_BUCKET_SUCCESSFUL"}}`:    "1",
			`{"filters":{"latestScanStatus":"LATEST_SCAN_STATUS_BUCKET_HAD_PROBLEMS"}}`:  "",
			`{"filters":{"latestScanStatus":"LATEST_SCAN_STATUS_BUCKET_NEVER_SCANNED"}}`: "2 4",
			`{"filters":{"latestScanStatus":"LATEST_SCAN_STATUS_BUCKET_UNSPECIFIED"}}`:   "1 2 4",
			`{"filters":{"search":"","ids":null,"lastScanSince":"0001-01-01T00:00:00Z","tagId":"0"},"pageSize":0,"cursor":""}`: "1 2 4",
			`{"pageSize":100000}`: "1 2 4",
		} {
			if got, _ := repositoryIDs(t, s.mustDo(t, http.MethodPost, search, body)); got != want {
				t.Errorf("%s: %s, want %s", body, got, want)
			}
		}
		var pages []string
		for cursor := ""; ; {
			ids, next := repositoryIDs(t, s.mustDo(t, http.MethodPost, search, fmt.Sprintf(`{"pageSize":2,"cursor":%q}`, cursor)))
			if pages = append(pages, ids); next == "" {
				break
			}
			cursor = next
		}
		if !slices.Equal(pages, []string{"1 2", "4"}) {
			t.Errorf("%q", pages)
		}
	})
}

// TestRepositoriesOfTeams: members see the repositories of their teams only, and learn whether they may triage.
func TestRepositoriesOfTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedRepositories(t, s)
		jwt := s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleMember)
		err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			now, user := store.Now(), tx.User.Query().Where(user.Email("dev@acme.test")).OnlyIDX(tenant.System(ctx))
			for i, role := range []string{"TEAM_ROLE_READONLY", "TEAM_ROLE_MEMBER"} {
				team := tx.Team.Create().SetName(role).SetSlug(strings.ToLower(role)).SetCreatedAt(now).SetUpdatedAt(now).SaveX(ctx)
				tx.TeamMember.Create().SetTeamID(team.ID).SetUserID(user).SetRole(role).SetCreatedAt(now).SaveX(ctx)
				tx.TeamProject.Create().SetTeamID(team.ID).SetProjectID(int64(i + 1)).SetCreatedAt(now).SaveX(ctx)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		body := s.Body(t, jwt, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/repos/search", s.DeploymentID), "", 200)
		if ids, _ := repositoryIDs(t, body); ids != "1 2" || strings.Count(body, "REPO_SCOPE_READ_FINDING") != 2 || strings.Count(body, "REPO_SCOPE_TRIAGE_FINDING") != 1 {
			t.Errorf("%s", body)
		}
		if answer := s.Do(t, jwt, http.MethodGet, "/api/agent/deployments/acme/repos/4", ""); answer.Status != 404 {
			t.Errorf("a repository of no team: %d %s", answer.Status, answer.Body)
		}
	})
}

func repositoryIDs(t *testing.T, body string) (ids, cursor string) {
	t.Helper()
	var page struct {
		Repos  []struct{ ID string }
		Cursor string
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, repo := range page.Repos {
		list = append(list, repo.ID)
	}
	return strings.Join(list, " "), page.Cursor
}
