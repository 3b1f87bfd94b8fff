package scm_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/remediationpolicy"
	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// names lists the projects as "name id", sorted by name. The id is the one of the repository.
func (c configCaller) names(t testing.TB) (list []string) {
	t.Helper()
	for _, row := range c.Store.Reader.Project.Query().Where(project.DeploymentID(c.DeploymentID)).AllX(c.System(t)) {
		id := "-"
		if row.RepositoryID != nil {
			id = *row.RepositoryID
		}
		list = append(list, row.Name+" "+id)
	}
	slices.Sort(list)
	return list
}

// stillOpen says that pull request 17 is open: a job asks the host about pull requests of bound projects.
func stillOpen(h *hosttest.GitHub) { h.PullRequests = map[int64]hosttest.Request{17: {State: "open"}} }

// bind binds a project to a repository as an administrator.
func (c configCaller) bind(t testing.TB, name, url string) {
	t.Helper()
	c.Body(t, c.Token, http.MethodPatch, "/api/v1/deployments/"+c.Slug+"/projects/"+name, fmt.Sprintf(`{"repository_url":%q}`, url), http.StatusOK)
}

// hostChanges are the audited changes of a project by synchronisations and webhooks, as "before -> after" names.
func (c configCaller) hostChanges(t testing.TB, id int64) (list []string) {
	t.Helper()
	for _, entry := range c.Store.Reader.AuditEntry.Query().Where(auditentry.ActorKindIn("job", "host")).Order(ent.Asc(auditentry.FieldID)).AllX(c.System(t)) {
		for _, change := range entry.Changes {
			if change.Kind == "project" && change.ID == fmt.Sprint(id) {
				list = append(list, fmt.Sprintf("%s -> %s", change.Before, change.After))
			}
		}
	}
	return list
}

// TestRenamedRepository: a project follows its repository, with all that it has.
func TestRenamedRepository(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r := s.hooked(t)
		stillOpen(h)
		id := s.Store.Reader.ScmConfig.Query().OnlyIDX(s.System(t))
		h.Repositories = []hosttest.Repository{{ID: 186853002, Name: "acme/web", DefaultBranch: "main", Visibility: "private"}}
		s.sync(t, id)
		before := s.project(t, "acme/web")
		if before.RepositoryID == nil || *before.RepositoryID != "186853002" {
			t.Fatalf("the id of the repository: %v", before.RepositoryID)
		}
		r.gitHub(t, "pull_request_review_comment", command(t, 1, "/fp the input is a constant"), 200, `{"status":"accepted"}`)
		s.settle(t)
		s.Body(t, s.Token, http.MethodPut, "/api/v1/deployments/"+s.Slug+"/projects/acme/web/tags", `{"tags":["backend"]}`, http.StatusOK)
		decided := s.stands(t, s.Tenant)

		for _, name := range []string{"acme/site", "acme/Site"} {
			h.Repositories[0].Name = name
			s.sync(t, id)
			wantList(t, "projects", s.names(t), name+" 186853002")
			row := s.project(t, name)
			if row.ID != before.ID || row.RepositoryURL != h.URL+"/"+name || row.URL != h.URL+"/"+name {
				t.Errorf("%+v, want project %d", row, before.ID)
			}
			wantList(t, "findings", s.stands(t, s.Tenant), decided...)
			if body := s.Get(t, "/api/v1/deployments/"+s.Slug+"/projects/"+name); !strings.Contains(body, `"backend"`) || !strings.Contains(body, `"repository_id":"186853002"`) {
				t.Errorf("project %s", body)
			}
		}
		changes := s.hostChanges(t, before.ID)
		if len(changes) != 3 || !strings.Contains(changes[1], "acme/web") || !strings.Contains(changes[1], "acme/site") || !strings.Contains(changes[2], "acme/Site") {
			t.Errorf("audited %q", changes)
		}
		r.gitHub(t, "pull_request", event(t, "github_pull_request", "acme/web", "acme/Site"), 200, `{"status":"accepted"}`)
		s.settle(t)
		stands := s.stands(t, s.Tenant)
		if !strings.HasPrefix(stands[2], pullRef+" removed") || !strings.HasPrefix(stands[3], pullRef+" removed") || !strings.HasPrefix(stands[1], mainRef+" open") {
			t.Errorf("after the request was closed under the new name: %q", stands)
		}
	})
}

