package findings

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/findings/issue"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/list"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

// ListIssues lists findings of all types in any order. The columns in memory give the ids of the page, and the database
// its rows.
func (s *Issues) ListIssues(ctx context.Context, r *findingsv1.ListIssuesRequest) (*findingsv1.ListIssuesResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit, filter.Offset = "", 0, 0
	digest, err := page.DigestOf("issues"+tenant.Visibility(ctx), filter)
	if err != nil {
		return nil, err
	}
	of, chosen, err := s.choose(ctx, r)
	if err != nil {
		return nil, err
	}
	order, err := orderOf(ctx, s.store.Reader, r.GetSortBy(), r.GetSortDirection(), of, chosen)
	if err != nil {
		return nil, err
	}
	if err := order.begin(digest, r.GetCursor()); err != nil {
		return nil, err
	}
	order.Skip = int(r.GetOffset())
	limit := cmp.Or(int(r.GetLimit()), list.DefaultSize)
	keys, err := s.first(ctx, of, chosen, order.Order, limit+1)
	if err != nil {
		return nil, err
	}
	out := &findingsv1.ListIssuesResponse{}
	if len(keys) > limit {
		keys = keys[:limit]
		out.Cursor = order.cursor(digest, keys[limit-1])
	}
	rows, err := s.rows(ctx, keys)
	if err != nil {
		return nil, err
	}
	out.Issues, err = issue.Summaries(ctx, s.store.Reader, rows, issue.Parts{
		Remediation: r.GetIncludeRemediation(), ActivityHistory: r.GetIncludeActivityHistory(),
		IsArchived: r.GetIncludeIsArchived(), FirstDetectedAt: r.GetIncludeFirstDetectedAt(),
	})
	return out, err
}

// Findings of a part that is checked: the first part, and the largest. A pass over the columns precedes each part.
const (
	firstPart = 2000
	maxPart   = 100_000
)

// first returns the first n findings of an order. Conditions without an index are checked on parts of the list until
// enough satisfy them, but on all findings for a jump: it has to count the ones that it skips.
func (s *Issues) first(ctx context.Context, of *columns.Snapshot, chosen *issuefilter.Chosen, order columns.Order, n int) ([]columns.Key, error) {
	if len(chosen.Checks) == 0 || order.Skip > 0 {
		if err := chosen.CheckAll(ctx, s.store.Reader); err != nil {
			return nil, err
		}
		return of.First(&chosen.Filter, &order, n), nil
	}
	var found []columns.Key
	for size := max(firstPart, n); ; size = min(4*size, maxPart) {
		part := of.First(&chosen.Filter, &order, size)
		kept, err := chosen.Check(ctx, s.store.Reader, idsOf(part))
		if err != nil {
			return nil, err
		}
		for _, key := range part {
			if kept[key.ID] {
				found = append(found, key)
			}
		}
		if len(found) >= n {
			return found[:n], nil
		}
		if len(part) < size {
			return found, nil
		}
		order.After = &part[size-1]
	}
}

func idsOf(keys []columns.Key) []int64 {
	ids := make([]int64, len(keys))
	for i, key := range keys {
		ids[i] = key.ID
	}
	return ids
}

// chooseAll is choose for numbers of all findings.
func (s *Issues) chooseAll(ctx context.Context, r typed) (*columns.Snapshot, *issuefilter.Chosen, error) {
	of, chosen, err := s.choose(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	return of, chosen, chosen.CheckAll(ctx, s.store.Reader)
}

// typed is a request for findings of some types.
type typed interface {
	GetFilter() *findingsv1.IssuesFilter
	GetIssueType() findingsv1.IssueType
	GetIssueTypes() []findingsv1.IssueType
}

// choose returns the columns of the deployment, and what of them the request selects.
func (s *Issues) choose(ctx context.Context, r typed) (*columns.Snapshot, *issuefilter.Chosen, error) {
	conditions, err := issuefilter.Compile(ctx, r.GetFilter(), time.Now())
	if err != nil {
		return nil, nil, err
	}
	conditions.OfTypes(append([]findingsv1.IssueType{r.GetIssueType()}, r.GetIssueTypes()...)...)
	of, err := s.columns.Of(ctx, conditions.DeploymentID)
	if err != nil {
		return nil, nil, err
	}
	chosen, err := conditions.Choose(ctx, s.store.Reader, of)
	return of, chosen, err
}

// rows reads findings in the order of their keys. A finding that was deleted concurrently is left out.
func (s *Issues) rows(ctx context.Context, keys []columns.Key) ([]*ent.Finding, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	ids := idsOf(keys)
	found, err := s.store.Reader.Finding.Query().Where(store.WithIDs[predicate.Finding](ids)).All(ctx)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*ent.Finding, len(found))
	for _, row := range found {
		byID[row.ID] = row
	}
	rows := make([]*ent.Finding, 0, len(keys))
	for _, id := range ids {
		if row := byID[id]; row != nil {
			rows = append(rows, row)
		}
	}
	return rows, nil
}
