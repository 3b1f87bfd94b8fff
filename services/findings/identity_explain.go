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

// defaultExplained is how much of each list an explanation shows.
const defaultExplained = 20

// explanation is what is read to explain one finding: a fixed number of queries, however long its history.
type explanation struct {
	row     *ent.Finding
	rule    string
	content *storev1.FindingContent
	limit   int
	scans   map[int64]*ent.Scan
	out     *findingsv1.ExplainMatchResponse
}

// ExplainMatch says by what a finding is recognised, and how scans met it.
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
	shown, err := describeFinding(row)
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
		Finding: shown, Tool: row.Tool, AnalysisCategory: row.AnalysisCategory, RuleName: e.rule, MergedInto: row.MergedInto,
		Identity: &findingsv1.FindingIdentity{Name: row.Fingerprint},
	}
	if err := e.addEvidence(); err != nil {
		return nil, err
	}
	if err := e.addTwins(ctx, db); err != nil {
		return nil, err
	}
	if err := e.addChanges(ctx, db); err != nil {
		return nil, err
	}
	return e.out, e.addSights(ctx, db)
}

// addTwins adds the same finding on other refs, and which scan saw it first of all.
func (e *explanation) addTwins(ctx context.Context, db *ent.Client) error {
	if e.row.MergedInto != nil { // its identity is that of the other one
		return e.addFirst(ctx, db, e.row.FirstSeenScanID)
	}
	same := db.Finding.Query().Where(finding.ProjectID(e.row.ProjectID), finding.Fingerprint(e.row.Fingerprint), finding.Tool(e.row.Tool),
		finding.AnalysisCategory(e.row.AnalysisCategory), finding.MergedIntoIsNil())
	first, err := same.Clone().Aggregate(ent.Min(finding.FieldFirstSeenScanID)).Int(ctx)
	if err != nil {
		return err
	}
	twins, err := same.Where(finding.IDNEQ(e.row.ID)).Order(ent.Desc(finding.FieldRelevantSince, finding.FieldID)).Limit(e.limit).All(ctx)
	if err != nil {
		return err
	}
	if e.out.OtherRefs, err = describeFindings(twins...); err != nil {
		return err
	}
	return e.addFirst(ctx, db, int64(first))
}

// addFirst says which scan saw the identity first. A scan may be gone.
func (e *explanation) addFirst(ctx context.Context, db *ent.Client, id int64) error {
	if err := e.readScans(ctx, db, id); err != nil || e.scans[id] == nil {
		return err
	}
	first := e.scans[id]
	e.out.Identity.FirstScanId, e.out.Identity.FirstRef = first.ID, first.Ref
	e.out.Identity.Since = timestamppb.New(store.Time(first.StartedAt))
	return nil
}

// readScans reads the scans that the explanation names.
func (e *explanation) readScans(ctx context.Context, db *ent.Client, ids ...int64) error {
	rows, err := db.Scan.Query().Where(store.OneOf(scan.FieldID, ids)).Select(scan.FieldID, scan.FieldRef, scan.FieldStartedAt).All(ctx)
	for _, row := range rows {
		e.scans[row.ID] = row
	}
	return err
}

// addChanges adds what people did about the identity.
func (e *explanation) addChanges(ctx context.Context, db *ent.Client) error {
	query := db.IdentityChange.Query().Where(identitychange.Or(identitychange.FindingID(e.row.ID), identitychange.OtherID(e.row.ID)))
	rows, err := shownChanges(query).Limit(e.limit).All(ctx)
	for _, row := range rows {
		e.out.Changes = append(e.out.Changes, convertChange(row))
	}
	return err
}

// addEvidence says what the next scan will look for.
func (e *explanation) addEvidence() error {
	if e.row.Evidence == nil {
		return nil
	}
	known, version, err := identity.Decode(*e.row.Evidence)
	e.out.Identity.Version = int32(version)
	if version != identity.Version {
		return nil // of an older ladder: the next scan, or the job that follows an upgrade, makes it anew
	}
	if err != nil {
		return fmt.Errorf("evidence of finding %d: %w", e.row.ID, err)
	}
	e.out.Evidence = e.words(known)
	return nil
}