// TestReusedName: a new repository that takes an old name inherits nothing, in whatever order they are listed.
func TestReusedName(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, "")
		list := func(names map[int64]string) {
			t.Helper()
			h.Repositories = nil
			for repository, name := range names {
				h.Repositories = append(h.Repositories, hosttest.Repository{ID: repository, Name: name, DefaultBranch: "main", Visibility: "private"})
			}
			s.sync(t, id)
		}
		list(map[int64]string{1: "acme/web", 2: "acme/api"})
		s.Upload(t, "acme/web", mainRef, sarifOf(t, 42))
		web, api := s.project(t, "acme/web").ID, s.project(t, "acme/api").ID

		list(map[int64]string{2: "acme/api", 3: "acme/web"}) // the first repository was deleted
		wantList(t, "projects", s.names(t), "acme/api 2", "acme/web 3", "acme/web~1 1")
		if s.project(t, "acme/web~1").ID != web || s.project(t, "acme/web").ID == web {
			t.Error("the new repository has the project of the old one")
		}
		if row := s.project(t, "acme/web~1"); row.RepositoryURL != "" || row.LeftHostAt == nil {
			t.Errorf("the old project reads the code of the new repository: %+v", row)
		}
		s.Upload(t, "acme/web", mainRef, sarifOf(t))
		wantList(t, "findings", s.stands(t, s.Tenant), mainRef+" open")

		list(map[int64]string{1: "acme/site", 2: "acme/api", 3: "acme/web"}) // it was only hidden, and renamed
		wantList(t, "projects", s.names(t), "acme/api 2", "acme/site 1", "acme/web 3")
		if row := s.project(t, "acme/site"); row.RepositoryURL != h.URL+"/acme/site" || row.LeftHostAt != nil {
			t.Errorf("the old project does not follow its repository: %+v", row)
		}

		list(map[int64]string{1: "acme/api", 2: "acme/web", 3: "acme/site"}) // they exchange their names
		wantList(t, "projects", s.names(t), "acme/api 1", "acme/site 3", "acme/web 2")
		if s.project(t, "acme/api").ID != web || s.project(t, "acme/web").ID != api {
			t.Error("the projects did not follow their repositories")
		}
	})
}

// TestNameTakenBeforeSync: the CI of a renamed repository may upload under the new name before a synchronisation.
func TestNameTakenBeforeSync(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, "")
		h.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/web", DefaultBranch: "main", Visibility: "private"}}
		s.sync(t, id)
		web := s.project(t, "acme/web").ID
		s.Upload(t, "acme/site", mainRef, sarifOf(t, 42))
		early := s.project(t, "acme/site").ID
		h.Repositories[0].Name = "acme/site"
		s.sync(t, id)
		wantList(t, "projects", s.names(t), "acme/site 1", fmt.Sprintf("acme/site~project-%d -", early))
		if s.project(t, "acme/site").ID != web {
			t.Error("the repository has another project")
		}
		s.sync(t, id)
		wantList(t, "after another synchronisation", s.names(t), "acme/site 1", fmt.Sprintf("acme/site~project-%d -", early))
	})
}

// TestNameTakenInAnotherCase: names that differ only in letter case are one name.
func TestNameTakenInAnotherCase(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, "")
		h.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/api", DefaultBranch: "main", Visibility: "private"}}
		s.sync(t, id)
		api := s.project(t, "acme/api").ID
		s.Upload(t, "ACME/Api2", mainRef, sarifOf(t, 42))
		early := s.project(t, "ACME/Api2").ID
		h.Repositories[0].Name = "acme/api2"
		for range 2 {
			s.sync(t, id)
			wantList(t, "projects", s.names(t), fmt.Sprintf("ACME/Api2~project-%d -", early), "acme/api2 1")
		}
		if s.project(t, "acme/api2").ID != api {
			t.Error("the repository has another project")
		}
	})
}

// TestAdoptedRepositories: projects without an id get it by the URL that they are bound to, else once by their name.
func TestAdoptedRepositories(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, "")
		s.seedProject(t, "Acme/API", "")
		s.seedProject(t, "acme/mirror", "https://elsewhere.example.com/acme/mirror")
		s.seedProject(t, "acme/held", "")
		for _, name := range []string{"shop", "mono/a", "mono/b"} {
			s.seedProject(t, name, "")
		}
		for i, name := range []string{"acme/web", "acme/api", "acme/mono", "acme/mirror", "acme/held"} {
			h.Repositories = append(h.Repositories, hosttest.Repository{ID: int64(i + 1), Name: name, DefaultBranch: "main", Visibility: "private"})
		}
		s.bind(t, "shop", h.URL+"/Acme/Web.git/")
		s.bind(t, "mono/a", h.URL+"/acme/mono")
		s.bind(t, "mono/b", h.URL+"/acme/mono/")
		s.bind(t, "acme/held", h.URL+"/acme/other")
		s.sync(t, id)
		want := []string{"Acme/API 2", "acme/held -", "acme/mirror -", "mono/a 3", "mono/b 3", "shop 1"}
		wantList(t, "projects", s.names(t), want...)
		shop := s.project(t, "shop")
		if shop.RepositoryURL != h.URL+"/Acme/Web.git/" || shop.BoundBy != "admin" {
			t.Errorf("what the administrator bound: %q by %q", shop.RepositoryURL, shop.BoundBy)
		}
		h.Repositories[0].Name, h.Repositories[2].Name = "acme/store", "acme/parts"
		s.sync(t, id)
		wantList(t, "after a rename", s.names(t), want...)
		for name, url := range map[string]string{"shop": "/acme/store", "mono/a": "/acme/parts", "mono/b": "/acme/parts"} {
			if row := s.project(t, name); row.RepositoryURL != h.URL+url || row.BoundBy != "admin" {
				t.Errorf("%s is bound to %q by %q", name, row.RepositoryURL, row.BoundBy)
			}
		}
	})
}

