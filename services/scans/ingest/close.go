package ingest

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// closeBatch is the number of missing findings that are decided together.
const closeBatch = 10 * batchSize

// closer is the step that closes findings which earlier scans reported and this scan did not.
type closer struct {
	*session
	*Summary // of the written findings
}

func (s *session) close(ctx context.Context, m *matched, summary *Summary) error {
	if err := (&closer{s, summary}).closeMissing(ctx, m.groups); err != nil {
		return fmt.Errorf("close findings: %w", err)
	}
	if err := s.storeCoverages(ctx, m.groups); err != nil {
		return fmt.Errorf("store coverage: %w", err)
	}
	return nil
}

// closeMissing closes findings that this scan covered but did not report. It is limited to the same ref, tool, category
// and product.
func (c *closer) closeMissing(ctx context.Context, groups []*matches) error {
	for _, g := range groups {
		if g.coverage.GetFailure() != "" {
			continue
		}
		g.indexJoined()
		missing := slices.DeleteFunc(g.unjoined, g.isJoined)
		if len(missing) == 0 {
			continue
		}
		if err := c.closeGroup(ctx, g, missing); err != nil {
			return err
		}
	}
	return nil
}

func (c *closer) closeGroup(ctx context.Context, g *matches, missing []int64) error {
	before := g.previous
	if before != nil && !g.coverage.ListsAll {
		repeat, err := c.isRepeat(ctx, g)
		if err != nil {
			return err
		}
		if repeat {
			before = nil
		}
	}
	lastFull := int64(0)
	if !c.scan.IsFullScan {
		var err error
		if lastFull, err = c.lastFullScan(ctx, g.group); err != nil {
			return err
		}
	}
	d := newDecider(g.coverage, c.scan.IsFullScan, before)
	for part := range slices.Chunk(missing, closeBatch) {
		if err := c.closeRows(ctx, g, d, part, lastFull); err != nil {
			return err
		}
	}
	return nil
}

// unseen has the columns of a missing finding that a decision needs.
type unseen struct {
	ID        int64   `sql:"id"`
	RuleID    int64   `sql:"rule_id"`
	FirstScan int64   `sql:"first_seen_scan_id"`
	IssueType string  `sql:"issue_type"`
	FilePath  *string `sql:"file_path"`
}

func (c *closer) closeRows(ctx context.Context, g *matches, d *decider, ids []int64, lastFull int64) error {
	var rows []unseen
	err := c.tx.Finding.Query().Where(finding.DeploymentID(c.deploymentID)).Modify(store.FoundByIDs(ids)).
		Select(finding.FieldID, finding.FieldRuleID, finding.FieldFirstSeenScanID, finding.FieldIssueType, finding.FieldFilePath).Scan(ctx, &rows)
	if err != nil {
		return err
	}
	if !c.scan.IsFullScan {
		if rows, err = c.sinceFullScan(ctx, rows, lastFull); err != nil {
			return err
		}
	}
	rules, err := c.presentNames(ctx, g.Tool, rows)
	if err != nil {
		return err
	}
	decisions := map[decision][]int64{}
	for _, row := range rows {
		path := ""
		if row.FilePath != nil {
			path = *row.FilePath
		}
		f := d.decide(row.IssueType, rules[row.RuleID], path)
		if f == keepState {
			continue
		}
		decisions[f] = append(decisions[f], row.ID)
		c.Counts[Outcome{Product: row.IssueType, What: f.state}]++
	}
	for _, f := range []decision{goneReport, goneScanned, goneCovered, goneRule, ruleGone, fileRenamed, fileGone, fileMissing} {
		if len(decisions[f]) == 0 {
			continue
		}
		slices.Sort(decisions[f])
		if err := c.setState(ctx, f, decisions[f]); err != nil {
			return err
		}
	}
	return nil
}

// sinceFullScan keeps the findings that first appeared after the last full scan. Diff scans report only such findings.
func (c *closer) sinceFullScan(ctx context.Context, rows []unseen, lastFull int64) ([]unseen, error) {
	rows = slices.DeleteFunc(rows, func(row unseen) bool { return row.FirstScan <= lastFull })
	first := map[int64]bool{}
	for _, row := range rows {
		first[row.FirstScan] = true
	}
	ids := make([]int64, 0, len(first))
	for id := range first {
		ids = append(ids, id)
	}
	// Scans of earlier versions stored no coverage. They were all full scans.
	full, err := c.tx.Scan.Query().Where(scan.IsFullScan(true), func(s *entsql.Selector) { s.Where(store.InIDs(s.C(scan.FieldID), ids)) }).IDs(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range full {
		first[id] = false
	}
	return slices.DeleteFunc(rows, func(row unseen) bool { return !first[row.FirstScan] }), nil
}

// presentNames returns the current names of the findings' rules, by rule id.
func (c *closer) presentNames(ctx context.Context, tool string, rows []unseen) (map[int64]string, error) {
	var ids []int64
	for _, row := range rows {
		ids = append(ids, row.RuleID)
	}
	slices.Sort(ids)
	names, err := ruleNamesOf(ctx, c.tx, slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	aliases, err := c.names.of(ctx, tool)
	if err != nil {
		return nil, err
	}
	for id, name := range names {
		if now, renamed := aliases[name]; renamed {
			names[id] = now
		}
	}
	return names, nil
}

// setState sets the state of findings, and writes an event with the reason for each.
func (c *closer) setState(ctx context.Context, f decision, ids []int64) error {
	reason, args := "CAST(? AS TEXT)", []any{f.prefix}
	if f.about {
		reason, args = "CAST(? AS TEXT) || COALESCE(file_path, '') || CAST(? AS TEXT)", append(args, f.suffix)
	}
	inIDs, idArgs := c.store.InIDs(ids)
	args = append([]any{f.state, f.state}, args...)
	args = append(append(args, c.scan.ID, c.scan.ID, c.now, c.deploymentID), idArgs...)
	err := c.store.Exec(ctx, c.tx, `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, scan_id, at)
		SELECT deployment_id, id, ?, status, ?, `+reason+`, '', 'scan', ?, ?, ? FROM findings WHERE +deployment_id = ? AND id`+inIDs, args...)
	if err != nil {
		return err
	}
	return c.tx.Finding.Update().Where(store.OfDeployment[predicate.Finding](c.deploymentID), store.WithIDs[predicate.Finding](ids)).
		SetState(f.state).SetStatus(f.state).SetStateUpdatedAt(c.now).Exec(tenant.ByKey(ctx))
}
