package workflows

import (
	"context"
	"strconv"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/agenticissue"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/workflows/issues"
)

// issueOrder is the sort order of a list of issues: a column, then the id in the same direction.
type issueOrder struct {
	column     string
	descending bool
}

func orderOf(r *workflowsv1.SearchIssuesRequest) issueOrder {
	column := agenticissue.FieldLastDetectedAt
	switch r.GetSortField() {
	case workflowsv1.IssueSortField_ISSUE_SORT_FIELD_SEVERITY:
		column = agenticissue.FieldSeverity
	case workflowsv1.IssueSortField_ISSUE_SORT_FIELD_CREATED_AT:
		column = agenticissue.FieldCreatedAt
	case workflowsv1.IssueSortField_ISSUE_SORT_FIELD_FILE_PATH:
		column = agenticissue.FieldFilePath
	}
	descending := column != agenticissue.FieldFilePath
	if r.GetSortDirection() != workflowsv1.SortDirection_SORT_DIRECTION_UNSPECIFIED {
		descending = r.GetSortDirection() == workflowsv1.SortDirection_SORT_DIRECTION_DESC
	}
	return issueOrder{column: column, descending: descending}
}

func (o issueOrder) sort(s *entsql.Selector) {
	if o.descending {
		s.OrderBy(entsql.Desc(s.C(o.column)), entsql.Desc(s.C(agenticissue.FieldID)))
		return
	}
	s.OrderBy(entsql.Asc(s.C(o.column)), entsql.Asc(s.C(agenticissue.FieldID)))
}

// after selects the issues after a cursor position.
func (o issueOrder) after(value any, id int64) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		columns := []string{s.C(o.column), s.C(agenticissue.FieldID)}
		if o.descending {
			s.Where(entsql.CompositeLT(columns, value, id))
			return
		}
		s.Where(entsql.CompositeGT(columns, value, id))
	}
}

// key is the cursor key of an issue. A path does not fit into a cursor, so the next page reads it by id.
func (o issueOrder) key(row *ent.AgenticIssue) page.Key {
	switch o.column {
	case agenticissue.FieldSeverity:
		return page.Key{Order: int64(row.Severity), ID: row.ID}
	case agenticissue.FieldCreatedAt:
		return page.Key{Order: row.CreatedAt, ID: row.ID}
	case agenticissue.FieldLastDetectedAt:
		return page.Key{Order: row.LastDetectedAt, ID: row.ID}
	}
	return page.Key{ID: row.ID}
}

// SearchIssues lists the issues that match a filter.
func (s *AgenticIssues) SearchIssues(ctx context.Context, r *workflowsv1.SearchIssuesRequest) (*workflowsv1.SearchIssuesResponse, error) {
	list := proto.CloneOf(r)
	list.Cursor, list.Limit = "", nil
	digest, err := page.DigestOf("agentic_issues", list)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	where, order := issueFilter(ctx, r.GetFilters()), orderOf(r)
	total, err := s.store.Reader.AgenticIssue.Query().Where(where...).Count(ctx)
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.AgenticIssue.Query().Where(where...).Order(order.sort)
	if continued {
		value, err := s.cursorValue(ctx, order, key)
		if err != nil {
			return nil, err
		}
		query.Where(order.after(value, key.ID))
	}
	limit := pageSize(r.Limit)
	rows, err := query.Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &workflowsv1.SearchIssuesResponse{Total: int64(total)}
	if len(rows) > limit {
		rows = rows[:limit]
		response.Cursor = page.Encode(digest, order.key(rows[limit-1]))
	}
	for _, row := range rows {
		issue, err := issues.Convert(row)
		if err != nil {
			return nil, err
		}
		response.Issues = append(response.Issues, issue)
	}
	return response, nil
}

// cursorValue returns the sort column's value for the last issue of the previous page.
func (s *AgenticIssues) cursorValue(ctx context.Context, order issueOrder, key page.Key) (any, error) {
	if order.column != agenticissue.FieldFilePath {
		return key.Order, nil
	}
	last, err := s.store.Reader.AgenticIssue.Query().Where(agenticissue.ID(key.ID)).Select(agenticissue.FieldFilePath).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.InvalidCursor("cursor")
	}
	if err != nil {
		return nil, err
	}
	return last.FilePath, nil
}

// actorID is the acting user, or the token if it belongs to no user.
func actorID(p *access.Principal) string {
	if p.UserID != 0 {
		return strconv.FormatInt(p.UserID, 10)
	}
	return strconv.FormatInt(p.ID, 10)
}