// TestMovedRepository: a repository that moves to another connected namespace keeps its project.
func TestMovedRepository(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, from := s.gitHub(t, "")
		to, _ := s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "globex", h.Token, "")
		h.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/web", DefaultBranch: "main", Visibility: "private"}}
		s.sync(t, from)
		web := s.project(t, "acme/web").ID
		h.Repositories[0].Name = "globex/web"
		s.sync(t, from)
		s.sync(t, to)
		wantList(t, "projects", s.names(t), "globex/web 1")
		if row := s.project(t, "globex/web"); row.ID != web || row.RepositoryURL != h.URL+"/globex/web" {
			t.Errorf("%+v, want project %d", row, web)
		}
	})
}

// TestTwoHostsWithOneID: an id counts at one host.
func TestTwoHostsWithOneID(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		gitHub, first := s.gitHub(t, "")
		gitLab, second := s.gitLab(t, "")
		gitHub.Repositories = []hosttest.Repository{{ID: 5, Name: "acme/web", DefaultBranch: "main", Visibility: "private"}}
		gitLab.Repositories = []hosttest.Repository{{ID: 5, Name: "acme/platform/api", DefaultBranch: "main", Visibility: "private"}}
		s.sync(t, first)
		s.sync(t, second)
		s.sync(t, first)
		hosts := strings.HasPrefix(s.project(t, "acme/web").RepositoryURL, gitHub.URL) && strings.HasPrefix(s.project(t, "acme/platform/api").RepositoryURL, gitLab.URL)
		if got := s.names(t); len(got) != 2 || !hosts && gitHub.URL != gitLab.URL {
			t.Errorf("projects %q", got)
		}
	})
}

// TestEventsReachAllBoundProjects: projects with another name than the repository, and the parts of a monorepo, get
// webhooks and commands; a project that only has the name does not.
func TestEventsReachAllBoundProjects(t *testing.T) {
	t.Parallel()
	for name, synchronised := range map[string]bool{"by URL": false, "by id": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachConfig(t, func(t *testing.T, s configCaller) { eventsReachAllBoundProjects(t, s, synchronised) })
		})
	}
}

func eventsReachAllBoundProjects(t *testing.T, s configCaller, synchronised bool) {
	h, id := s.gitHub(t, `,"subscribe":true`)
	r := s.receiverOf(t, h.Hooks()[0])
	stillOpen(h)
	h.Writers = []string{"octavia"}
	h.Comments = []hosttest.Comment{{ID: thread, Author: "palisade-bot", Body: "SQL from input", Path: "app/login.go", Line: 42}}
	s.toggle(t, s.Tenant, true)
	for _, name := range []string{"shop", "mono/a", "acme/web"} {
		s.Upload(t, name, pullRef, sarifOf(t, 42))
	}
	if synchronised {
		h.Repositories = []hosttest.Repository{{ID: 186853002, Name: "acme/web", DefaultBranch: "main", Visibility: "private"}}
	}
	s.bind(t, "shop", h.URL+"/acme/web")
	s.bind(t, "mono/a", h.URL+"/acme/web.git")
	s.bind(t, "acme/web", h.URL+"/acme/elsewhere")
	if synchronised {
		s.sync(t, id)
	}
	r.gitHub(t, "pull_request_review_comment", command(t, 1, "/fp the input is a constant"), 200, `{"status":"accepted"}`)
	s.settle(t)
	const ignored = pullRef + " ignored false_positive: the input is a constant"
	wantList(t, "after the command", s.stands(t, s.Tenant), ignored, ignored, pullRef+" open")
	if replies := h.Replies(thread); len(replies) != 1 || !strings.Contains(replies[0].Body, "Findings 1, 2 were ignored") {
		t.Errorf("replies %+v", replies)
	}
	r.gitHub(t, "pull_request", event(t, "github_pull_request"), 200, `{"status":"accepted"}`)
	s.settle(t)
	var states []string
	for _, f := range s.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).AllX(s.System(t)) {
		states = append(states, f.State)
	}
	wantList(t, "after the request was closed", states, "removed", "removed", "unresolved")
	for _, name := range []string{"shop", "mono/a"} {
		if row := s.project(t, name); row.RepositoryID == nil || *row.RepositoryID != "186853002" {
			t.Errorf("%s does not know its repository: %v", name, row.RepositoryID)
		}
	}
}

