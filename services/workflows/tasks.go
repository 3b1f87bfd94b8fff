package workflows

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent/tenant"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/engine"
)

// defaultLease is the default lease of a claim, in seconds.
const defaultLease = 60

// Tasks is the part of the service group "agentic workflows" through which internal services run external steps.
type Tasks struct {
	workflowsv1.UnimplementedWorkflowTasksServiceServer
	store  *store.Store
	jobs   *jobs.Jobs
	engine *engine.Engine
	log    *slog.Logger
}

// NewTasks serves the external tasks of an engine.
func NewTasks(st *store.Store, queue *jobs.Jobs, e *engine.Engine, log *slog.Logger) *Tasks {
	return &Tasks{store: st, jobs: queue, engine: e, log: log}
}

// limit restricts callers that are not administrators to runs about projects they may triage. The upload permission
// alone is not enough: it grants no read access, and a task contains project data.
func (s *Tasks) limit(ctx context.Context) (context.Context, error) {
	grant, ok := access.GrantFromContext(ctx)
	caller, known := access.FromContext(ctx)
	if !ok || !known {
		return nil, apierr.Internal(fmt.Errorf("a task was requested without a caller"))
	}
	if grant.Role == access.RoleAdmin {
		return ctx, nil
	}
	teams, err := access.TeamsOf(ctx, s.store.Reader, grant.DeploymentID, caller.UserID)
	if err != nil || !teams.Enabled {
		return ctx, err
	}
	return tenant.WithTeams(ctx, teams.IDs(access.TeamTriage)), nil
}

// ClaimWorkflowTask takes a task.
func (s *Tasks) ClaimWorkflowTask(ctx context.Context, r *workflowsv1.ClaimWorkflowTaskRequest) (*workflowsv1.ClaimWorkflowTaskResponse, error) {
	ctx, err := s.limit(ctx)
	if err != nil {
		return nil, err
	}
	claim, err := s.engine.Claim(ctx, s.jobs, engine.Wanted{
		Workflow: r.GetWorkflowType(), Steps: r.GetStepNames(), Lease: leaseOf(r.LeaseSeconds), Wait: time.Duration(r.GetWaitSeconds()) * time.Second,
	})
	if err != nil || claim == nil {
		return &workflowsv1.ClaimWorkflowTaskResponse{}, err
	}
	s.log.InfoContext(ctx, "an external workflow task was claimed", "task", claim.Task.ID, "worker", r.GetWorkerName())
	task := &workflowsv1.ClaimedWorkflowTask{
		TaskId: claim.Task.ID, ClaimToken: claim.Token, JobId: strconv.FormatInt(claim.Run.ID, 10), WorkflowType: claim.Run.Workflow,
		StepName: claim.Task.Step, LogicalPath: claim.Task.Path, AttemptIndex: claim.Attempt, GitRef: claim.Run.GitRef,
		LeaseUntil: timestamppb.New(claim.Lease), Deadline: timestamppb.New(claim.Deadline),
	}
	if claim.Run.ProjectID != nil {
		task.RepoId = *claim.Run.ProjectID
	}
	if task.Payload, err = jsonValue(claim.Payload); err != nil {
		return nil, fmt.Errorf("payload of task %d: %w", claim.Task.ID, err)
	}
	return &workflowsv1.ClaimWorkflowTaskResponse{Task: task}, nil
}

// jsonValue converts a value to protobuf's form, which supports fewer Go types.
func jsonValue(value any) (*structpb.Value, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	out := &structpb.Value{}
	return out, out.UnmarshalJSON(text)
}

func leaseOf(seconds *int32) time.Duration {
	if seconds == nil {
		return defaultLease * time.Second
	}
	return time.Duration(*seconds) * time.Second
}

// HeartbeatWorkflowTask renews a claim.
func (s *Tasks) HeartbeatWorkflowTask(ctx context.Context, r *workflowsv1.HeartbeatWorkflowTaskRequest) (*workflowsv1.HeartbeatWorkflowTaskResponse, error) {
	ctx, err := s.limit(ctx)
	if err != nil {
		return nil, err
	}
	until, err := s.engine.Heartbeat(ctx, r.GetTaskId(), r.GetClaimToken(), leaseOf(r.LeaseSeconds))
	if err != nil {
		return nil, err
	}
	return &workflowsv1.HeartbeatWorkflowTaskResponse{LeaseUntil: timestamppb.New(until)}, nil
}

// PutWorkflowArtifact stores an artifact of a claimed task.
func (s *Tasks) PutWorkflowArtifact(ctx context.Context, r *workflowsv1.PutWorkflowArtifactRequest) (*workflowsv1.PutWorkflowArtifactResponse, error) {
	ctx, err := s.limit(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.engine.Put(ctx, r.GetTaskId(), r.GetClaimToken(), r.GetName(), r.GetContent()); err != nil {
		return nil, err
	}
	return &workflowsv1.PutWorkflowArtifactResponse{}, nil
}

// CompleteWorkflowTask ends a claimed attempt.
func (s *Tasks) CompleteWorkflowTask(ctx context.Context, r *workflowsv1.CompleteWorkflowTaskRequest) (*workflowsv1.CompleteWorkflowTaskResponse, error) {
	ctx, err := s.limit(ctx)
	if err != nil {
		return nil, err
	}
	report := engine.Report{
		Succeeded: r.GetResult() == workflowsv1.WorkflowTaskResult_WORKFLOW_TASK_RESULT_SUCCEEDED,
		Permanent: r.GetResult() == workflowsv1.WorkflowTaskResult_WORKFLOW_TASK_RESULT_FAILED_PERMANENTLY,
		CostUSD:   r.GetCostUsd(), Summary: r.GetErrorSummary(),
	}
	if r.GetOutput() != nil {
		if report.Output, err = r.GetOutput().MarshalJSON(); err != nil {
			return nil, fmt.Errorf("output of task %d: %w", r.GetTaskId(), err)
		}
	}
	if err := s.engine.Complete(ctx, s.jobs, r.GetTaskId(), r.GetClaimToken(), report); err != nil {
		return nil, err
	}
	return &workflowsv1.CompleteWorkflowTaskResponse{}, nil
}
