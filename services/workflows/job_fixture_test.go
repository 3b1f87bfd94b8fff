package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// runFixture is a server with runs written directly into its store, as the engine would.
type runFixture struct{ *apitest.Server }

// began is the start time of all inserted rows.
var began = store.Micros(time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC))

// write runs fn as a deployment.
func (w runFixture) write(t testing.TB, deploymentID int64, fn func(ctx context.Context, tx *ent.Tx) error) {
	t.Helper()
	if err := w.Store.Write(tenant.NewContext(t.Context(), deploymentID), fn); err != nil {
		t.Fatal(err)
	}
}

// auditSteps is a workflow with a foreach and a switch: plan → units → judge → collect → decide → (fix | skip) → done.
var auditSteps = []*storev1.PlannedStep{
	{Name: "plan", DisplayName: "Plan", Type: "linear", Next: []string{"units"}},
	{Name: "units", DisplayName: "Units of code", Type: "foreach", Next: []string{"judge"}, MatchingJoin: "collect"},
	{Name: "judge", DisplayName: "Judge one unit", Type: "linear", Next: []string{"collect"}, ContinueOnError: true},
	{Name: "collect", Type: "join", Next: []string{"decide"}},
	{Name: "decide", DisplayName: "Decide", Type: "switch", Next: []string{"fix", "skip"}},
	{Name: "fix", DisplayName: "Fix", Type: "linear", Next: []string{"done"}},
	{Name: "skip", DisplayName: "Skip", Type: "linear", Next: []string{"done"}},
	{Name: "done", DisplayName: "Done", Type: "linear"},
}

// addVersion publishes auditSteps and returns the id of the version.
func (w runFixture) addVersion(t testing.TB, deploymentID, number int64, published bool) (id int64) {
	t.Helper()
	entry := &workflowsv1.WorkflowCatalogEntry{Name: "unit-audit", Graph: &workflowsv1.WorkflowGraph{SchemaVersion: 1, StartStep: "plan", EndStep: "done"}}
	for i, step := range auditSteps {
		entry.Graph.Steps = append(entry.Graph.Steps, &workflowsv1.WorkflowStepDefinition{
			Name: step.GetName(), Type: step.GetType(), Next: step.GetNext(), Doc: "Step " + step.GetName() + ".", Line: int32(10 * i),
		})
	}
	w.write(t, deploymentID, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.WorkflowVersion.Create().SetDeploymentID(deploymentID).SetName("unit-audit").SetNumber(number).SetPublished(published).
			SetCatalogEntry(marshal(t, entry)).SetPlan(marshal(t, &storev1.WorkflowPlan{Steps: auditSteps})).SetSource([]byte("name: unit-audit")).
			SetSourceHash(fmt.Sprint(number)).SetPublishedAt(began).Save(ctx)
		if err == nil {
			id = row.ID
		}
		return err
	})
	return id
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// addRun inserts a run; change sets the differences from a submitted one.
func (w runFixture) addRun(t testing.TB, deploymentID, versionID int64, change func(*ent.WorkflowRunCreate)) (id int64) {
	t.Helper()
	w.write(t, deploymentID, func(ctx context.Context, tx *ent.Tx) error {
		create := tx.WorkflowRun.Create().SetDeploymentID(deploymentID).SetWorkflow("unit-audit").SetVersionID(versionID).SetStatus("submitted").
			SetJobName("Audit of acme/web").SetGitRef("refs/heads/main").SetRepoName("acme/web").SetRepoURL("https://git.acme.test/acme/web").
			SetRepoScmType("SCM_TYPE_GITHUB").SetTriggerSource("manual").SetEventSource("api").SetActorKind("token").SetActorID(1).
			SetInputs([]byte("{}")).SetSubmittedAt(began)
		if change != nil {
			change(create)
		}
		row, err := create.Save(ctx)
		if err == nil {
			id = row.ID
		}
		return err
	})
	return id
}

