package projects_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/project"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// repos is a path below the repositories.
func (c caller) repos(more string, args ...any) string {
	return fmt.Sprintf("/api/agent/deployments/%d/repos", c.DeploymentID) + fmt.Sprintf(more, args...)
}

func TestEditRepo(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedRepositories(t, s)
		client, ctx := projectsv1.NewRepositoryChangesServiceClient(s.Conn), s.Context(t, s.Token)

		body := s.mustDo(t, http.MethodPatch, s.repos("/1"), `{"managedScans":{"diffScan":true,"numConfigs":3},"aiScans":{"fullScan":true},"primaryBranch":"None",
			"tagsChanges":[{"operation":"ADD_TAGS","tags":["new","backend"]},{"tags":["third"]},{"operation":"REMOVE_TAGS","tags":["new","unknown"]}]}`)
		apitest.Golden(t, "edit_repo", body)
		for name, change := range map[string]string{
			"acme/Web":   `{"tagsChanges":[{"operation":"SET_TAGS","tags":["only"]}],"managedScans":{"fullScan":false}}`,
			"acme%2FWeb": `{"managedScans":{"diffScan":false},"primaryBranch":"trunk"}`,
		} {
			s.mustDo(t, http.MethodPatch, s.repos("/%s", name), change)
		}
		body = s.Get(t, s.repos("/1"))
		for _, want := range []string{`"tags":["only"]`, `"managedScans":{"diffScan":false,"fullScan":false}`, `"aiScans":{"fullScan":true}`, `"ref":"refs/heads/trunk","isOverride":true`} {
			if !strings.Contains(body, want) {
				t.Errorf("no %s in %s", want, body)
			}
		}
		reply, err := client.EditRepo(ctx, &projectsv1.EditRepoRequest{DeploymentId: s.DeploymentID, IdOrName: "1"})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, &projectsv1.GetRepoResponse{Repo: reply.GetRepo()}, body)

		if got := s.mustDo(t, http.MethodPatch, s.repos("/4"), `{"name":" acme/renamed "}`); !strings.Contains(got, `"name":"acme/renamed"`) {
			t.Errorf("renamed: %s", got)
		}
		for _, c := range []struct {
			path, body string
			status     int
			text       string
		}{
			{"/4", `{"name":"ACME/web"}`, 409, "a project with the name"},
			{"/4", `{"name":"acme/tags"}`, 400, "the name of a project"},
			{"/1", `{"name":"acme/other"}`, 400, "comes from its source-code host"},
			{"/4", `{"primaryBranch":"a b"}`, 400, "no spaces"},
			{"/4", `{"primaryBranch":"HEAD"}`, 400, "must be a branch"},
			{"/4", `{"primaryBranch":"refs/remotes/origin/HEAD"}`, 400, "must be a branch"},
			{"/4", `{"primaryBranch":"refs/detached/3f2a9c1"}`, 400, "must be a branch"},
			{"/4", `{"tagsChanges":[{"operation":"SET_TAGS","tags":["a"]},{"tags":["b"]}]}`, 400, "no other change beside SET_TAGS"},
			{"/4", `{"tagsChanges":[{"operation":"DROP_TAGS"}]}`, 400, "operation"},
			{"/77", `{}`, 404, "not found"},
			{"/acme/nothing", `{}`, 404, "not found"},
		} {
			if got := s.Do(t, s.Token, http.MethodPatch, s.repos("%s", c.path), c.body); got.Status != c.status || !strings.Contains(got.Body, c.text) {
				t.Errorf("%s %s: %d %s", c.path, c.body, got.Status, got.Body)
			}
		}
		s.requireAudited(t, "EditRepo", `"acme/renamed"`)
	})
}

// requireAudited requires an audit entry of a method with a text in its changes.
func (c caller) requireAudited(t *testing.T, method, text string) {
	t.Helper()
	rows := c.Store.Reader.AuditEntry.Query().Where(auditentry.MethodHasSuffix("/" + method)).AllX(c.System(t))
	for _, row := range rows {
		if changes, err := json.Marshal(row.Changes); err != nil || strings.Contains(string(changes), text) {
			return
		}
	}
	t.Errorf("none of %d entries of %s has %s", len(rows), method, text)
}

