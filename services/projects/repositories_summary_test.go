package projects_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
)

// TestRepositorySummary: the list counts the open findings of the primary branch, and shows the worst freshness.
func TestRepositorySummary(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		s.Upload(t, "acme/web", "main", []byte(strings.ReplaceAll(report, `"ruleId"`, `"level":"error","ruleId"`)))
		s.Upload(t, "acme/web", "next", []byte(report))
		s.Upload(t, "acme/api", "dev", []byte(report))
		s.mustDo(t, http.MethodPatch, base+"/acme/web", `{"primary_branch":"main"}`)
		err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			id := tx.Project.Query().Where(project.Name("acme/web")).OnlyIDX(ctx)
			tx.Project.Create().SetName("acme/new").SetNameKey("acme/new").SetCreatedAt(store.Now()).SaveX(ctx)
			for state := range int32(4) {
				err := tx.Freshness.Create().SetProjectID(id).SetRef("refs/heads/main").SetTool(fmt.Sprint(state)).SetAnalysisCategory("").SetState(state).
					SetSince(1).SetLastScanID(1).SetContent([]byte{}).Exec(ctx)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		body := s.mustDo(t, http.MethodPost, s.repos("/search"), `{"includeSummary":true,"filters":{"search":"acme/web"}}`)
		apitest.Golden(t, "repos_summary", body)
		same(t, body)(projectsv1.NewRepositoriesServiceClient(s.Conn).SearchRepos(s.Context(t, s.Token), &projectsv1.SearchReposRequest{
			DeploymentId: s.DeploymentID, IncludeSummary: true, Filters: &projectsv1.RepoFilters{Search: "acme/web"},
		}))
		api := s.mustDo(t, http.MethodPost, s.repos("/search"), `{"includeSummary":true,"filters":{"search":"acme/api"}}`)
		if !strings.Contains(api, `"findings":{"critical":"0","high":"0","medium":"1","low":"0"},"freshness":"ok"`) {
			t.Errorf("a project with one scan: %s", api)
		}
		unscanned := s.mustDo(t, http.MethodPost, s.repos("/search"), `{"includeSummary":true,"filters":{"search":"acme/new"}}`)
		if !strings.Contains(unscanned, `"findings":{"critical":"0","high":"0","medium":"0","low":"0"}`) || strings.Contains(unscanned, `"freshness"`) {
			t.Errorf("a project without a scan: %s", unscanned)
		}
		if plain := s.mustDo(t, http.MethodPost, s.repos("/search"), `{}`); strings.Contains(plain, `"findings"`) || strings.Contains(plain, `"freshness"`) {
			t.Errorf("without the summary: %s", plain)
		}
	})
}

// TestCodeAccessEqualsReached: the filter by code access finds the repositories that show it.
func TestCodeAccessEqualsReached(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		urls := []string{
			"", "https://git.acme.test/acme/web", "https://GIT.acme.test/Acme/Web", "http://git.acme.test/acme/web", "https://git.acme.test/acme",
			"https://git.acme.test/acme/", "https://git.acme.test/acmeology/web", "https://git.acme.test/acme/inner/web", "https://git.acme.test/acme/inner",
			"https://git.acme.test/acme/a..b", "https://git.acme.test:8443/acme/web", "https://acme.test/git/team_x/web", "https://acme.test/git/teamAx/web",
			"https://acme.test/team_x/web", "https://git.acme.test/über/web", "https://git.acme.test/acme/inner/deep/web",
		}
		err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			for i, url := range urls {
				name := fmt.Sprintf("p%d", i)
				tx.Project.Create().SetName(name).SetNameKey(name).SetRepositoryURL(url).SetCreatedAt(store.Now()).SaveX(ctx)
			}
			for namespace, credential := range map[string]string{"acme": "x", "acme/inner": "", "acme/inner/deep": "y", "über": "z"} {
				tx.ScmConfig.Create().SetType("SCM_TYPE_GITLAB_SELFMANAGED").SetNamespace(namespace).SetBaseURL("https://git.acme.test").
					SetAccessToken([]byte(credential)).SetCreatedAt(1).SetUpdatedAt(1).SaveX(ctx)
			}
			tx.ScmConfig.Create().SetType("SCM_TYPE_GITLAB_SELFMANAGED").SetNamespace("team_x").SetBaseURL("https://acme.test/git").SetScmAppID(7).
				SetCreatedAt(1).SetUpdatedAt(1).SaveX(ctx)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		configs := s.Store.Reader.ScmConfig.Query().Order(ent.Asc("id")).AllX(s.System(t))
		var reached []string
		for _, row := range s.Store.Reader.Project.Query().Order(ent.Asc("id")).AllX(s.System(t)) {
			if config, _, _ := connect.Reached(configs, row); config != nil && connect.HasCredential(config) {
				reached = append(reached, fmt.Sprint(row.ID))
			}
		}
		if len(reached) < 4 {
			t.Errorf("reached %q", reached)
		}
		if got, _ := repositoryIDs(t, s.mustDo(t, http.MethodPost, s.repos("/search"), `{"filters":{"codeAccess":true}}`)); got != strings.Join(reached, " ") {
			t.Errorf("found %q, reached %q", got, reached)
		}
	})
}
