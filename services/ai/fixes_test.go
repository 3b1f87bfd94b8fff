package ai_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aifix"
	"github.com/palisade/palisade/ent/project"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/llm/llmtest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

const vulnerable = "import db\r\ncur.execute(\"SELECT \" + name)\r\nprint(1)\r\n"

// fixes is a model that replaces the matched line.
func fixes(r llmtest.Request) llmtest.Reply {
	return llmtest.JSON(map[string]any{"replacement": `cur.execute("SELECT ?", [name])`, "explanation": "No text is built.\n![x](https://evil.example/x.png) @everyone"})
}

// connect connects a host and binds the project to a repository there.
func (s *modelled) connect(t testing.TB, kind, address, namespace, token, repository string) {
	t.Helper()
	s.call(t, http.MethodPost, fmt.Sprintf("/api/scm/deployments/%d/configs", s.DeploymentID),
		fmt.Sprintf(`{"type":%q,"namespace":%q,"baseUrl":%q,"accessToken":%q}`, kind, namespace, address, token), http.StatusCreated)
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Project.Update().Where(project.ID(s.projectID)).SetRepositoryURL(address + "/" + repository).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *modelled) autofix(t testing.TB, id int64) string {
	t.Helper()
	return s.call(t, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/issues/%d/autofix", s.DeploymentID, id), `{}`, http.StatusOK)
}

func (s *modelled) fixJob(t testing.TB, id int64, want int) string {
	t.Helper()
	return s.call(t, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/issues/%d/fix_jobs", s.DeploymentID, id), `{}`, want)
}

// fix waits for the end of the latest fix of a finding.
func (s *modelled) fix(t testing.TB, id int64) *ent.AiFix {
	t.Helper()
	var row *ent.AiFix
	apitest.Eventually(t, "the fix has ended", func() bool {
		row = s.Store.Reader.AiFix.Query().Where(aifix.FindingID(id)).Order(ent.Desc(aifix.FieldID)).FirstX(s.System(t))
		return row.Status != "requested"
	})
	return row
}

func TestAutofixOpensAPullRequest(t *testing.T) {
	t.Parallel()
	eachModelled(t, fixes, nil, func(t *testing.T, s *modelled) {
		h := hosttest.NewGitHub(t)
		h.Files = hosttest.Files{"main:app/db.py": vulnerable}
		s.connect(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "acme", h.Token, "acme/web")
		id := s.seed(t, fact{})
		apitest.Golden(t, "autofix", s.autofix(t, id))
		if body := s.autofix(t, id); !strings.Contains(body, "IN_FLIGHT_FIX_PENDING") || !strings.Contains(body, `"success":false`) {
			t.Error(body)
		}
		row := s.fix(t, id)
		pulls := h.Pulls()
		if row.Status != "opened" || len(pulls) != 1 || row.Branch != pulls[0].Head {
			t.Fatalf("%+v %v", row, pulls)
		}
		if want := strings.Replace(vulnerable, `cur.execute("SELECT " + name)`, `cur.execute("SELECT ?", [name])`, 1); h.File(row.Branch, "app/db.py") != want || h.File("main", "app/db.py") != vulnerable {
			t.Errorf("the branch has %q", h.File(row.Branch, "app/db.py"))
		}
		if p := pulls[0]; p.Title != "Fix sqli in db.py" || !strings.Contains(p.Body, "\n    ![x](https") || strings.Contains(p.Body, "\n![x]") {
			t.Errorf("%+v", p)
		}
		found, content := s.finding(t, id)
		if *found.ClickToFixState != "open" || len(content.GetClickToFixPrs()) != 1 || content.GetClickToFixPrs()[0].GetUrl() != row.PrURL || found.Status != "open" {
			t.Errorf("%v %v", found, content)
		}
		if body := s.autofix(t, id); !strings.Contains(body, "IN_FLIGHT_FIX_PENDING") {
			t.Errorf("with an open pull request: %s", body)
		}
		if asked := s.model.Requests()[0]; !strings.Contains(asked.Prompt, "1\timport db\n2\tcur.execute") {
			t.Error(asked.Prompt)
		}
	})
}

func TestFixJobAtGitLab(t *testing.T) {
	t.Parallel()
	eachModelled(t, fixes, nil, func(t *testing.T, s *modelled) {
		h := hosttest.NewGitLab(t)
		h.Files = hosttest.Files{"main:app/db.py": "# moved down\n\n" + vulnerable}
		s.connect(t, "SCM_TYPE_GITLAB_SELFMANAGED", h.URL, "acme/platform", h.Token, "acme/platform/web")
		id, gone, other := s.seed(t, fact{}), s.seed(t, fact{print: "gone", content: code("this is nowhere()")}), s.seed(t, fact{print: "b", ref: "refs/heads/next"})
		apitest.Golden(t, "fix_job", s.fixJob(t, id, http.StatusOK))
		if row := s.fix(t, id); row.Status != "opened" || len(h.Pulls()) != 1 {
			t.Errorf("%+v", row)
		}
		s.fixJob(t, gone, http.StatusOK)
		row := s.fix(t, gone)
		found, content := s.finding(t, gone)
		if row.Status != "failed" || len(content.GetClickToFixFailures()) != 1 || content.GetClickToFixFailures()[0].GetReason() != row.Error ||
			!strings.Contains(row.Error, "changed since the scan") || found.ClickToFixState != nil {
			t.Errorf("%+v %v", row, content.GetClickToFixFailures())
		}
		if body := s.fixJob(t, other, http.StatusOK); !strings.Contains(body, "NON_PRIMARY_BRANCH_DISABLED") {
			t.Error(body)
		}
		s.fixJob(t, id, http.StatusConflict)
		s.fixJob(t, 999999, http.StatusNotFound)
		s.fixJob(t, s.seed(t, fact{print: "c", state: "fixed"}), http.StatusBadRequest)
	})
}

// errorTypes returns the error types of an answer.
func errorTypes(t testing.TB, body string) string {
	t.Helper()
	var answer struct {
		Success bool
		Errors  []struct{ ErrorType, Message string }
	}
	decode(t, body, &answer)
	if answer.Success != (len(answer.Errors) == 0) {
		t.Errorf("%+v", answer)
	}
	var types []string
	for _, e := range answer.Errors {
		if e.Message == "" {
			t.Errorf("no text: %+v", e)
		}
		types = append(types, strings.TrimPrefix(strings.TrimPrefix(e.ErrorType, "AUTOFIX_ERROR_TYPE_"), "FIX_JOB_ERROR_TYPE_"))
	}
	return strings.Join(types, " ")
}

func TestWhatStandsInTheWayOfFixes(t *testing.T) {
	t.Parallel()
	eachModelled(t, fixes, func(c *config.Config) { c.AIMonthlyRuns = 1 }, func(t *testing.T, s *modelled) {
		other := s.AddTenant(t, "globex")
		otherProject, otherRule := s.ground(t, other, "")
		pkg := func(path string, fixed ...*findingsv1.FixRecommendation) *storev1.FindingContent {
			return &storev1.FindingContent{Location: &findingsv1.FindingLocation{FilePath: path, Line: 3}, FixRecommendations: fixed,
				FoundDependency: &findingsv1.FoundDependency{Package: "left-pad", Version: "1.0.0"}}
		}
		upgrade := &findingsv1.FixRecommendation{Package: "left-pad", Version: "1.0.1"}
		nowhere := code("x")
		nowhere.Location.Line = 0
		open := s.seed(t, fact{print: "open"})
		for _, c := range []struct {
			id        int64
			fix, jobs string
		}{
			{999999, "ISSUE_NOT_FOUND", ""},
			{s.seedIn(t, other, otherProject, otherRule, fact{}), "ISSUE_NOT_FOUND", ""},
			{s.seed(t, fact{print: "1", state: "removed"}), "ISSUE_NOT_FOUND", ""},
			{s.seed(t, fact{print: "2", kind: "secrets"}), "UNSUPPORTED_ISSUE_TYPE", "UNSUPPORTED_ISSUE_TYPE"},
			{s.seed(t, fact{print: "3", kind: "sca", content: pkg("package.json")}), "NO_RECOMMENDED_UPGRADE", "UNSUPPORTED_ISSUE_TYPE"},
			{s.seed(t, fact{print: "4", kind: "sca", content: pkg("package-lock.json", upgrade)}), "UNSUPPORTED_ISSUE_TYPE", "UNSUPPORTED_ISSUE_TYPE"},
			{s.seed(t, fact{print: "5", kind: "sca", content: pkg("package.json", upgrade)}), "SCM_CONFIG_NOT_FOUND", "UNSUPPORTED_ISSUE_TYPE"},
			{s.seed(t, fact{print: "6", content: nowhere}), "UNSUPPORTED_ISSUE_TYPE", "UNSUPPORTED_ISSUE_TYPE"},
			{s.seed(t, fact{print: "7", state: "fixed"}), "INVALID_ISSUE_STATE", ""},
			{s.seed(t, fact{print: "8", triage: "ignored"}), "INVALID_ISSUE_STATE", ""},
			{s.seed(t, fact{print: "9", ref: "refs/pull/17/merge"}), "INVALID_REPOSITORY", "NON_PRIMARY_BRANCH_DISABLED"},
			{open, "SCM_CONFIG_NOT_FOUND", "SCM_CONFIG_NOT_FOUND"},
		} {
			if got := errorTypes(t, s.autofix(t, c.id)); got != c.fix {
				t.Errorf("finding %d: autofix says %s, want %s", c.id, got, c.fix)
			}
			if c.jobs == "" {
				continue
			}
			if got := errorTypes(t, s.fixJob(t, c.id, http.StatusOK)); got != c.jobs {
				t.Errorf("finding %d: fix job says %s, want %s", c.id, got, c.jobs)
			}
		}
		s.requireConnection(t, open)
	})
}

// requireConnection tests each missing property of a connection, orders a fix of the finding, and then another beyond
// the quota.
func (s *modelled) requireConnection(t *testing.T, open int64) {
	t.Helper()
	h := hosttest.NewGitHub(t)
	h.Files = hosttest.Files{"main:app/db.py": vulnerable}
	s.connect(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "acme", h.Token, "acme/web")
	for _, c := range []struct {
		scopes *scmv1.ScmTokenScopes
		ok     bool
		want   string
	}{
		{&scmv1.ScmTokenScopes{ReadContents: true, WriteContents: true, WritePullRequest: true}, false, "SCM_TOKEN_FAILED"},
		{&scmv1.ScmTokenScopes{WriteContents: true, WritePullRequest: true}, true, "CODE_ACCESS_NOT_GRANTED"},
		{&scmv1.ScmTokenScopes{ReadContents: true, WriteContents: true}, true, "NO_WRITE_ACCESS"},
		{&scmv1.ScmTokenScopes{ReadContents: true, WriteContents: true, WritePullRequest: true}, true, ""},
	} {
		raw, _ := proto.Marshal(c.scopes)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.ScmConfig.Update().SetCheckedAt(1).SetCheckOk(c.ok).SetTokenScopes(raw).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if c.want != "" {
			if got := errorTypes(t, s.fixJob(t, open, http.StatusOK)); got != c.want {
				t.Errorf("fix job says %s, want %s", got, c.want)
			}
		}
		if got := errorTypes(t, s.autofix(t, open)); got != c.want {
			t.Errorf("autofix says %s, want %s", got, c.want)
		}
	}
	second := s.seed(t, fact{print: "second"})
	if a, b := errorTypes(t, s.autofix(t, second)), errorTypes(t, s.fixJob(t, second, http.StatusOK)); a != "CREDITS_EXHAUSTED" || b != a {
		t.Errorf("over the quota: %s, %s", a, b)
	}
	s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, second), http.StatusTooManyRequests)
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error { return tx.Project.Update().SetArchivedAt(1).Exec(ctx) })
	if err != nil {
		t.Fatal(err)
	}
	if a, b := errorTypes(t, s.autofix(t, second)), errorTypes(t, s.fixJob(t, second, http.StatusOK)); a != "INVALID_REPOSITORY" || b != "ARCHIVED_REPOSITORY" {
		t.Errorf("archived: %s, %s", a, b)
	}
	s.fix(t, open)
}

