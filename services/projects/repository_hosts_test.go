package projects_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/ciworkflow"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// eachHost runs a test on both databases, with a GitHub server that the deployment is connected to. The projects are
// 1 acme/web, 2 acme/api, 3 acme/mirror at another host, 4 acme/lab at a GitLab server, and 5 acme/local without a
// repository.
func eachHost(t *testing.T, test func(t *testing.T, s caller, h *hosttest.GitHub)) {
	t.Helper()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := caller{apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow, c.PublicURL = "127.0.0.1", "https://palisade.acme.test" })}
		h := hosttest.NewGitHub(t)
		h.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/web", DefaultBranch: "main", Visibility: "private"}, {ID: 2, Name: "acme/api", DefaultBranch: "main", Visibility: "public"}}
		h.Files = hosttest.Files{"main:README.md": "hello"}
		for _, host := range [][2]string{{"SCM_TYPE_GITLAB_SELFMANAGED", "https://gitlab.acme.test"}, {"SCM_TYPE_GITHUB_ENTERPRISE", h.URL}} {
			body := fmt.Sprintf(`{"type":%q,"namespace":"acme","baseUrl":%q,"accessToken":%q}`, host[0], host[1], h.Token)
			s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/scm/deployments/%d/configs", s.DeploymentID), body, http.StatusCreated)
		}
		err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			for _, row := range [][2]string{
				{"acme/web", h.URL + "/acme/web"}, {"acme/api", h.URL + "/acme/api"}, {"acme/mirror", "https://elsewhere.acme.test/acme/mirror"},
				{"acme/lab", "https://gitlab.acme.test/acme/lab"}, {"acme/local", ""},
			} {
				tx.Project.Create().SetName(row[0]).SetNameKey(row[0]).SetRepositoryURL(row[1]).SetBoundBy("admin").SetCreatedAt(store.Now()).SaveX(ctx)
			}
			return tx.Project.UpdateOneID(1).SetDefaultBranch("refs/heads/main").Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		test(t, s, h)
	})
}

// hostAnswer holds the bodies of _provision and _secret.
type hostAnswer struct {
	RepoFileURLs map[string]string
	RepoTokenIDs map[string]string
	Errors       []struct {
		Code, Message string
		IDs           []string
	}
}

