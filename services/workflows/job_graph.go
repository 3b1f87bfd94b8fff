package workflows

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/ent/workflowtask"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/etag"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

const defaultTasks = 500

// GetWorkflowJobGraph returns the status of a run's steps and a page of its tasks with their attempts. It takes six
// queries for any run, and one if the caller's copy is still current.
func (s *JobReads) GetWorkflowJobGraph(ctx context.Context, r *workflowsv1.GetWorkflowJobGraphRequest) (*workflowsv1.GetWorkflowJobGraphResponse, error) {
	run, err := readRun(ctx, s.store.Reader, r.GetJobId(), summaryColumns)
	if err != nil {
		return nil, err
	}
	answer, err := page.DigestOf("workflow job graph", r)
	if err != nil {
		return nil, err
	}
	// Data read after the revision may be newer than it; the next poll then returns it again. It is never older.
	if known, err := etag.Unchanged(ctx, fmt.Sprintf(`W/"%d-%x"`, run.Revision, answer)); err != nil || known {
		return &workflowsv1.GetWorkflowJobGraphResponse{}, err
	}
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("workflow job tasks", filter)
	if err != nil {
		return nil, err
	}
	key, _, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	steps, err := liveSteps(ctx, s.store.Reader, run)
	if err != nil {
		return nil, err
	}
	limit := pageOr(r.GetLimit(), defaultTasks)
	query := s.store.Reader.WorkflowTask.Query().Where(workflowtask.RunID(run.ID), workflowtask.IDGT(key.ID))
	if r.GetStepId() != "" {
		query.Where(workflowtask.Step(r.GetStepId()))
	}
	tasks, err := query.Order(ent.Asc(workflowtask.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &workflowsv1.GetWorkflowJobGraphResponse{
		Graph: &workflowsv1.WorkflowJobGraph{SchemaVersion: graphSchema, Steps: steps.nodes},
	}
	if len(tasks) > limit {
		tasks = tasks[:limit]
		response.Cursor = page.Encode(digest, page.Key{ID: tasks[limit-1].ID})
	}
	response.Graph.Tasks, err = s.taskNodes(ctx, run, steps, tasks)
	return response, err
}

// taskNodes converts tasks with their attempts, and adds their ids to the steps.
func (s *JobReads) taskNodes(ctx context.Context, run *ent.WorkflowRun, steps *stepsOfRun, tasks []*ent.WorkflowTask) ([]*workflowsv1.WorkflowTaskNode, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(tasks))
	nodes := make([]*workflowsv1.WorkflowTaskNode, len(tasks))
	byID := make(map[int64]*workflowsv1.WorkflowTaskNode, len(tasks))
	for i, task := range tasks {
		ids[i] = task.ID
		nodes[i] = convertTask(task, steps)
		byID[task.ID] = nodes[i]
		if step := steps.byName[task.Step]; step != nil {
			step.TaskIds = append(step.TaskIds, nodes[i].GetTaskId())
		}
	}
	query := s.store.Reader.WorkflowAttempt.Query().Where(workflowattempt.RunID(run.ID), func(s *entsql.Selector) { s.Where(store.InIDs(s.C(workflowattempt.FieldTaskID), ids)) }).
		Order(ent.Asc(workflowattempt.FieldTaskID), ent.Asc(workflowattempt.FieldIndex))
	query.Select(workflowattempt.FieldTaskID, workflowattempt.FieldIndex, workflowattempt.FieldStatus, workflowattempt.FieldError,
		workflowattempt.FieldStartedAt, workflowattempt.FieldFinishedAt)
	attempts, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, attempt := range attempts {
		node := byID[attempt.TaskID]
		node.Attempts = append(node.Attempts, &workflowsv1.WorkflowTaskAttempt{
			AttemptIndex: int64(attempt.Index), Status: stepStatuses[attempt.Status], ErrorSummary: attempt.Error,
			StartedAt: store.Timestamp(attempt.StartedAt), FinishedAt: store.Timestamp(attempt.FinishedAt),
		})
		node.AttemptCount = int64(len(node.GetAttempts()))
		node.LatestAttemptIndex = int64(attempt.Index)
	}
	return nodes, nil
}
