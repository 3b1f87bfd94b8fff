package scm_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/branchchange"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

const accepted = `{"status":"accepted"}`

// web is the repository of the recorded events at GitHub.
var web = hosttest.Repository{ID: 186853002, Name: "acme/web", DefaultBranch: "main", Visibility: "private"}

// synced is hooked with a synchronised repository.
func (c configCaller) synced(t testing.TB) (*hosttest.GitHub, receiver, int64) {
	t.Helper()
	h, r := c.hooked(t)
	stillOpen(h)
	id := c.Store.Reader.ScmConfig.Query().OnlyIDX(c.System(t))
	h.Repositories = []hosttest.Repository{web}
	c.sync(t, id)
	return h, r, id
}

// branchChanges lists the changes of primary branches.
func (c configCaller) branchChanges(t testing.TB) (list []string) {
	t.Helper()
	for _, row := range c.Store.Reader.BranchChange.Query().Order(ent.Asc(branchchange.FieldID)).AllX(c.System(t)) {
		list = append(list, gitref.Short(row.FromRef)+" to "+gitref.Short(row.ToRef))
	}
	return list
}

// TestRepositoryEvents: names, archive state and deletion follow the host without a synchronisation.
func TestRepositoryEvents(t *testing.T) {
	t.Parallel()
	for name, hidden := range map[string]bool{"by what the host says": false, "by the event": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachConfig(t, func(t *testing.T, s configCaller) { repositoryEvents(t, s, hidden) })
		})
	}
}

func repositoryEvents(t *testing.T, s configCaller, hidden bool) {
	h, r, _ := s.synced(t)
	before := s.project(t, "acme/web")
	send := func(now hosttest.Repository, changes ...string) {
		t.Helper()
		if h.Repositories = []hosttest.Repository{now}; hidden {
			h.Repositories = nil
		}
		r.gitHub(t, "repository", event(t, "github_repository", changes...), 200, accepted)
		s.settle(t)
	}
	site := web
	site.Name = "acme/site"
	send(site)
	if row := s.project(t, "acme/site"); row.ID != before.ID || row.RepositoryURL != h.URL+"/acme/site" || len(s.names(t)) != 1 {
		t.Errorf("after the rename: %+v", row)
	}
	archived := site
	archived.Archived = true
	send(archived, `"renamed"`, `"archived"`, `"archived": false`, `"archived": true`)
	if row := s.project(t, "acme/site"); row.ArchivedAt == nil {
		t.Errorf("not archived: %+v", row)
	}
	s.Upload(t, "acme/site", mainRef, sarifOf(t, 42, 90))
	if row := s.project(t, "acme/site"); row.ArchivedAt == nil {
		t.Error("an upload brought back what the host archived")
	}
	path := "/api/v1/deployments/" + s.Slug + "/projects/acme/site"
	if body := s.Body(t, s.Token, http.MethodPatch, path, `{"archived":false}`, http.StatusOK); strings.Contains(body, `"archived"`) {
		t.Errorf("brought back by an administrator: %s", body)
	}
	send(archived, `"renamed"`, `"edited"`, `"archived": false`, `"archived": true`)
	if row := s.project(t, "acme/site"); row.ArchivedAt != nil {
		t.Error("the host overrules the administrator, though it says the same as before")
	}
	send(site, `"renamed"`, `"unarchived"`)
	send(archived, `"renamed"`, `"archived"`, `"archived": false`, `"archived":  true`)
	if row := s.project(t, "acme/site"); row.ArchivedAt == nil {
		t.Error("archived again, but not here")
	}
	trunk := site
	trunk.DefaultBranch = "trunk"
	send(trunk, `"renamed"`, `"edited"`, `"main"`, `"trunk"`)
	if row := s.project(t, "acme/site"); row.DefaultBranch != "refs/heads/trunk" || row.ArchivedAt != nil {
		t.Errorf("edited: %+v", row)
	}
	wantList(t, "branches before and after", s.branchChanges(t), "main to trunk")
	send(trunk, `"renamed"`, `"deleted"`)
	if row := s.project(t, "acme/site"); row.LeftHostAt == nil || row.ArchivedAt != nil {
		t.Errorf("deleted: %+v", row)
	}
	fresh := hosttest.Repository{ID: 9, Name: "acme/site", DefaultBranch: "main", Visibility: "private"}
	send(fresh, `"renamed"`, `"created"`, "186853002", "9")
	wantList(t, "after another repository took the name", s.names(t), "acme/site~186853002 186853002")
	if changes := s.hostChanges(t, before.ID); len(changes) < 7 {
		t.Errorf("audited %q", changes)
	}
}