func TestBulkEditRepos(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedRepositories(t, s)
		seedProject(t, s, s.AddTenant(t, "umbrella").DeploymentID, 50001)
		client, ctx := projectsv1.NewRepositoryChangesServiceClient(s.Conn), s.Context(t, s.Token)
		const changes = `{"changes":[{"repoId":"4","change":{"managedScans":{"fullScan":true}}},{"repoId":1,"change":{"updateTags":true,"tags":["a","b"]}},
			{"repoId":"50001","change":{"updateTags":true}},{"repoId":"2","change":{"updateTags":true,"tags":[]}},{"repoId":"77","change":{}},
			{"repoId":"3","change":{"tags":["no effect"],"aiScans":{"fullScan":true}}}]}`
		body := s.mustDo(t, http.MethodPatch, s.repos(""), changes)
		apitest.Golden(t, "bulk_edit_repos", body)
		request := &projectsv1.BulkEditReposRequest{DeploymentId: s.DeploymentID}
		for _, id := range []int64{4, 1, 50001, 2, 77, 3} {
			request.Changes = append(request.Changes, &projectsv1.BulkEditReposItem{RepoId: id})
		}
		same(t, body)(client.BulkEditRepos(ctx, request))
		s.requireRepos(t, map[string]string{
			`{"filters":{"hasSmsSetup":true}}`: "2 4", `{"filters":{"tagId":1}}`: "", `{"filters":{"tagId":2}}`: "1", `{"filters":{"tagId":3}}`: "1",
		})
		if got := s.Get(t, s.repos("/3")); !strings.Contains(got, `"aiScans":{"fullScan":true}`) || !strings.Contains(got, `"tags":[]`) {
			t.Errorf("%s", got)
		}
		if row := s.Store.Reader.Project.Query().Where(project.ID(50001)).OnlyX(s.System(t)); row.ManagedFullScan {
			t.Error("a project of another deployment was changed")
		}
		if got := s.Do(t, s.Token, http.MethodPatch, s.repos(""), `{"changes":[{"repoId":"1"},{"repoId":"1"}]}`); got.Status != 400 || !strings.Contains(got.Body, "at most one item") {
			t.Errorf("%d %s", got.Status, got.Body)
		}
		s.requireAudited(t, "BulkEditRepos", `"acme/managed"`)
	})
}

func TestBulkApplyRepoUpdate(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedRepositories(t, s)
		seedProject(t, s, s.AddTenant(t, "umbrella").DeploymentID, 50001)
		client, ctx := projectsv1.NewRepositoryChangesServiceClient(s.Conn), s.Context(t, s.Token)
		body := s.mustDo(t, http.MethodPatch, s.repos("/filtered"),
			`{"filters":{"ids":["4","2","1","50001","77"],"isScmRepository":true},"excludeIds":["2"],"change":{"updateTags":true,"tags":["a","backend"],"managedScans":{"diffScan":true}}}`)
		apitest.Golden(t, "bulk_apply_repo_update", body)
		same(t, body)(client.BulkApplyRepoUpdate(ctx, &projectsv1.BulkApplyRepoUpdateRequest{
			DeploymentId: s.DeploymentID, Filters: &projectsv1.RepoFilters{Ids: []int64{4, 2, 1, 50001, 77}, IsScmRepository: proto.Bool(true)},
			ExcludeIds: []int64{2}, Change: &projectsv1.SingleBulkRepoChange{},
		}))
		s.requireRepos(t, map[string]string{`{"filters":{"hasSmsSetup":true}}`: "1 2", `{"filters":{"tagId":1}}`: "1 2", `{"filters":{"tagId":2}}`: "1"})
		all := s.mustDo(t, http.MethodPatch, s.repos("/filtered"), `{"change":{"updateTags":true}}`)
		if all != `{"updatedRepoIds":["1","2","4"],"errors":[]}` {
			t.Errorf("%s", all)
		}
		if got := s.Get(t, s.repos("/by-tag")); got != `{"tagIdToRepoIds":{}}` {
			t.Errorf("%s", got)
		}
		if got := s.Do(t, s.Token, http.MethodPatch, s.repos("/filtered"), `{}`); got.Status != 400 || !strings.Contains(got.Body, "change") {
			t.Errorf("%d %s", got.Status, got.Body)
		}
		s.requireAudited(t, "BulkApplyRepoUpdate", `"acme/Web"`)

		seedProjects(t, s, 3001)
		if got := s.Do(t, s.Token, http.MethodPatch, s.repos("/filtered"), `{"change":{"aiScans":{"fullScan":true}}}`); got.Status != 400 || !strings.Contains(got.Body, "more than 3000 repositories") {
			t.Errorf("%d %s", got.Status, got.Body)
		}
	})
}