func TestFixesWithoutModel(t *testing.T) {
	t.Parallel()
	bare := &modelled{Server: apitest.Start(t, nil)}
	bare.projectID, bare.ruleID = bare.ground(t, bare.Tenant, "https://git.acme.test/acme/web")
	id := bare.seed(t, fact{})
	if a, b := errorTypes(t, bare.autofix(t, id)), errorTypes(t, bare.fixJob(t, id, http.StatusOK)); a != "AUTOFIX_NOT_ENABLED" || b != "AUTOFIX_DISABLED" {
		t.Errorf("%s, %s", a, b)
	}
}

func TestCodeIsReadAtTheHost(t *testing.T) {
	t.Parallel()
	s := startModelled(t, always("true_positive"), nil)
	h := hosttest.NewGitHub(t)
	h.Files = hosttest.Files{"main:app/db.py": vulnerable}
	s.connect(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "acme", h.Token, "acme/web")
	id := s.seed(t, fact{content: code("")})
	s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK)
	if a := s.analysis(t, id); a.Status != "done" || a.Error != "" {
		t.Fatalf("%+v", a)
	}
	if asked := s.model.Requests()[0].Prompt; !strings.Contains(asked, "matched code\ncur.execute") || !strings.Contains(asked, "3\tprint(1)") {
		t.Error(asked)
	}
	h.Answer(hosttest.Status(http.StatusNotFound, `{"message":"Not Found"}`))
	gone := s.seed(t, fact{print: "gone", content: code("")})
	s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, gone), http.StatusOK)
	if a := s.analysis(t, gone); a.Status != "failed" || !strings.Contains(a.Error, "source-code host") {
		t.Errorf("%+v", a)
	}
	stored := s.seed(t, fact{print: "stored"})
	s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, stored), http.StatusOK)
	if a := s.analysis(t, stored); a.Status != "done" {
		t.Errorf("stored lines suffice: %+v", a)
	}
}