// TestEventsBindNothing: only synchronisations and administrators bind projects, and only the former make them.
func TestEventsBindNothing(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r := s.hooked(t)
		h.Repositories = []hosttest.Repository{web, {ID: 9, Name: "acme/fresh", DefaultBranch: "main", Visibility: "private"}}
		r.gitHub(t, "repository", event(t, "github_repository", `"renamed"`, `"edited"`, "acme/site", "acme/web"), 200, accepted)
		r.gitHub(t, "repository", event(t, "github_repository", `"renamed"`, `"created"`, "acme/site", "acme/fresh", "186853002", "9"), 200, accepted)
		s.settle(t)
		wantList(t, "projects", s.names(t), "acme/web -")
		if row := s.project(t, "acme/web"); row.RepositoryURL != "" || row.BoundBy != "" {
			t.Errorf("bound to %q by %q", row.RepositoryURL, row.BoundBy)
		}
	})
}

// TestLateRename: what the host says now counts.
func TestLateRename(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r, id := s.synced(t)
		h.Repositories[0].Name = "acme/store"
		s.sync(t, id)
		h.Repositories = append(h.Repositories, hosttest.Repository{ID: 9, Name: "acme/site", DefaultBranch: "main", Visibility: "private"})
		r.gitHub(t, "repository", event(t, "github_repository"), 200, accepted)
		s.settle(t)
		wantList(t, "projects", s.names(t), "acme/store 186853002")
	})
}

// TestLeftRepositories: projects whose repository is not in the list any more are shown, and nothing else happens.
func TestLeftRepositories(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, _, id := s.synced(t)
		s.seedProject(t, "acme/bound", "")
		api := hosttest.Repository{ID: 2, Name: "acme/api", DefaultBranch: "main", Visibility: "private"}
		h.Repositories = append(h.Repositories, api)
		s.bind(t, "acme/bound", h.URL+"/acme/bound")
		apitest.Eventually(t, "a repository that the host does not find is shown", func() bool { return s.project(t, "acme/bound").LeftHostAt != nil })
		s.sync(t, id)
		left := func(want ...string) {
			t.Helper()
			body := s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/repos/search", s.DeploymentID), `{"filters":{"leftHost":true}}`, http.StatusOK)
			if n := strings.Count(body, `"leftHostAt":"`); n != len(want) {
				t.Errorf("%d repositories left, want %q: %s", n, want, body)
			}
			for _, name := range want {
				if !strings.Contains(body, `"name":"`+name+`"`) {
					t.Errorf("%s is not in %s", name, body)
				}
			}
		}
		left("acme/bound")
		stands := s.stands(t, s.Tenant)
		h.Repositories = []hosttest.Repository{api}
		s.sync(t, id)
		left("acme/bound", "acme/web")
		wantList(t, "findings", s.stands(t, s.Tenant), stands...)
		h.Repositories = []hosttest.Repository{api, web}
		s.sync(t, id)
		left("acme/bound")
	})
}

