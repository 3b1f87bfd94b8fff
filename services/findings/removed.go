package findings

import (
	"cmp"
	"context"
	"maps"
	"slices"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/byname"
	"github.com/palisade/palisade/services/projects/gitref"
)

// defaultRemoved is the page size of the list of removed findings.
const defaultRemoved = 100

// RemovedFindings is the service group "removed findings".
type RemovedFindings struct {
	findingsv1.UnimplementedRemovedFindingsServiceServer
	store *store.Store
}

// NewRemovedFindings serves removed findings from the store.
func NewRemovedFindings(st *store.Store) *RemovedFindings { return &RemovedFindings{store: st} }

// ListRemovedFindings lists removed findings in the order of the list of findings, whose indexes it uses.
func (s *RemovedFindings) ListRemovedFindings(
	ctx context.Context, r *findingsv1.ListRemovedFindingsRequest,
) (*findingsv1.ListRemovedFindingsResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", nil
	digest, err := page.DigestOf("removed findings"+tenant.Visibility(ctx), filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.Finding.Query().Where(finding.IssueType(cmp.Or(r.GetIssueType(), vocabulary.SAST)), finding.Status(lifecycle.Removed))
	if name := r.GetProject(); name != "" {
		id, err := s.store.Reader.Project.Query().Where(byname.Is(ctx, name)).OnlyID(ctx)
		if ent.IsNotFound(err) {
			return nil, apierr.NotFound("project %q not found", name)
		}
		if err != nil {
			return nil, err
		}
		query.Where(finding.ProjectID(id))
	}
	if r.GetRef() != "" {
		query.Where(finding.Ref(gitref.Full(r.GetRef())))
	}
	if continued {
		query.Where(func(s *entsql.Selector) {
			s.Where(entsql.CompositeLT([]string{s.C(finding.FieldRelevantSince), s.C(finding.FieldID)}, key.Order, key.ID))
		})
	}
	limit := defaultRemoved
	if r.Limit != nil {
		limit = int(r.GetLimit())
	}
	rows, err := query.Order(ent.Desc(finding.FieldRelevantSince, finding.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &findingsv1.ListRemovedFindingsResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		out.Cursor = page.Encode(digest, page.Key{Order: rows[limit-1].RelevantSince, ID: rows[limit-1].ID})
	}
	out.Findings, err = s.convert(ctx, rows)
	return out, err
}

// convert adds the names of projects and rules, and the reasons.
func (s *RemovedFindings) convert(ctx context.Context, rows []*ent.Finding) ([]*findingsv1.RemovedFinding, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	projectIDs, ruleIDs, ids := map[int64]string{}, map[int64]string{}, make([]int64, len(rows))
	for i, row := range rows {
		ids[i], projectIDs[row.ProjectID], ruleIDs[row.RuleID] = row.ID, "", ""
	}
	projects, err := s.store.Reader.Project.Query().Where(store.WithIDs[predicate.Project](slices.Collect(maps.Keys(projectIDs)))).Select(project.FieldID, project.FieldName).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range projects {
		projectIDs[p.ID] = p.Name
	}
	rules, err := s.store.Reader.Rule.Query().Where(store.WithIDs[predicate.Rule](slices.Collect(maps.Keys(ruleIDs)))).Select(rule.FieldID, rule.FieldName).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		ruleIDs[r.ID] = r.Name
	}
	reasons, err := s.reasons(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]*findingsv1.RemovedFinding, len(rows))
	for i, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return nil, err
		}
		out[i] = &findingsv1.RemovedFinding{
			Id: row.ID, Project: projectIDs[row.ProjectID], Ref: row.Ref, RuleName: ruleIDs[row.RuleID], Severity: row.Severity,
			Path: content.GetLocation().GetFilePath(), Line: content.GetLocation().GetLine(), TriageState: row.TriageState, Reason: reasons[row.ID],
			RelevantSince: timestamppb.New(store.Time(row.RelevantSince)), RemovedAt: timestamppb.New(store.Time(row.StateUpdatedAt)), MergedInto: row.MergedInto,
		}
	}
	return out, nil
}

// reasons reads why findings were removed: the reason of the latest event that did it.
func (s *RemovedFindings) reasons(ctx context.Context, ids []int64) (map[int64]string, error) {
	events, err := s.store.Reader.FindingEvent.Query().
		Where(store.OneOf(findingevent.FieldFindingID, ids), findingevent.ToStatus(lifecycle.Removed), findingevent.FromStatusNEQ(lifecycle.Removed)).
		Order(ent.Asc(findingevent.FieldID)).Select(findingevent.FieldFindingID, findingevent.FieldReason).All(ctx)
	reasons := make(map[int64]string, len(ids))
	for _, e := range events {
		reasons[e.FindingID] = e.Reason
	}
	return reasons, err
}
