package workflows

import (
	"context"
	"strconv"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowrun"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/store"
)

// graphSchema is the schema version of WorkflowJobGraph.
const graphSchema = "1"

// JobReads is the part of the service group "agentic workflows" that reads runs.
type JobReads struct {
	workflowsv1.UnimplementedWorkflowJobsServiceServer
	store    *store.Store
	watchers *watchers
}

// NewJobReads serves runs from the store.
func NewJobReads(st *store.Store) *JobReads {
	return &JobReads{store: st, watchers: newWatchers(st)}
}

// summaryColumns are the columns of a run that its summary needs.
var summaryColumns = []string{
	workflowrun.FieldID, workflowrun.FieldDeploymentID, workflowrun.FieldWorkflow, workflowrun.FieldStatus, workflowrun.FieldProjectID,
	workflowrun.FieldGitRef, workflowrun.FieldStartedAt, workflowrun.FieldFinishedAt, workflowrun.FieldTotalFindings,
	workflowrun.FieldEventSource, workflowrun.FieldRepoURL, workflowrun.FieldCostCredits, workflowrun.FieldTriggerSource,
	workflowrun.FieldVersionID, workflowrun.FieldRevision,
}

// readRun finds a run by its API id, with the given columns.
func readRun(ctx context.Context, db *ent.Client, jobID string, columns []string) (*ent.WorkflowRun, error) {
	id, err := strconv.ParseInt(jobID, 10, 64)
	if err != nil {
		return nil, apierr.NotFound("job %s not found", apierr.Quote(jobID))
	}
	query := db.WorkflowRun.Query().Where(workflowrun.ID(id))
	query.Select(columns...)
	row, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("job %s not found", apierr.Quote(jobID))
	}
	return row, err
}

// runStatuses maps stored status words to the API's.
var runStatuses = map[string]workflowsv1.PlatformWorkflowRunStatus{
	"submitted": workflowsv1.PlatformWorkflowRunStatus_PLATFORM_WORKFLOW_RUN_STATUS_SUBMITTED,
	"running":   workflowsv1.PlatformWorkflowRunStatus_PLATFORM_WORKFLOW_RUN_STATUS_RUNNING,
	"completed": workflowsv1.PlatformWorkflowRunStatus_PLATFORM_WORKFLOW_RUN_STATUS_COMPLETED,
	"failed":    workflowsv1.PlatformWorkflowRunStatus_PLATFORM_WORKFLOW_RUN_STATUS_FAILED,
	"cancelled": workflowsv1.PlatformWorkflowRunStatus_PLATFORM_WORKFLOW_RUN_STATUS_CANCELLED,
}

// stepStatuses is runStatuses for tasks and attempts.
var stepStatuses = map[string]workflowsv1.WorkflowStepStatus{
	"pending":   workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_PENDING,
	"running":   workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_RUNNING,
	"succeeded": workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_SUCCEEDED,
	"failed":    workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_FAILED,
	"skipped":   workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_SKIPPED,
	"error":     workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_ERROR,
}

func hasEnded(row *ent.WorkflowRun) bool {
	return row.Status != "submitted" && row.Status != "running"
}

// convertSummary needs the summaryColumns.
func convertSummary(row *ent.WorkflowRun) *workflowsv1.WorkflowJobSummary {
	return &workflowsv1.WorkflowJobSummary{
		JobId: strconv.FormatInt(row.ID, 10), WorkflowType: row.Workflow, Status: runStatuses[row.Status],
		DeploymentId: strconv.FormatInt(row.DeploymentID, 10), RepoId: projectText(row), GitRef: row.GitRef,
		StartedAt: store.Timestamp(row.StartedAt), FinishedAt: store.Timestamp(row.FinishedAt), TotalFindings: row.TotalFindings,
		EventSource: row.EventSource, RepoUrl: row.RepoURL, TotalCostCredits: llm.Money(row.CostCredits), TriggerSource: row.TriggerSource,
	}
}

func projectText(row *ent.WorkflowRun) string {
	if row.ProjectID == nil {
		return ""
	}
	return strconv.FormatInt(*row.ProjectID, 10)
}
