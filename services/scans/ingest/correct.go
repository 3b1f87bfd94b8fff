package ingest

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// correctGroup corrects whether findings are fixed or removed. Newer scans closed them before this older scan arrived,
// which misses them, too. So it would have closed them first.
func (c *closer) correctGroup(ctx context.Context, g *matches) error {
	rows, err := c.closedByNewer(ctx, g)
	if err != nil {
		return err
	}
	d, corrected := newDecider(g.coverage, c.scan.IsFullScan), closings{}
	for part := range slices.Chunk(rows, closeBatch) {
		var about []unseen
		for _, row := range part {
			about = append(about, unseen{RuleID: row.RuleID})
		}
		rules, _, err := c.presentNames(ctx, g.Tool, about)
		if err != nil {
			return err
		}
		for _, row := range part {
			if f := d.decide(row.IssueType, rules[row.RuleID], derefOrEmpty(row.FilePath)); f != keepState && f.state != row.State {
				key := closing{decision: f, product: row.IssueType}
				corrected[key] = append(corrected[key], row.ID)
			}
		}
	}
	change := stateChange{
		store: c.store, tx: c.tx, deploymentID: c.deploymentID, scanID: c.scan.ID, actorKind: "scan", actorID: c.scan.ID, at: c.now, corrects: true,
	}
	for _, key := range corrected.inOrder() {
		if _, err := change.close(ctx, key.decision, corrected[key]); err != nil {
			return fmt.Errorf("correct why findings are closed: %w", err)
		}
	}
	return nil
}

// closedByNewer reads the findings that newer scans closed, and that neither these nor this scan reported.
func (c *closer) closedByNewer(ctx context.Context, g *matches) (rows []*ent.Finding, err error) {
	newer, since := map[int64]bool{}, g.newer[0].at
	for _, one := range g.newer {
		newer[one.id], since = true, min(since, one.at)
	}
	rows, err = c.tx.Finding.Query().Where(finding.DeploymentID(c.deploymentID), finding.ProjectID(c.project.ID), finding.Ref(c.scan.Ref),
		finding.Tool(g.Tool), finding.AnalysisCategory(g.Category), finding.StateIn(lifecycle.Fixed, lifecycle.Removed), finding.MergedIntoIsNil(),
		finding.StateUpdatedAtGTE(since), func(s *entsql.Selector) { s.Where(g.ofProducts()) }).
		Order(ent.Asc(finding.FieldID)).
		Select(finding.FieldID, finding.FieldRuleID, finding.FieldFirstSeenScanID, finding.FieldLastSeenScanID, finding.FieldIssueType,
			finding.FieldFilePath, finding.FieldState).All(ctx)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(row *ent.Finding) bool {
		return g.isJoined(row.ID) || row.FirstSeenScanID == c.scan.ID || newer[row.FirstSeenScanID] || newer[deref(row.LastSeenScanID)]
	})
	closedBy, err := c.closedBy(ctx, rows)
	return slices.DeleteFunc(rows, func(row *ent.Finding) bool { return !newer[closedBy[row.ID]] }), err
}

// closedBy returns the scans that closed findings last, by finding.
func (c *closer) closedBy(ctx context.Context, rows []*ent.Finding) (map[int64]int64, error) {
	scans := make(map[int64]int64, len(rows))
	for part := range slices.Chunk(rows, closeBatch) {
		ids := make([]int64, len(part))
		for n, row := range part {
			ids[n] = row.ID
		}
		events, err := c.tx.FindingEvent.Query().Where(findingevent.DeploymentID(c.deploymentID), findingevent.ToStatusIn(lifecycle.Fixed, lifecycle.Removed),
			func(s *entsql.Selector) {
				s.Where(entsql.And(entsql.ColumnsNEQ(s.C(findingevent.FieldFromStatus), s.C(findingevent.FieldToStatus)),
					store.InIDs(s.C(findingevent.FieldFindingID), ids)))
			}).Order(ent.Asc(findingevent.FieldID)).Select(findingevent.FieldID, findingevent.FieldFindingID, findingevent.FieldScanID).All(ctx)
		if err != nil {
			return nil, err
		}
		for _, event := range events {
			scans[event.FindingID] = deref(event.ScanID)
		}
	}
	return scans, nil
}
