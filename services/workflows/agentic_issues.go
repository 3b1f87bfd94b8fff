package workflows

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/agenticissue"
	"github.com/palisade/palisade/ent/agenticissueevent"
	"github.com/palisade/palisade/ent/tenant"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/issues"
)

// issuesPerPage is the default page size for issues and activities.
const issuesPerPage = 100

// AgenticIssues is the service group "agentic-workflow issues".
type AgenticIssues struct {
	workflowsv1.UnimplementedAgenticIssuesServiceServer
	store *store.Store
}

// NewAgenticIssues serves agentic-workflow issues from the store.
func NewAgenticIssues(st *store.Store) *AgenticIssues { return &AgenticIssues{store: st} }

// CountIssues counts the issues that match a filter.
func (s *AgenticIssues) CountIssues(ctx context.Context, r *workflowsv1.CountIssuesRequest) (*workflowsv1.CountIssuesResponse, error) {
	n, err := s.store.Reader.AgenticIssue.Query().Where(issueFilter(ctx, r.GetFilters())...).Count(ctx)
	if err != nil {
		return nil, err
	}
	return &workflowsv1.CountIssuesResponse{Count: int64(n)}, nil
}

// GetAgenticIssue returns one issue.
func (s *AgenticIssues) GetAgenticIssue(ctx context.Context, r *workflowsv1.GetAgenticIssueRequest) (*workflowsv1.GetAgenticIssueResponse, error) {
	row, err := findIssue(ctx, s.store.Reader.AgenticIssue.Query(), r.GetIssueId())
	if err != nil {
		return nil, err
	}
	issue, err := issues.Convert(row)
	if err != nil {
		return nil, err
	}
	return &workflowsv1.GetAgenticIssueResponse{Data: issue}, nil
}

func findIssue(ctx context.Context, query *ent.AgenticIssueQuery, id int64) (*ent.AgenticIssue, error) {
	row, err := query.Where(agenticissue.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("issue %d not found", id)
	}
	return row, err
}

// TriageIssue sets the triage state and the reason of an issue (contract operation 9). Both are stored as given: a
// request with a state and no reason clears the previous reason.
func (s *AgenticIssues) TriageIssue(ctx context.Context, r *workflowsv1.TriageIssueRequest) (*workflowsv1.TriageIssueResponse, error) {
	response := &workflowsv1.TriageIssueResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		query := tx.AgenticIssue.Query()
		if s.store.Postgres() {
			query.ForUpdate()
		}
		before, err := findIssue(ctx, query, r.GetIssueId())
		if err != nil {
			return err
		}
		after := *before
		after.TriageState, after.TriageReason = issues.Words(r.GetTriageState()), issues.Words(r.GetTriageReason())
		// A decision for the state that the issue has is a decision, too; a repeated request changes nothing.
		if after.TriageState != before.TriageState || after.TriageReason != before.TriageReason || before.TriagedAt == nil {
			now := store.Now()
			after.TriagedAt = &now
			if err := triageIssue(ctx, tx, before, &after); err != nil {
				return err
			}
		}
		response.Data, err = issues.Convert(&after)
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// triageIssue stores a triage decision, an entry in the issue's history and an audit entry.
func triageIssue(ctx context.Context, tx *ent.Tx, before, after *ent.AgenticIssue) error {
	err := tx.AgenticIssue.UpdateOneID(before.ID).SetTriageState(after.TriageState).SetTriageReason(after.TriageReason).
		SetTriagedAt(*after.TriagedAt).Exec(ctx)
	if err != nil {
		return err
	}
	activity := issues.Activity(before, after)
	activity.ActorType = workflowsv1.ActorType_ACTOR_TYPE_USER
	if p, ok := access.FromContext(ctx); ok {
		activity.ActorId = actorID(p)
	}
	if err := issues.Record(ctx, tx, before.DeploymentID, activity, *after.TriagedAt, before.ID); err != nil {
		return err
	}
	was, err := issues.Convert(before)
	if err != nil {
		return err
	}
	is, err := issues.Convert(after)
	if err != nil {
		return err
	}
	audit.Change(ctx, "agentic_issue", before.ID, was, is)
	return nil
}

// GetIssueActivityHistory lists the changes of an issue, newest first.
func (s *AgenticIssues) GetIssueActivityHistory(ctx context.Context, r *workflowsv1.GetIssueActivityHistoryRequest) (*workflowsv1.GetIssueActivityHistoryResponse, error) {
	list := proto.CloneOf(r)
	list.Cursor, list.Limit = "", nil
	digest, err := page.DigestOf("agentic_issue_activity", list)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	issue, err := findIssue(ctx, s.store.Reader.AgenticIssue.Query(), r.GetIssueId())
	if err != nil {
		return nil, err
	}
	deploymentID, _ := tenant.FromContext(ctx)
	query := s.store.Reader.AgenticIssueEvent.Query().
		Where(agenticissueevent.DeploymentID(deploymentID), agenticissueevent.IssueID(issue.ID)).Order(ent.Desc(agenticissueevent.FieldID))
	if continued {
		query.Where(agenticissueevent.IDLT(key.ID))
	}
	limit := pageSize(r.Limit)
	rows, err := query.Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &workflowsv1.GetIssueActivityHistoryResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		response.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	for _, row := range rows {
		activity, err := issues.ConvertActivity(row)
		if err != nil {
			return nil, err
		}
		response.History = append(response.History, activity)
	}
	return response, nil
}

func pageSize(limit *int32) int {
	if limit == nil {
		return issuesPerPage
	}
	return int(*limit)
}
