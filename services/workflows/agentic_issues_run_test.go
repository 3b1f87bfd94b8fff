package workflows_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// looking is a workflow that finds its input, stores it and sends a notification.
const looking = `
name: looking
targetType: repository
inputs:
  - {name: found, type: object, required: true}
steps:
  - name: look
    type: foreach
    foreach: inputs.found.units
    next: [unit]
    matchingJoin: together
  - name: unit
    with: {output: "${{ item }}"}
    next: [together]
  - name: together
    type: join
    with: {output: "${{ branches.map(b, b.output.issues) }}"}
    next: [keep]
  - name: keep
    uses: issue.upsert
    with: {issues: "${{ steps.together.output }}", files: ["app/db.py", "app/views.py"]}
    next: [tell]
  - name: tell
    uses: notify
    with:
      title: "${{ string(steps.keep.output.total) }} issues"
      message: "${{ string(steps.keep.output.created) }} of them are new"
`

// hooks receives webhooks.
type hooks struct {
	*httptest.Server
	mu  sync.Mutex
	got []string
}

func newHooks(t testing.TB) *hooks {
	t.Helper()
	h := &hooks{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got = append(h.got, string(body))
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hooks) bodies() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

var sentAt = regexp.MustCompile(`"sent_at":"[^"]+"`)

func TestRunsFindIssuesAndTellPeople(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		var project int64
		err := f.Store.Write(tenant.NewContext(t.Context(), f.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			row, err := tx.Project.Create().SetName("acme/web").SetNameKey("acme/web").SetCreatedAt(store.Now()).Save(ctx)
			if err == nil {
				project = row.ID
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		to := newHooks(t)
		f.do(t, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/actions", f.DeploymentID),
			fmt.Sprintf(`{"notificationRule":{"name":"audits","channel":"webhook","is_enabled":true,"config":{"url":%q,"secret":"acme-hook-secret-1"}}}`, to.URL), 200)
		f.publish(t, looking)
		const sqli = `{"title":"SQL injection","class":"sqli","file":"app/db.py","startLine":42,"evidence":"q(a + b)","severity":"HIGH","cwes":"CWE-89","confidence":0.9}`
		const xss = `{"title":"XSS","class":"xss","file":"app/views.py","evidence":"<b>","severity":"medium"}`
		run := func(units string) (job, overview string) {
			job = f.trigger(t, fmt.Sprintf(`{"workflowType":"looking","repoId":"%d","gitRef":"main","inputs":{"found":{"units":%s}}}`, project, units))
			f.ended(t, job, "COMPLETED")
			return job, f.do(t, http.MethodGet, f.path("/jobs/id/"+job+"/overview"), "", 200)
		}
		first, overview := run(`[{"issues":[` + sqli + `]},{"issues":[]},{"issues":[` + xss + `,` + sqli + `]}]`)
		if !strings.Contains(overview, `"totalFindings":2,"vulnerableFindings":2,"bySeverity":{"critical":0,"high":1,"info":0,"low":0,"medium":1},"findings":[{"file":"app/db.py"`) {
			t.Errorf("got %s", overview)
		}
		run(`[{"issues":[` + sqli + `]}]`)
		l := &auditFixture{Server: f.Server}
		if got := titles(t, l.post(t, l.path("/search"), `{"filters":{"detectionStates":["DETECTION_STATE_NOT_DETECTED"]}}`)); !slices.Equal(got, []string{"XSS"}) {
			t.Errorf("not detected: %v", got)
		}
		if got := titles(t, l.post(t, l.path("/search"), `{"filters":{"workflowJobIds":["`+first+`"]},"sortField":"ISSUE_SORT_FIELD_SEVERITY"}`)); !slices.Equal(got, []string{"SQL injection", "XSS"}) {
			t.Errorf("detected first: %v", got)
		}
		soon(t, "both messages arrive", func() bool { return len(to.bodies()) == 2 })
		bodies := to.bodies()
		slices.Sort(bodies) // webhooks arrive in any order; sort by run id
		for i, want := range []string{
			`{"palisade_workflow":{"deployment_id":%d,"workflow":"looking","job_id":1,"project_id":%d,"title":"2 issues","message":"2 of them are new",T}}`,
			`{"palisade_workflow":{"deployment_id":%d,"workflow":"looking","job_id":2,"project_id":%d,"title":"1 issues","message":"0 of them are new",T}}`,
		} {
			if got := sentAt.ReplaceAllString(bodies[i], "T"); got != fmt.Sprintf(want, f.DeploymentID, project) {
				t.Errorf("got %s", got)
			}
		}
		// An invalid result fails the run and stores nothing.
		job := f.trigger(t, fmt.Sprintf(`{"workflowType":"looking","repoId":"%d","inputs":{"found":{"units":[{"issues":[%s,{"title":"x","severity":"dire"}]}]}}}`,
			project, strings.Replace(sqli, "q(a + b)", "other", 1)))
		f.ended(t, job, "FAILED")
		for _, task := range f.graph(t, job).Tasks {
			if task.StepID == "keep" && task.Attempts[0].ErrorSummary != "issues[1].severity must be one of info, low, medium, high, critical" {
				t.Errorf("got %+v", task.Attempts)
			}
		}
		if got := l.post(t, l.path("/counts"), `{}`); got != `{"count":"2"}` {
			t.Errorf("got %s", got)
		}
		if got := l.post(t, l.path("/counts"), `{"filters":{"detectionStates":["DETECTION_STATE_DETECTED"]}}`); got != `{"count":"1"}` {
			t.Errorf("a failed run changed a state: %s", got)
		}
		apitest.Golden(t, "run_issue_activity", f.do(t, http.MethodGet, l.path("/issue/2/activity"), "", 200))
	})
}