// TestDeletedBranch ends a ref, but never the default or the primary branch.
func TestDeletedBranch(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r, _ := s.synced(t)
		const feature, release = "refs/heads/feature/login", "refs/heads/release"
		for _, ref := range []string{feature, release} {
			s.Upload(t, "acme/web", ref, sarifOf(t, 42))
		}
		s.Body(t, s.Token, http.MethodPatch, "/api/v1/deployments/"+s.Slug+"/projects/acme/web", `{"primary_branch":"release"}`, http.StatusOK)
		n := 0
		remove := func(branch string) {
			t.Helper()
			n++ // two equal bodies would be one event
			r.gitHub(t, "delete", event(t, "github_delete", `"feature/login"`, `"`+branch+`"`, `"pusher_type": "user"`, fmt.Sprintf(`"pusher_type": "user", "n": %d`, n)), 200, accepted)
			s.settle(t)
		}
		open := func(ref string) string { return ref + " open" }
		others := []string{open(mainRef), open(mainRef), open(pullRef), open(pullRef)}
		remove("main")
		remove("release")
		wantList(t, "the default and the primary branch", s.stands(t, s.Tenant), append(others, open(feature), open(release))...)
		remove("feature/login")
		wantList(t, "a deleted branch", s.stands(t, s.Tenant), append(others, feature+" removed", open(release))...)
		if got := s.events(t); len(got) != 1 || got[0] != "removed removed branch deleted" {
			t.Errorf("events %q", got)
		}
		s.Upload(t, "acme/web", feature, sarifOf(t, 42))
		wantList(t, "a branch that is there again", s.stands(t, s.Tenant), append(others, open(feature), open(release))...)

		h.Repositories[0].DefaultBranch = "trunk" // renamed at the host, and told by the deletion only
		remove("main")
		if row := s.project(t, "acme/web"); row.DefaultBranch != "refs/heads/trunk" {
			t.Errorf("the default branch is %s", row.DefaultBranch)
		}
		wantList(t, "a default branch below a primary one", s.branchChanges(t), "main to release")
		wantList(t, "a former default branch", s.stands(t, s.Tenant),
			mainRef+" removed", mainRef+" removed", open(pullRef), open(pullRef), open(feature), open(release))
		tag := event(t, "github_delete", `"ref_type": "branch"`, `"ref_type": "tag"`)
		r.gitHub(t, "delete", tag, 200, `{"status":"ignored"}`)
		push := fmt.Sprintf(`{"ref":"refs/heads/feature/login","deleted":true,"repository":{"id":%d,"full_name":"acme/web"}}`, web.ID)
		r.gitHub(t, "push", push, 200, accepted)
		s.settle(t)
		wantList(t, "a deletion as a push", s.stands(t, s.Tenant)[4:], feature+" removed", open(release))
	})
}

// TestGitLabRepositoryEvents: GitLab tells groups of pushes, and of created and deleted projects. Other events show
// that a project has another name.
func TestGitLabRepositoryEvents(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitLab(t, `,"subscribe":true`)
		h.MergeRequests = map[int64]hosttest.Request{17: {State: "open"}} // a job asks the host about them
		hook := h.Hooks()[0]
		wantList(t, "subscribed", hook.Events, "merge_requests_events", "note_events", "project_events", "push_events")
		r := s.receiverOf(t, hook)
		send := func(name, body, want string) {
			t.Helper()
			r.answer(t, body, 200, want, "X-Gitlab-Event", name, "X-Gitlab-Token", r.secret)
			s.settle(t)
		}
		const feature, request = "refs/heads/feature/login", "refs/merge-requests/17/head"
		h.Repositories = []hosttest.Repository{{ID: 5, Name: "acme/platform/api", DefaultBranch: "main", Visibility: "private"}}
		s.sync(t, id)
		for _, ref := range []string{feature, request} {
			s.Upload(t, "acme/platform/api", ref, sarifOf(t, 42))
		}
		push := event(t, "gitlab_push")
		send("Push Hook", strings.ReplaceAll(push, `"after": "0000000000000000000000000000000000000000"`, `"after": "95790bf891e76fee5e1747ab589903a6a1f80f22"`), `{"status":"ignored"}`)
		send("Push Hook", push, accepted)
		wantList(t, "findings", s.stands(t, s.Tenant), feature+" removed", request+" open")

		h.Repositories[0].Name = "acme/platform/backend"
		send("Merge Request Hook", event(t, "gitlab_merge_request", "acme/platform/api", "acme/platform/backend"), accepted)
		wantList(t, "findings", s.stands(t, s.Tenant), feature+" removed", request+" removed")
		apitest.Eventually(t, "the project follows its new name", func() bool { return s.names(t)[0] == "acme/platform/backend 5" })

		send("Project Hook", event(t, "gitlab_project", "acme/platform/api", "acme/platform/backend"), accepted)
		if row := s.project(t, "acme/platform/backend"); row.LeftHostAt == nil {
			t.Errorf("deleted: %+v", row)
		}
	})
}