// TestReposByTagAndCount: counts use the filters of the list.
func TestReposByTagAndCount(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedRepositories(t, s)
		client, ctx := projectsv1.NewRepositoriesServiceClient(s.Conn), s.Context(t, s.Token)
		s.mustDo(t, http.MethodPatch, s.repos("/1"), `{"tagsChanges":[{"tags":["frontend","backend"]}]}`)
		tags := s.Get(t, s.repos("/by-tag"))
		apitest.Golden(t, "repos_by_tag", tags)
		same(t, tags)(client.GetReposByTag(ctx, &projectsv1.GetReposByTagRequest{DeploymentId: s.DeploymentID}))
		count := s.mustDo(t, http.MethodPost, s.repos("/count"), `{"filters":{"setup":true}}`)
		apitest.Golden(t, "repos_count", count)
		same(t, count)(client.GetReposCount(ctx, &projectsv1.GetReposCountRequest{DeploymentId: s.DeploymentID, Filters: &projectsv1.RepoFilters{Setup: proto.Bool(true)}}))
		if got := s.mustDo(t, http.MethodPost, s.repos("/count"), ``); got != `{"count":"3"}` {
			t.Errorf("%s", got)
		}
	})
}

// requireRepos requires the ids that searches find.
func (c caller) requireRepos(t *testing.T, want map[string]string) {
	t.Helper()
	for body, ids := range want {
		if got, _ := repositoryIDs(t, c.mustDo(t, http.MethodPost, c.repos("/search"), body)); got != ids {
			t.Errorf("%s: %q, want %q", body, got, ids)
		}
		var counted struct{ Count string }
		if err := json.Unmarshal([]byte(c.mustDo(t, http.MethodPost, c.repos("/count"), body)), &counted); err != nil || counted.Count != fmt.Sprint(len(strings.Fields(ids))) {
			t.Errorf("%s: %s repositories, want %q", body, counted.Count, ids)
		}
	}
}

// TestRepositoryChangesOfOthers: members change nothing, and repositories of other deployments do not exist.
func TestRepositoryChangesOfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		seedRepositories(t, s)
		other := s.AddTenant(t, "umbrella")
		member := s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleMember)
		for _, c := range [][3]string{
			{http.MethodPatch, "/1", `{}`}, {http.MethodPatch, "", `{"changes":[{"repoId":"1"}]}`}, {http.MethodPatch, "/filtered", `{"change":{}}`},
			{http.MethodPost, "/_secret", `{}`}, {http.MethodPost, "/_provision", `{}`}, {http.MethodPost, "/_refresh_async", `{}`}, {http.MethodPost, "/1/_sync", `{}`},
		} {
			if got := s.Do(t, member, c[0], s.repos("%s", c[1]), c[2]); got.Status != http.StatusForbidden {
				t.Errorf("%s as a member: %d %s", c, got.Status, got.Body)
			}
			if got := s.Do(t, other.Token, c[0], s.repos("%s", c[1]), c[2]); got.Status != http.StatusNotFound {
				t.Errorf("%s of another deployment: %d %s", c, got.Status, got.Body)
			}
		}
		theirs := fmt.Sprintf("/api/agent/deployments/%d/repos", other.DeploymentID)
		for path, want := range map[string]string{"/1": "not found", "/1/_sync": "not found"} {
			method := http.MethodPatch
			if strings.HasSuffix(path, "_sync") {
				method = http.MethodPost
			}
			if got := s.Do(t, other.Token, method, theirs+path, "{}"); got.Status != http.StatusNotFound || !strings.Contains(got.Body, want) {
				t.Errorf("%s: %d %s", path, got.Status, got.Body)
			}
		}
		for path, want := range map[string]string{"/_secret": `{"repoTokenIds":{},"errors":[`, "/_provision": `{"repoFileUrls":{},"errors":[`} {
			got := s.Body(t, other.Token, http.MethodPost, theirs+path, `{"filters":{"ids":["1","77"]}}`, 200)
			if got != want+`{"code":"UPDATE_ERROR_CODE_NOT_FOUND","message":"there are no such repositories","ids":["1","77"]}]}` {
				t.Errorf("%s: %s", path, got)
			}
		}
	})
}
