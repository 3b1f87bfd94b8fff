package workflows

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowrun"
	"github.com/palisade/palisade/ent/workflowversion"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// overviewColumns are the columns of a run that its overview needs.
var overviewColumns = append(slices.Clone(summaryColumns), workflowrun.FieldJobName, workflowrun.FieldRepoName, workflowrun.FieldPrID,
	workflowrun.FieldRepoScmType, workflowrun.FieldCommit, workflowrun.FieldReport, workflowrun.FieldError)

// GetPlatformAgenticWorkflowJobOverview returns the summary, the steps and the report of a run (contract operation 1).
// It reads two rows by id: the run and its workflow version.
func (s *JobReads) GetPlatformAgenticWorkflowJobOverview(ctx context.Context, r *workflowsv1.GetPlatformAgenticWorkflowJobOverviewRequest) (*workflowsv1.GetPlatformAgenticWorkflowJobOverviewResponse, error) {
	row, err := readRun(ctx, s.store.Reader, r.GetJobId(), overviewColumns)
	if err != nil {
		return nil, err
	}
	version, err := readVersion(ctx, s.store.Reader, row.VersionID)
	if err != nil {
		return nil, err
	}
	response := &workflowsv1.GetPlatformAgenticWorkflowJobOverviewResponse{
		Summary:       convertSummary(row),
		StepSkeleton:  &workflowsv1.WorkflowJobGraph{SchemaVersion: graphSchema},
		ReportSummary: &workflowsv1.WorkflowReportSummary{Repository: row.RepoName, Commit: row.Commit},
		Metadata: &workflowsv1.WorkflowJobMetadata{
			JobName: row.JobName, WorkflowType: row.Workflow, DeploymentId: strconv.FormatInt(row.DeploymentID, 10), RepoId: projectText(row),
			RepoName: row.RepoName, GitRef: row.GitRef, StartedAt: store.Timestamp(row.StartedAt), Status: statusText(row), PrId: row.PrID,
			RepoUrl: row.RepoURL, RepoScmType: row.RepoScmType,
		},
	}
	if len(row.Report) > 0 {
		if err := proto.Unmarshal(row.Report, response.ReportSummary); err != nil {
			return nil, fmt.Errorf("report of run %d: %w", row.ID, err)
		}
	}
	if version != nil && version.Published {
		if response.StepSkeleton.Steps, _, err = stepNodes(version); err != nil {
			return nil, err
		}
	}
	return response, nil
}

// statusText returns the status as text. It is the only field of the contract that can carry the reason of a failure.
func statusText(row *ent.WorkflowRun) string {
	if row.Error == "" {
		return row.Status
	}
	return row.Status + ": " + row.Error
}

// readVersion returns the version of a run; nil if it is gone.
func readVersion(ctx context.Context, db *ent.Client, id int64) (*ent.WorkflowVersion, error) {
	query := db.WorkflowVersion.Query().Where(workflowversion.ID(id))
	query.Select(workflowversion.FieldID, workflowversion.FieldPublished, workflowversion.FieldCatalogEntry, workflowversion.FieldPlan)
	row, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return row, err
}

// stepNodes returns the steps of a version in topological order, as if none had begun, and their plan.
func stepNodes(version *ent.WorkflowVersion) ([]*workflowsv1.WorkflowStepNode, *storev1.WorkflowPlan, error) {
	entry, err := storedEntry(version)
	if err != nil {
		return nil, nil, err
	}
	plan := &storev1.WorkflowPlan{}
	if err := proto.Unmarshal(version.Plan, plan); err != nil {
		return nil, nil, fmt.Errorf("plan of workflow version %d: %w", version.ID, err)
	}
	displayNames := map[string]string{}
	for _, step := range plan.GetSteps() {
		displayNames[step.GetName()] = step.GetDisplayName()
	}
	nodes := make([]*workflowsv1.WorkflowStepNode, 0, len(entry.GetGraph().GetSteps()))
	for _, step := range entry.GetGraph().GetSteps() {
		nodes = append(nodes, &workflowsv1.WorkflowStepNode{
			StepId: step.GetName(), Name: step.GetName(), DisplayName: orName(displayNames[step.GetName()], step.GetName()),
			Description: step.GetDoc(), Status: workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_PENDING,
		})
	}
	return nodes, plan, nil
}

func orName(displayName, name string) string {
	if displayName == "" {
		return name
	}
	return displayName
}
