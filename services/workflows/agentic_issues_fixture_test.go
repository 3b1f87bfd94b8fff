package workflows_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/issues"
	"github.com/palisade/palisade/services/workflows/step"
)

// auditFixture is a deployment with issues found by workflows.
type auditFixture struct {
	*apitest.Server
	web, api int64
	runs     []int64
	ids      map[string]int64 // issue ids by title
}

// path builds the path of an operation on issues.
func (l *auditFixture) path(format string, args ...any) string {
	return fmt.Sprintf("/api/issues/%d", l.DeploymentID) + fmt.Sprintf(format, args...)
}

func (l *auditFixture) post(t testing.TB, path, body string) string {
	t.Helper()
	return l.Body(t, l.Token, http.MethodPost, path, body, http.StatusOK)
}

// newAuditFixture creates two projects and three runs that find four issues.
func newAuditFixture(t testing.TB, s *apitest.Server) *auditFixture {
	t.Helper()
	l := &auditFixture{Server: s, ids: map[string]int64{}}
	l.write(t, func(ctx context.Context, tx *ent.Tx) error {
		for name, id := range map[string]*int64{"acme/web": &l.web, "acme/api": &l.api} {
			row, err := tx.Project.Create().SetName(name).SetNameKey(name).SetCreatedAt(store.Now()).Save(ctx)
			if err != nil {
				return err
			}
			*id = row.ID
		}
		return nil
	})
	l.detect(t, "code-audit", &l.web, "main", issues.Found{
		Title: "SQL injection in user lookup", Description: "The id goes into the query.", Reasoning: "uid comes from the request.", Severity: "high",
		Class: "SQL injection", File: "app/db.py", StartLine: 42, EndLine: 43, Evidence: `db.execute("SELECT * FROM users WHERE id = " + uid)`,
		CWEs: []string{"CWE-89"}, OWASPs: []string{"A03:2021"}, Actions: []string{"Use a bound parameter"}, Domains: []string{"accounts"},
	}, issues.Found{
		Title: "Größe 100%_ unescaped", Severity: "medium", Class: "xss", File: "app/views.py", StartLine: 7, Evidence: "return '<b>' + name",
		Identities: []string{"svc-render"}, DependencyPaths: []string{"web > jinja"}, DirectDependencies: []string{"jinja"},
	})
	l.detect(t, "nightly", &l.api, "release", issues.Found{
		Title: "Key in the log", Reasoning: "The header is printed.", Severity: "critical", Class: "leak", File: "cmd/main.go", StartLine: 3, Evidence: "log.Print(h)",
	})
	l.detect(t, "inventory", nil, "", issues.Found{Title: "Unused account", Severity: "info", Class: "hygiene", Evidence: "svc-old", Identities: []string{"svc-old"}})
	return l
}

func (l *auditFixture) write(t testing.TB, fn func(ctx context.Context, tx *ent.Tx) error) {
	t.Helper()
	if err := l.Store.Write(tenant.NewContext(t.Context(), l.DeploymentID), fn); err != nil {
		t.Fatal(err)
	}
}

// detect performs a run that reports results.
func (l *auditFixture) detect(t testing.TB, workflow string, project *int64, ref string, found ...issues.Found) {
	t.Helper()
	l.write(t, func(ctx context.Context, tx *ent.Tx) error {
		run, err := tx.WorkflowRun.Create().SetWorkflow(workflow).SetVersionID(1).SetNillableProjectID(project).SetStatus("running").SetGitRef(ref).
			SetTriggerSource("manual").SetEventSource("api").SetActorKind("user").SetActorID(1).SetInputs([]byte("{}")).SetSubmittedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		l.runs = append(l.runs, run.ID)
		_, err = issues.Upsert(ctx, tx, step.Call{
			DeploymentID: l.DeploymentID, RunID: run.ID, Workflow: workflow, Step: "store", ProjectID: project, GitRef: ref, TriggerSource: "manual",
		}, found, nil)
		if err != nil {
			return err
		}
		if run, err = run.Update().SetStatus("completed").SetFinishedAt(store.Now()).Save(ctx); err != nil {
			return err
		}
		return issues.RunEnded(ctx, tx, run)
	})
	for _, row := range l.Store.Reader.AgenticIssue.Query().AllX(l.System(t)) {
		l.ids[row.Title] = row.ID
	}
}