// addTask inserts a task with one attempt in the same state, and returns its id.
func (w runFixture) addTask(t testing.TB, deploymentID, runID int64, step, path, status string, upstream ...int64) (id int64) {
	t.Helper()
	w.write(t, deploymentID, func(ctx context.Context, tx *ent.Tx) error {
		create := tx.WorkflowTask.Create().SetDeploymentID(deploymentID).SetRunID(runID).SetStep(step).SetPath(path).SetStatus(status).
			SetCreatedAt(began).SetUpstream(upstream)
		if i := strings.IndexByte(path, '['); i > 0 {
			create.SetBranch(strings.TrimSuffix(path[i+1:], "]")).SetValuePreview(`{"file":"app/db.py"}`)
		}
		if status != "pending" && status != "skipped" {
			create.SetStartedAt(began + 1).SetAttempts(1).SetCostUsd(0.25).SetCostCredits(25)
		}
		if status != "pending" && status != "running" {
			create.SetFinishedAt(began + 2)
		}
		row, err := create.Save(ctx)
		if err != nil {
			return err
		}
		if id = row.ID; status == "skipped" {
			return nil
		}
		return addAttempt(tx, row, status).Exec(ctx)
	})
	return id
}

func addAttempt(tx *ent.Tx, of *ent.WorkflowTask, status string) *ent.WorkflowAttemptCreate {
	attempt := tx.WorkflowAttempt.Create().SetDeploymentID(of.DeploymentID).SetRunID(of.RunID).SetTaskID(of.ID).SetIndex(0).SetStep(of.Step).
		SetWorkflow("unit-audit").SetStatus(status).SetNillableStartedAt(of.StartedAt).SetNillableFinishedAt(of.FinishedAt).SetCreatedAt(began)
	if status == "failed" || status == "error" {
		attempt.SetError("the model answered with 500")
	}
	return attempt
}

// addAudit inserts a run of auditSteps in the middle of its foreach: one unit is judged, one failed, one is running and
// one waits.
func (w runFixture) addAudit(t testing.TB, deploymentID, versionID int64) int64 {
	t.Helper()
	run := w.addRun(t, deploymentID, versionID, func(c *ent.WorkflowRunCreate) { c.SetStatus("running").SetStartedAt(began + 1).SetRevision(9) })
	plan := w.addTask(t, deploymentID, run, "plan", "", "succeeded")
	units := w.addTask(t, deploymentID, run, "units", "", "succeeded", plan)
	for i, status := range []string{"succeeded", "failed", "running", "pending"} {
		w.addTask(t, deploymentID, run, "judge", fmt.Sprintf("units[%d]", i), status, units)
	}
	w.write(t, deploymentID, func(ctx context.Context, tx *ent.Tx) error {
		return tx.WorkflowFork.Create().SetDeploymentID(deploymentID).SetRunID(run).SetTaskID(units).SetStep("units").SetJoinStep("collect").
			SetBranches(4).SetStarted(4).SetArrived(2).Exec(ctx)
	})
	return run
}

// jobsPath is the path of a deployment's runs.
func jobsPath(deploymentID int64, more string) string {
	return fmt.Sprintf("/api/workflows/v1/deployments/%d/jobs%s", deploymentID, more)
}

// logged opens the server's database a second time, with a query log for the reader.
func (w runFixture) logged(t testing.TB) (*store.Store, *apitest.Queries) {
	t.Helper()
	return apitest.OpenRecorded(t, w.Server, func(string) bool { return true })
}

// headers records the header of a handler that is called directly.
type headers struct {
	grpc.ServerTransportStream
	sent metadata.MD
}

func (h *headers) SetHeader(md metadata.MD) error {
	h.sent = metadata.Join(h.sent, md)
	return nil
}

// asDeployment is a context for calling handlers directly.
func asDeployment(t testing.TB, deploymentID int64) context.Context {
	return grpc.NewContextWithServerTransportStream(tenant.NewContext(t.Context(), deploymentID), &headers{})
}
