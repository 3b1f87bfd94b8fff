package findings

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/identitychange"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/scan"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/store"
)

// defaultExplained is how many entries of each list an explanation shows by default.
const defaultExplained = 20

// explanation collects the explanation of one finding. It sends a fixed number of queries for a history of any length.
type explanation struct {
	row     *ent.Finding
	rule    string
	content *storev1.FindingContent
	limit   int
	scans   map[int64]*ent.Scan
	out     *findingsv1.ExplainMatchResponse
}

// ExplainMatch returns the evidence that identifies a finding, and how scans matched it.
func (s *FindingIdentity) ExplainMatch(ctx context.Context, r *findingsv1.ExplainMatchRequest) (*findingsv1.ExplainMatchResponse, error) {
	db := s.store.Reader
	row, err := db.Finding.Query().Where(finding.ID(r.GetFindingId())).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, noFinding(r.GetFindingId())
	}
	if err != nil {
		return nil, err
	}
	e := &explanation{row: row, limit: defaultExplained, scans: map[int64]*ent.Scan{}}
	if r.Limit != nil {
		e.limit = int(r.GetLimit())
	}
	if e.content, err = blob.Decode(row.Content); err != nil {
		return nil, fmt.Errorf("content of finding %d: %w", row.ID, err)
	}
	described, err := describeFinding(row)
	if err != nil {
		return nil, err
	}
	about, err := db.Rule.Query().Where(rule.ID(row.RuleID)).Select(rule.FieldName).Only(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return nil, err
	}
	if about != nil {
		e.rule = about.Name
	}
	e.out = &findingsv1.ExplainMatchResponse{
		Finding: described, Tool: row.Tool, AnalysisCategory: row.AnalysisCategory, RuleName: e.rule, MergedInto: row.MergedInto,
		Identity: &findingsv1.FindingIdentity{Name: row.Fingerprint},
	}
	if err := e.addEvidence(); err != nil {
		return nil, err
	}
	if err := e.addSiblings(ctx, db); err != nil {
		return nil, err
	}
	if err := e.addChanges(ctx, db); err != nil {
		return nil, err
	}
	return e.out, e.addSightings(ctx, db)
}

// addSiblings adds the siblings on other refs, and the first scan of the identity.
func (e *explanation) addSiblings(ctx context.Context, db *ent.Client) error {
	if e.row.MergedInto != nil { // it has the identity of another finding
		return e.addFirst(ctx, db, e.row.FirstSeenScanID)
	}
	same := db.Finding.Query().Where(finding.ProjectID(e.row.ProjectID), finding.Fingerprint(e.row.Fingerprint), finding.Tool(e.row.Tool),
		finding.AnalysisCategory(e.row.AnalysisCategory), finding.MergedIntoIsNil())
	first, err := same.Clone().Aggregate(ent.Min(finding.FieldFirstSeenScanID)).Int(ctx)
	if err != nil {
		return err
	}
	siblings, err := same.Where(finding.IDNEQ(e.row.ID)).Order(ent.Desc(finding.FieldRelevantSince, finding.FieldID)).Limit(e.limit).All(ctx)
	if err != nil {
		return err
	}
	if e.out.OtherRefs, err = describeFindings(siblings...); err != nil {
		return err
	}
	return e.addFirst(ctx, db, int64(first))
}

// addFirst adds the first scan of the identity, unless the scan was deleted.
func (e *explanation) addFirst(ctx context.Context, db *ent.Client, id int64) error {
	if err := e.readScans(ctx, db, id); err != nil || e.scans[id] == nil {
		return err
	}
	first := e.scans[id]
	e.out.Identity.FirstScanId, e.out.Identity.FirstRef = first.ID, first.Ref
	e.out.Identity.Since = timestamppb.New(store.Time(first.StartedAt))
	return nil
}

// readScans reads the scans that the explanation mentions.
func (e *explanation) readScans(ctx context.Context, db *ent.Client, ids ...int64) error {
	rows, err := db.Scan.Query().Where(store.OneOf(scan.FieldID, ids)).Select(scan.FieldID, scan.FieldRef, scan.FieldStartedAt).All(ctx)
	for _, row := range rows {
		e.scans[row.ID] = row
	}
	return err
}

// addChanges adds the identity changes of the finding.
func (e *explanation) addChanges(ctx context.Context, db *ent.Client) error {
	query := db.IdentityChange.Query().Where(identitychange.Or(identitychange.FindingID(e.row.ID), identitychange.OtherID(e.row.ID)))
	rows, err := newestChanges(query).Limit(e.limit).All(ctx)
	for _, row := range rows {
		e.out.Changes = append(e.out.Changes, convertChange(row))
	}
	return err
}

// addEvidence adds the evidence that the next scan compares.
func (e *explanation) addEvidence() error {
	if e.row.Evidence == nil {
		return nil
	}
	known, version, err := identity.Decode(*e.row.Evidence)
	e.out.Identity.Version = int32(version)
	if version != identity.Version {
		return nil // of an older ladder: the next scan, or the job after an upgrade, computes it again
	}
	if err != nil {
		return fmt.Errorf("evidence of finding %d: %w", e.row.ID, err)
	}
	e.out.Evidence = e.words(known)
	return nil
}
