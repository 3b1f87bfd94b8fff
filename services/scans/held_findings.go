package scans

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/rule"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/ingest"
)

// GetHeldCloses returns held closes with a page of their findings.
func (s *HeldCloses) GetHeldCloses(ctx context.Context, r *scansv1.GetHeldClosesRequest) (*scansv1.GetHeldClosesResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", nil
	digest, err := page.DigestOf("findings of held closes", filter)
	if err != nil {
		return nil, err
	}
	key, _, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	row, err := findHold(ctx, s.store.Reader, r.GetHeldClosesId())
	if err != nil {
		return nil, err
	}
	all, err := ingest.HeldFindings(row, key.ID)
	if err != nil {
		return nil, err
	}
	names, err := projectNames(ctx, s.store.Reader, []int64{row.ProjectID})
	if err != nil {
		return nil, err
	}
	out := &scansv1.GetHeldClosesResponse{HeldCloses: convertHold(row, names[row.ProjectID])}
	var held []ingest.HeldFinding
	for f := range all {
		if len(held) == pageSize(r.Limit) {
			out.Cursor = page.Encode(digest, page.Key{ID: held[len(held)-1].ID})
			break
		}
		held = append(held, f)
	}
	out.Findings, err = s.heldFindings(ctx, held)
	return out, err
}

// heldFindings reads the findings.
func (s *HeldCloses) heldFindings(ctx context.Context, held []ingest.HeldFinding) ([]*scansv1.HeldFinding, error) {
	if len(held) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(held))
	for n, f := range held {
		ids[n] = f.ID
	}
	rows, err := s.store.Reader.Finding.Query().Modify(store.FoundByIDs(ids)).
		Select(finding.FieldID, finding.FieldRuleID, finding.FieldSeverity, finding.FieldStatus, finding.FieldContent).All(ctx)
	if err != nil {
		return nil, err
	}
	byID, ruleIDs := make(map[int64]*ent.Finding, len(rows)), map[int64]bool{}
	for _, row := range rows {
		byID[row.ID], ruleIDs[row.RuleID] = row, true
	}
	ids = ids[:0]
	for id := range ruleIDs {
		ids = append(ids, id)
	}
	rules, err := s.store.Reader.Rule.Query().Where(store.WithIDs[predicate.Rule](ids)).Select(rule.FieldID, rule.FieldName).All(ctx)
	if err != nil {
		return nil, err
	}
	names := map[int64]string{}
	for _, row := range rules {
		names[row.ID] = row.Name
	}
	var out []*scansv1.HeldFinding
	for _, f := range held {
		row := byID[f.ID]
		if row == nil {
			continue
		}
		content, err := blob.Decode(row.Content)
		if err != nil {
			return nil, fmt.Errorf("content of finding %d: %w", f.ID, err)
		}
		path := content.GetLocation().GetFilePath()
		out = append(out, &scansv1.HeldFinding{
			Id: f.ID, RuleName: names[row.RuleID], Severity: row.Severity, Path: path, Line: content.GetLocation().GetLine(),
			Status: row.Status, ClosesAs: f.State, Reason: f.Reason(path), Waiting: f.Waiting,
		})
	}
	return out, nil
}
