package workflows

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowrun"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/page"
)

const defaultJobs = 100

// ListWorkflowJobs lists runs, newest first.
func (s *JobReads) ListWorkflowJobs(ctx context.Context, r *workflowsv1.ListWorkflowJobsRequest) (*workflowsv1.ListWorkflowJobsResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("workflow jobs", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.WorkflowRun.Query()
	if r.GetWorkflowType() != "" {
		query.Where(workflowrun.Workflow(r.GetWorkflowType()))
	}
	for word, status := range runStatuses {
		if status == r.GetStatus() {
			query.Where(workflowrun.Status(word))
		}
	}
	if r.GetRepoId() != 0 {
		query.Where(workflowrun.ProjectID(r.GetRepoId()))
	}
	if continued {
		query.Where(workflowrun.IDLT(key.ID))
	}
	limit := pageOr(r.GetLimit(), defaultJobs)
	query.Order(ent.Desc(workflowrun.FieldID)).Limit(limit + 1).Select(summaryColumns...)
	rows, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	response := &workflowsv1.ListWorkflowJobsResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		response.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	for _, row := range rows {
		response.Jobs = append(response.Jobs, convertSummary(row))
	}
	return response, nil
}

func pageOr(limit, otherwise int64) int {
	if limit == 0 {
		return int(otherwise)
	}
	return int(limit)
}
