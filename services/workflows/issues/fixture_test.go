package issues_test

import (
	"context"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/agenticissue"
	"github.com/palisade/palisade/ent/agenticissueevent"
	"github.com/palisade/palisade/ent/tenant"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/issues"
	"github.com/palisade/palisade/services/workflows/step"
)

// fixture is a deployment with one project.
type fixture struct {
	*apitest.Server
	project *int64
}

func each(t *testing.T, test func(t *testing.T, l fixture)) {
	t.Helper()
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := fixture{Server: s}
		l.project = l.addProject(t, "acme/web")
		test(t, l)
	})
}

// write runs fn in a transaction of the deployment.
func (l fixture) write(t *testing.T, fn func(ctx context.Context, tx *ent.Tx) error) {
	t.Helper()
	if err := l.Store.Write(tenant.NewContext(t.Context(), l.DeploymentID), fn); err != nil {
		t.Fatal(err)
	}
}

func (l fixture) addProject(t *testing.T, name string) *int64 {
	t.Helper()
	var id int64
	l.write(t, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Project.Create().SetName(name).SetNameKey(name).SetCreatedAt(store.Now()).Save(ctx)
		if err == nil {
			id = row.ID
		}
		return err
	})
	return &id
}

// begin begins a run of a workflow.
func (l fixture) begin(t *testing.T, workflow string, project *int64, ref string) step.Call {
	t.Helper()
	var run *ent.WorkflowRun
	l.write(t, func(ctx context.Context, tx *ent.Tx) (err error) {
		run, err = tx.WorkflowRun.Create().SetWorkflow(workflow).SetVersionID(1).SetNillableProjectID(project).SetStatus("running").
			SetGitRef(ref).SetRepoName("acme/web").SetTriggerSource("manual").SetEventSource("api").SetActorKind("user").SetActorID(1).
			SetInputs([]byte("{}")).SetCommit("3f2a9c1d").SetSubmittedAt(store.Now()).SetStartedAt(store.Now()).Save(ctx)
		return err
	})
	return step.Call{
		DeploymentID: l.DeploymentID, RunID: run.ID, TaskID: 1, Workflow: workflow, Step: "store", ProjectID: project, GitRef: ref, TriggerSource: "manual",
	}
}

func (l fixture) upsert(t *testing.T, call step.Call, covered []string, found ...issues.Found) (counts issues.Counts) {
	t.Helper()
	l.write(t, func(ctx context.Context, tx *ent.Tx) (err error) {
		counts, err = issues.Upsert(ctx, tx, call, found, covered)
		return err
	})
	return counts
}

// end ends a run with a status and returns its report.
func (l fixture) end(t *testing.T, call step.Call, status string) (report *workflowsv1.WorkflowReportSummary) {
	t.Helper()
	l.write(t, func(ctx context.Context, tx *ent.Tx) error {
		run, err := tx.WorkflowRun.UpdateOneID(call.RunID).SetStatus(status).SetFinishedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		if report, err = issues.Report(ctx, tx, run); err != nil {
			return err
		}
		return issues.RunEnded(ctx, tx, run)
	})
	return report
}

// run performs a whole run over the project.
func (l fixture) run(t *testing.T, workflow string, covered []string, found ...issues.Found) issues.Counts {
	t.Helper()
	call := l.begin(t, workflow, l.project, "main")
	counts := l.upsert(t, call, covered, found...)
	l.end(t, call, "completed")
	return counts
}

func (l fixture) issue(t *testing.T, title string) *ent.AgenticIssue {
	t.Helper()
	return l.Store.Reader.AgenticIssue.Query().Where(agenticissue.DeploymentID(l.DeploymentID), agenticissue.Title(title)).OnlyX(l.System(t))
}

// history returns the activities of an issue, oldest first.
func (l fixture) history(t *testing.T, of *ent.AgenticIssue) (out []*workflowsv1.IssueActivity) {
	t.Helper()
	rows := l.Store.Reader.AgenticIssueEvent.Query().Where(agenticissueevent.IssueID(of.ID)).Order(ent.Asc(agenticissueevent.FieldID)).AllX(l.System(t))
	for _, row := range rows {
		activity, err := issues.ConvertActivity(row)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, activity)
	}
	return out
}

// triage sets the triage state of an issue.
func (l fixture) triage(t *testing.T, of *ent.AgenticIssue, state, reason string) {
	t.Helper()
	l.write(t, func(ctx context.Context, tx *ent.Tx) error {
		return tx.AgenticIssue.UpdateOneID(of.ID).SetTriageState(state).SetTriageReason(reason).SetTriagedAt(store.Now()).Exec(ctx)
	})
}

func sqli(more ...func(*issues.Found)) issues.Found {
	f := issues.Found{
		Title: "SQL injection in user lookup", Description: "The id goes into the query.", Reasoning: "uid comes from the request.",
		Severity: "high", Class: "SQL injection", File: "app/db.py", StartLine: 42, EndLine: 43,
		Evidence: `rows = db.execute("SELECT * FROM users WHERE id = " + uid)`, CWEs: []string{"CWE-89"}, OWASPs: []string{"A03:2021"},
		Actions: []string{"Use a bound parameter"},
	}
	for _, change := range more {
		change(&f)
	}
	return f
}

func xss() issues.Found {
	return issues.Found{Title: "Name is shown unescaped", Severity: "medium", Class: "xss", File: "app/views.py", StartLine: 7, Evidence: "return '<b>' + name"}
}
