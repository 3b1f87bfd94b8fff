package workflows

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/workflow"
	"github.com/palisade/palisade/ent/workflowversion"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/definition"
	"github.com/palisade/palisade/services/workflows/engine"
)

// runAuditKind is the object kind of runs in the audit trail.
const runAuditKind = "workflow_run"

// repositoryTarget is the target type of workflows that work on one repository.
const repositoryTarget = "repository"

// Runs is the part of the service group "agentic workflows" that starts and ends runs.
type Runs struct {
	workflowsv1.UnimplementedWorkflowRunsServiceServer
	store   *store.Store
	jobs    *jobs.Jobs
	engine  *engine.Engine
	current func(ctx context.Context, name string) (*ent.WorkflowVersion, error)
}

// NewRuns starts runs of the versions that current returns: published and enabled ones.
func NewRuns(
	st *store.Store, queue *jobs.Jobs, e *engine.Engine, current func(ctx context.Context, name string) (*ent.WorkflowVersion, error),
) *Runs {
	return &Runs{store: st, jobs: queue, engine: e, current: current}
}

// TriggerWorkflowJob starts a run.
func (s *Runs) TriggerWorkflowJob(ctx context.Context, r *workflowsv1.TriggerWorkflowJobRequest) (*workflowsv1.TriggerWorkflowJobResponse, error) {
	if row, err := s.findPrevious(ctx, r); err != nil || row != nil {
		return triggered(row), err
	}
	version, err := s.current(ctx, r.GetWorkflowType())
	if err != nil {
		return nil, err
	}
	entry, err := storedEntry(version)
	if err != nil {
		return nil, err
	}
	inputs, err := checkedInputs(entry, r)
	if err != nil {
		return nil, err
	}
	budget := r.GetBudgetCredits()
	if budget == 0 {
		if budget, err = s.engine.Budget(ctx, version.ID); err != nil {
			return nil, err
		}
	}
	var row *ent.WorkflowRun
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		create := tx.WorkflowRun.Create().SetWorkflow(version.Name).SetVersionID(version.ID).SetJobName(r.GetJobName()).SetPrID(r.GetPrId()).
			SetGitRef(r.GetGitRef()).SetInputs(inputs).SetBudgetCredits(budget)
		if key := r.GetIdempotencyKey(); key != "" {
			create.SetIdempotencyKey(key).SetRequestedRef(r.GetGitRef())
		}
		if err := setProject(ctx, tx, create, r, entry.GetTargetType()); err != nil {
			return err
		}
		row, err = s.begin(ctx, tx, create)
		return err
	})
	if ent.IsConstraintError(err) && r.GetIdempotencyKey() != "" { // a concurrent request with the same key won
		row, err = s.findPrevious(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	return triggered(row), nil
}

func triggered(row *ent.WorkflowRun) *workflowsv1.TriggerWorkflowJobResponse {
	if row == nil {
		return nil
	}
	return &workflowsv1.TriggerWorkflowJobResponse{Summary: convertSummary(row)}
}

func checkedInputs(entry *workflowsv1.WorkflowCatalogEntry, r *workflowsv1.TriggerWorkflowJobRequest) ([]byte, error) {
	inputs, err := definition.CheckInputs(entry.GetInputs(), r.GetInputs().AsMap())
	if err != nil {
		return nil, err
	}
	return json.Marshal(inputs)
}

// setProject copies the project data that a run shows.
func setProject(ctx context.Context, tx *ent.Tx, create *ent.WorkflowRunCreate, r *workflowsv1.TriggerWorkflowJobRequest, target string) error {
	if r.GetRepoId() == 0 {
		if target == repositoryTarget {
			return apierr.InvalidArgument("repoId", "repoId is required: workflow %q works on a repository", r.GetWorkflowType())
		}
		return nil
	}
	row, err := tx.Project.Query().Where(project.ID(r.GetRepoId())).Only(ctx)
	if ent.IsNotFound(err) {
		return apierr.NotFound("project %d not found", r.GetRepoId())
	}
	if err != nil {
		return err
	}
	if r.GetGitRef() == "" {
		ref := row.PrimaryBranch
		if ref == "" {
			ref = row.DefaultBranch
		}
		create.SetGitRef(strings.TrimPrefix(ref, "refs/heads/"))
	}
	create.SetProjectID(row.ID).SetRepoName(row.Name).SetRepoURL(row.URL).SetRepoScmType(row.ScmType)
	return nil
}

// begin writes a run of the caller with its first task.
func (s *Runs) begin(ctx context.Context, tx *ent.Tx, create *ent.WorkflowRunCreate) (*ent.WorkflowRun, error) {
	caller, ok := access.FromContext(ctx)
	if !ok {
		return nil, apierr.Internal(fmt.Errorf("a run was started without a caller"))
	}
	event, trigger := sources(ctx, caller)
	return s.write(ctx, tx, create.SetEventSource(event).SetTriggerSource(trigger).SetActorKind(string(caller.Kind)).SetActorID(caller.ID))
}

// write writes a run with its first task.
func (s *Runs) write(ctx context.Context, tx *ent.Tx, create *ent.WorkflowRunCreate) (*ent.WorkflowRun, error) {
	version, _ := create.Mutation().VersionID()
	needs, err := s.engine.Needs(ctx, version)
	if err != nil {
		return nil, err
	}
	row, err := create.SetPlannedTasks(needs).SetStatus(engine.Submitted).SetSubmittedAt(store.Now()).Save(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.engine.Begin(ctx, tx, s.jobs, row); err != nil {
		return nil, err
	}
	audit.Change(ctx, runAuditKind, row.ID, nil, convertSummary(row))
	return row, nil
}

// sources returns the event and the trigger of a run. The trigger is "manual" for users and the command line, and
// "automation" for tokens of pipelines.
func sources(ctx context.Context, caller *access.Principal) (event, trigger string) {
	event, trigger = "api", "automation"
	md, _ := metadata.FromIncomingContext(ctx)
	for _, agent := range md.Get("user-agent") {
		if strings.HasPrefix(agent, "palisade-cli/") {
			event, trigger = "cli", "manual"
		}
	}
	if caller.Kind == access.KindUser {
		trigger = "manual"
	}
	return event, trigger
}

// CancelWorkflowJob stops a run.
func (s *Runs) CancelWorkflowJob(ctx context.Context, r *workflowsv1.CancelWorkflowJobRequest) (*workflowsv1.CancelWorkflowJobResponse, error) {
	var after *ent.WorkflowRun
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := readRun(ctx, tx.Client(), r.GetJobId(), summaryColumns)
		if err != nil {
			return err
		}
		var before *ent.WorkflowRun
		if before, after, err = s.engine.Cancel(ctx, tx, s.jobs, row.ID); err != nil {
			return err
		}
		if !engine.Active(before) {
			return apierr.FailedPrecondition("job %d has ended: it is %s", before.ID, before.Status)
		}
		audit.Change(ctx, runAuditKind, after.ID, convertSummary(before), convertSummary(after))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &workflowsv1.CancelWorkflowJobResponse{Summary: convertSummary(after)}, nil
}

// RetryWorkflowJob retries a run that has ended, as a new run with the same inputs and version.
func (s *Runs) RetryWorkflowJob(ctx context.Context, r *workflowsv1.RetryWorkflowJobRequest) (*workflowsv1.RetryWorkflowJobResponse, error) {
	var row *ent.WorkflowRun
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		known, err := readRun(ctx, tx.Client(), r.GetJobId(), summaryColumns)
		if err != nil {
			return err
		}
		old, err := tx.WorkflowRun.Get(ctx, known.ID)
		if err != nil {
			return err
		}
		if engine.Active(old) {
			return apierr.FailedPrecondition("job %s has not ended: it is %s; cancel it first", strconv.FormatInt(old.ID, 10), old.Status)
		}
		if err := requireAvailable(ctx, tx, old); err != nil {
			return err
		}
		row, err = s.begin(ctx, tx, tx.WorkflowRun.Create().SetWorkflow(old.Workflow).SetVersionID(old.VersionID).SetNillableProjectID(old.ProjectID).
			SetJobName(old.JobName).SetGitRef(old.GitRef).SetPrID(old.PrID).SetRepoName(old.RepoName).SetRepoURL(old.RepoURL).
			SetRepoScmType(old.RepoScmType).SetRetryOf(old.ID).SetInputs(old.Inputs).SetBudgetCredits(old.BudgetCredits))
		return err
	})
	if err != nil {
		return nil, err
	}
	return &workflowsv1.RetryWorkflowJobResponse{Summary: convertSummary(row)}, nil
}

// requireAvailable rejects a retry if the workflow was deleted or disabled, or the project deleted, since the first
// run.
func requireAvailable(ctx context.Context, tx *ent.Tx, run *ent.WorkflowRun) error {
	row, err := tx.Workflow.Query().Where(workflow.Name(run.Workflow)).Only(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return err
	}
	published, err := tx.WorkflowVersion.Query().Where(workflowversion.ID(run.VersionID), workflowversion.Published(true)).Exist(ctx)
	switch {
	case err != nil:
		return err
	case row == nil || !published:
		return apierr.FailedPrecondition("job %d is a run of workflow %q, which no longer exists", run.ID, run.Workflow)
	case !row.Enabled:
		return disabled(run.Workflow)
	}
	if run.ProjectID == nil {
		return nil
	}
	exists, err := tx.Project.Query().Where(project.ID(*run.ProjectID)).Exist(ctx)
	if err == nil && !exists {
		err = apierr.FailedPrecondition("job %d was about project %s, which no longer exists", run.ID, run.RepoName)
	}
	return err
}