func (c caller) atHosts(t *testing.T, what, body string) hostAnswer {
	t.Helper()
	var answer hostAnswer
	if err := json.Unmarshal([]byte(c.mustDo(t, http.MethodPost, c.repos("/%s", what), body)), &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// reasons are the errors in short: the ids with a code.
func (a hostAnswer) reasons() string {
	var all []string
	for _, one := range a.Errors {
		all = append(all, strings.Join(one.IDs, ",")+" "+strings.TrimPrefix(one.Code, "UPDATE_ERROR_CODE_"))
	}
	return strings.Join(all, "; ")
}

// pullNumber matches the number of a pull request: repositories get theirs at the same time.
var pullNumber = regexp.MustCompile(`/pull/\d+`)

func TestProvision(t *testing.T) {
	t.Parallel()
	eachHost(t, func(t *testing.T, s caller, h *hosttest.GitHub) {
		body := s.mustDo(t, http.MethodPost, s.repos("/_provision"), `{"filters":{"ids":["1","2","3","4","5","77"]},"ghaOptions":{"prEnabled":true,"prSendComments":true}}`)
		apitest.Golden(t, "provision", pullNumber.ReplaceAllString(strings.ReplaceAll(body, h.URL, "https://git.acme.test"), "/pull/17"))
		file := h.File("palisade/ci", ciworkflow.Path)
		for _, want := range []string{"semgrep ci", "SEMGREP_URL: https://palisade.acme.test\n", "pull_request: {}", "pull-requests: write"} {
			if !strings.Contains(file, want) {
				t.Errorf("no %q in %s", want, file)
			}
		}
		if strings.Contains(file, "schedule") || strings.Contains(file, "push:") {
			t.Errorf("more than was asked for: %s", file)
		}
		// The same again changes nothing, on the other wire too: both repositories have one pull request each.
		changes := h.Count("PUT ") + h.Count("POST ")
		reply, err := projectsv1.NewRepositoryChangesServiceClient(s.Conn).BulkProvisionRepos(s.Context(t, s.Token), &projectsv1.BulkProvisionReposRequest{
			DeploymentId: s.DeploymentID, Filters: &projectsv1.RepoFilters{Ids: []int64{1}}, GhaOptions: &projectsv1.GhaOptions{PrEnabled: true, PrSendComments: true},
		})
		if err != nil || !strings.Contains(body, fmt.Sprintf(`"1":%q`, reply.GetRepoFileUrls()[1])) || len(h.Pulls()) != 2 {
			t.Errorf("again: %v, %v, %d pull requests", reply, err, len(h.Pulls()))
		}
		if after := h.Count("PUT ") + h.Count("POST "); after-changes > 1 { // creating the branch fails
			t.Errorf("%d more changes: %q", after-changes, h.Requests())
		}
		// All options, and a new workflow for the same pull request.
		again := s.atHosts(t, "_provision", `{"filters":{"ids":["1"]},"ghaOptions":{"publishUrl":"https://scan.acme.test/x","pushEnabled":true,"pushBranches":["next"],
			"pushPaths":["src/**"],"cronEnabled":true,"useSelfHostedRunners":true}}`)
		file = h.File("palisade/ci", ciworkflow.Path)
		for _, want := range []string{"SEMGREP_URL: https://scan.acme.test/x\n", "- next\n", "- src/**\n", "cron:", "self-hosted"} {
			if !strings.Contains(file, want) {
				t.Errorf("no %q in %s", want, file)
			}
		}
		if len(again.RepoFileURLs) != 1 || len(again.Errors) != 0 {
			t.Errorf("%+v", again)
		}
		// After the merge there is nothing to propose.
		merged := h.File("palisade/ci", ciworkflow.Path)
		h.Files["main:"+ciworkflow.Path] = merged
		pulls := len(h.Pulls())
		done := s.atHosts(t, "_provision", `{"filters":{"ids":["1"]},"ghaOptions":{"publishUrl":"https://scan.acme.test/x","pushEnabled":true,"pushBranches":["next"],
			"pushPaths":["src/**"],"cronEnabled":true,"useSelfHostedRunners":true}}`)
		if done.RepoFileURLs["1"] != h.URL+"/acme/web/blob/main/"+ciworkflow.Path || len(h.Pulls()) != pulls {
			t.Errorf("merged: %+v, %d pull requests, want %d", done, len(h.Pulls()), pulls)
		}
		for options, want := range map[string]string{
			`"publishUrl":"https://x.test/${{ secrets.OTHER }}"`: "publishUrl must be the URL of this server", `"publishUrl":"x"`: "publishUrl must be",
		} {
			if got := s.Do(t, s.Token, http.MethodPost, s.repos("/_provision"), `{"ghaOptions":{`+options+`}}`); got.Status != 400 || !strings.Contains(got.Body, want) {
				t.Errorf("%s: %d %s", options, got.Status, got.Body)
			}
		}
		h.Refused = []string{"GET /api/v3/repos/acme/api"}
		if got := s.atHosts(t, "_provision", `{"filters":{"ids":["1","2"]}}`); got.reasons() != "2 UNAUTHORIZED" || len(got.RepoFileURLs) != 1 {
			t.Errorf("refused: %+v", got)
		}
	})
}

func TestRepoSecret(t *testing.T) {
	t.Parallel()
	eachHost(t, func(t *testing.T, s caller, h *hosttest.GitHub) {
		body := s.mustDo(t, http.MethodPost, s.repos("/_secret"), `{"filters":{"ids":["1","2","3","4","5","77"]},"excludeIds":["2","5"]}`)
		apitest.Golden(t, "secret", body)
		first := h.Secrets()
		value := first["acme/web:"+ciworkflow.Secret]
		if len(first) != 1 || value == "" {
			t.Fatalf("secrets: %d", len(first))
		}
		row := s.ciToken(t, 1)
		if row.Name != "CI of acme/web" || row.Role != "ORG_ROLE_MEMBER" || fmt.Sprint(row.Scopes) != "[agent]" || row.ExpiresAt != nil || row.ParentID != nil {
			t.Errorf("the token is %+v", row)
		}
		// The token sends scans, and nothing else.
		if got := s.Do(t, value, http.MethodPost, "/api/cli/scans", `{"project_metadata":{"repository":"acme/web","branch":"main"},"scan_metadata":{},"project_config":{}}`); got.Status == 401 || got.Status == 404 {
			t.Errorf("a scan: %d %s", got.Status, got.Body)
		}
		if got := s.Do(t, value, http.MethodPost, "/api/cli/scans", `{"project_metadata":{"repository":"acme/api","branch":"main"},"scan_metadata":{},"project_config":{}}`); got.Status != 403 || !strings.Contains(got.Body, "the CI of another project") {
			t.Errorf("a scan of another project: %d %s", got.Status, got.Body)
		}
		if got := s.Do(t, value, http.MethodGet, base, ""); got.Status != 404 && got.Status != 403 {
			t.Errorf("the Web API: %d %s", got.Status, got.Body)
		}
		// A second call replaces the token.
		reply, err := projectsv1.NewRepositoryChangesServiceClient(s.Conn).BulkAddRepoSecret(s.Context(t, s.Token), &projectsv1.BulkAddRepoSecretRequest{
			DeploymentId: s.DeploymentID, Filters: &projectsv1.RepoFilters{Ids: []int64{1}},
		})
		if err != nil || reply.GetRepoTokenIds()[1] == row.ID {
			t.Errorf("again: %v, %v", reply, err)
		}
		if next := s.ciToken(t, 1); next.ID != reply.GetRepoTokenIds()[1] || h.Secrets()["acme/web:"+ciworkflow.Secret] == value {
			t.Errorf("the token is still %+v", next)
		}
		if got := s.Do(t, value, http.MethodPost, "/api/cli/scans", "{}"); got.Status != http.StatusUnauthorized {
			t.Errorf("the replaced token: %d %s", got.Status, got.Body)
		}
		s.requireNoValue(t, value, h.Secrets()["acme/web:"+ciworkflow.Secret])

		// What the host refuses leaves no token, and what it leaves open one that expires.
		h.Refused = []string{"PUT /api/v3/repos/acme/api/actions"}
		if got := s.atHosts(t, "_secret", `{"filters":{"ids":["2"]}}`); got.reasons() != "2 UNAUTHORIZED" || len(got.RepoTokenIDs) != 0 {
			t.Errorf("refused: %+v", got)
		}
		if n := s.Store.Reader.Token.Query().Where(token.ProjectID(2), token.RevokedAtIsNil()).CountX(s.System(t)); n != 0 {
			t.Errorf("%d tokens of a refused secret", n)
		}
		h.Refused = nil
		h.Answer(hosttest.Status(502, "{}"))
		if got := s.atHosts(t, "_secret", `{"filters":{"ids":["2"]}}`); got.reasons() != "2 CONFLICT" {
			t.Errorf("failed: %+v", got)
		}
		h.Answer(nil)
		if row := s.ciToken(t, 2); row.ExpiresAt == nil {
			t.Errorf("a token of an open end: %+v", row)
		}
		if got := s.atHosts(t, "_secret", `{"filters":{"ids":["2"]}}`); got.reasons() != "2 CONFLICT" || !strings.Contains(got.Errors[0].Message, "another call") {
			t.Errorf("while another call has it: %+v", got)
		}
		s.ExpireToken(t, "CI of acme/api")
		if got := s.atHosts(t, "_secret", `{"filters":{"ids":["2"]}}`); len(got.RepoTokenIDs) != 1 || s.ciToken(t, 2).ExpiresAt != nil {
			t.Errorf("after its end: %+v", got)
		}
		// A deleted project leaves no token.
		s.mustDo(t, http.MethodDelete, s.v2("/1"), "")
		if n := s.Store.Reader.Token.Query().Where(token.ProjectID(1), token.RevokedAtIsNil()).CountX(s.System(t)); n != 0 {
			t.Errorf("%d tokens of a deleted project", n)
		}
	})
}

// ciToken is the only token of a project that is not revoked.
func (c caller) ciToken(t *testing.T, projectID int64) *ent.Token {
	t.Helper()
	row, err := c.Store.Reader.Token.Query().Where(token.ProjectID(projectID), token.RevokedAtIsNil()).Only(c.System(t))
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// requireNoValue: the audit trail has the tokens without their values.
func (c caller) requireNoValue(t *testing.T, values ...string) {
	t.Helper()
	rows := c.Store.Reader.AuditEntry.Query().Where(auditentry.MethodHasSuffix("/BulkAddRepoSecret")).AllX(c.System(t))
	all, err := json.Marshal(rows)
	if err != nil || len(rows) == 0 || !strings.Contains(string(all), "CI of acme/web") {
		t.Errorf("%d entries, %v", len(rows), err)
	}
	for _, value := range values {
		if strings.Contains(string(all), value) {
			t.Error("the audit trail has the value of a token")
		}
	}
}

func TestSyncRepo(t *testing.T) {
	t.Parallel()
	eachHost(t, func(t *testing.T, s caller, h *hosttest.GitHub) {
		h.Repositories[1].DefaultBranch = "trunk"
		body := s.Body(t, s.Token, http.MethodPost, s.repos("/2/_sync"), `{}`, http.StatusAccepted)
		apitest.Golden(t, "sync_repo", strings.ReplaceAll(body, h.URL, "https://git.acme.test"))
		branch := func(id int64) string {
			return s.Store.Reader.Project.Query().Where(project.ID(id)).OnlyX(s.System(t)).DefaultBranch
		}
		apitest.Eventually(t, "the repository is read", func() bool { return branch(2) == "refs/heads/trunk" })
		if h.Count("GET /api/v3/orgs/acme/repos") != 0 || s.Store.Reader.Project.Query().CountX(s.System(t)) != 5 {
			t.Errorf("more than one repository was read: %q", h.Requests())
		}
		h.Repositories[1].DefaultBranch = "next"
		reply, err := projectsv1.NewRepositoryChangesServiceClient(s.Conn).SyncRepo(s.Context(t, s.Token), &projectsv1.SyncRepoRequest{DeploymentId: s.DeploymentID, RepoId: 2})
		if err != nil || reply.GetRepo().GetDefaultBranch() == "" {
			t.Errorf("%v, %v", reply, err)
		}
		apitest.Eventually(t, "the repository is read again", func() bool { return branch(2) == "refs/heads/next" })
		for id, want := range map[int]string{3: "no source-code host is configured", 5: "bound to no repository"} {
			if got := s.Do(t, s.Token, http.MethodPost, s.repos("/%d/_sync", id), `{}`); got.Status != 400 || !strings.Contains(got.Body, want) {
				t.Errorf("%d: %d %s", id, got.Status, got.Body)
			}
		}
	})
}

func TestRefreshProjects(t *testing.T) {
	t.Parallel()
	eachHost(t, func(t *testing.T, s caller, h *hosttest.GitHub) {
		h.Repositories = append(h.Repositories, hosttest.Repository{ID: 3, Name: "acme/new", DefaultBranch: "main", Visibility: "private"})
		body := s.Body(t, s.Token, http.MethodPost, s.repos("/_refresh_async"), `{"deploymentId":1,"withCodeAccess":true}`, http.StatusAccepted)
		if !strings.HasPrefix(body, `{"task_token_jwt":"ey`) {
			t.Errorf("%s", body)
		}
		apitest.Eventually(t, "the repositories are read", func() bool {
			return s.Store.Reader.Project.Query().Where(project.Name("acme/new")).ExistX(s.System(t))
		})
		reply, err := projectsv1.NewRepositoryChangesServiceClient(s.Conn).RefreshProjectsAsync(s.Context(t, s.Token), &projectsv1.RefreshProjectsAsyncRequest{DeploymentId: s.DeploymentID})
		if err != nil || reply.GetTaskTokenJwt() == "" {
			t.Errorf("%v, %v", reply, err)
		}
		other := s.AddTenant(t, "umbrella")
		path := fmt.Sprintf("/api/agent/deployments/%d/repos/_refresh_async", other.DeploymentID)
		if got := s.Do(t, other.Token, http.MethodPost, path, "{}"); got.Status != 400 || !strings.Contains(got.Body, "no source-code host can be read") {
			t.Errorf("%d %s", got.Status, got.Body)
		}
	})
}