// TestEventsOfAReplacedRepository: an event about a repository that has the name of another one changes nothing.
func TestEventsOfAReplacedRepository(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, r := s.hooked(t)
		stillOpen(h)
		h.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/web", DefaultBranch: "main", Visibility: "private"}}
		s.sync(t, s.Store.Reader.ScmConfig.Query().OnlyIDX(s.System(t)))
		before := s.stands(t, s.Tenant)
		r.gitHub(t, "pull_request", event(t, "github_pull_request"), 200, `{"status":"accepted"}`)
		s.settle(t)
		wantList(t, "findings", s.stands(t, s.Tenant), before...)
	})
}

// TestReboundProject: a project that an administrator binds to another repository forgets what the host said before.
func TestReboundProject(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, "")
		h.Repositories = []hosttest.Repository{
			{ID: 1, Name: "acme/web", DefaultBranch: "main", Visibility: "private"}, {ID: 2, Name: "acme/api", DefaultBranch: "main", Visibility: "private"},
		}
		s.sync(t, id)
		s.bind(t, "acme/web", h.URL+"/acme/web/") // the same
		if row := s.project(t, "acme/web"); row.RepositoryID == nil {
			t.Error("the id is forgotten though the repository is the same")
		}
		s.bind(t, "acme/web", h.URL+"/acme/api")
		apitest.Eventually(t, "the repository is read", func() bool {
			row := s.project(t, "acme/web")
			return row.RepositoryID != nil && *row.RepositoryID == "2"
		})
		s.sync(t, id)
		wantList(t, "projects", s.names(t), "acme/api 2", "acme/web 2")
	})
}

// TestPoliciesFollowRepositories: a policy names the renamed project. If another repository takes the name, a policy
// that includes the project includes both, and one that excludes it follows.
func TestPoliciesFollowRepositories(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, "")
		list := func(names ...string) {
			t.Helper()
			h.Repositories = nil
			for i, name := range names {
				if name != "" {
					h.Repositories = append(h.Repositories, hosttest.Repository{ID: int64(i + 1), Name: name, DefaultBranch: "main", Visibility: "private"})
				}
			}
			s.sync(t, id)
		}
		list("acme/web")
		include := s.policy(t, &policiesv1.RemediationPolicyCondition{Type: "project", Values: []string{"acme/web"}, Mode: "include"})
		exclude := s.policy(t, &policiesv1.RemediationPolicyCondition{Type: "project", Values: []string{"acme/web"}, Mode: "exclude"})

		list("acme/site")
		wantList(t, "including", s.policyValues(t, include), "acme/site")
		wantList(t, "excluding", s.policyValues(t, exclude), "acme/site")

		list("", "acme/site")
		wantList(t, "including after the name was taken", s.policyValues(t, include), "acme/site", "acme/site~1")
		wantList(t, "excluding after the name was taken", s.policyValues(t, exclude), "acme/site~1")

		list("acme/api", "acme/site")
		wantList(t, "including in the end", s.policyValues(t, include), "acme/site", "acme/api")
		wantList(t, "excluding in the end", s.policyValues(t, exclude), "acme/api")
	})
}

// policy stores a policy with one condition.
func (c configCaller) policy(t testing.TB, condition *policiesv1.RemediationPolicyCondition) (slug string) {
	t.Helper()
	slug = "policy-" + condition.GetMode()
	err := c.Store.Write(tenant.NewContext(t.Context(), c.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		create := tx.RemediationPolicy.Create().SetSlug(slug).SetPosition(0).SetActive(true).SetCreatedAt(store.Now()).SetUpdatedAt(store.Now())
		_, err := remediation.Store(create.Mutation(), &policiesv1.RemediationPolicy{
			Slug: slug, Name: slug, Active: true, Actions: []*policiesv1.RemediationPolicyAction{{Type: "block"}},
			Filters: &policiesv1.RemediationPolicyFilters{Mode: "all", Conditions: []*policiesv1.RemediationPolicyCondition{condition}},
		})
		if err != nil {
			return err
		}
		return create.Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return slug
}

// policyValues are the values of the condition of a policy.
func (c configCaller) policyValues(t testing.TB, slug string) []string {
	t.Helper()
	row := c.Store.Reader.RemediationPolicy.Query().Where(remediationpolicy.Slug(slug)).OnlyX(tenant.NewContext(t.Context(), c.DeploymentID))
	stored, err := remediation.Stored(row)
	if err != nil {
		t.Fatal(err)
	}
	return stored.GetFilters().GetConditions()[0].GetValues()
}
