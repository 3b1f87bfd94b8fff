package ingest

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/scan"
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
	summary.Older = map[Analysis]Newer{}
	for _, g := range m.groups {
		if g.newer != nil {
			summary.Older[g.Analysis] = Newer{ScanID: g.newer.latest().id, By: g.newer.latest().by}
		}
	}
	if err := s.storeCoverages(ctx, m.groups); err != nil {
		return fmt.Errorf("store coverage: %w", err)
	}
	return nil
}

// closeMissing closes findings that this scan covered but did not report. It is limited to the same ref, tool, category
// and product. An older scan closes what no newer one covers.
func (c *closer) closeMissing(ctx context.Context, groups []*matches) error {
	held, err := c.activeHolds(ctx)
	if err != nil {
		return err
	}
	for _, g := range groups {
		g.indexJoined()
		last := held[g.Analysis]
		missing := slices.DeleteFunc(g.unjoined, g.isJoined)
		if g.newer == nil { // else a newer scan decided what waits, and what was seen last
			if last != nil {
				last.leave(g.isJoined)
			}
			if err := c.storeLastSeen(ctx, g, missing); err != nil {
				return err
			}
		}
		if len(missing) > 0 && g.coverage.GetFailure() == "" && !c.comparesWithItself() {
			if err := c.closeGroup(ctx, g, missing, last); err != nil {
				return err
			}
		}
		if g.newer != nil && g.coverage.GetFailure() == "" && c.scan.IsFullScan {
			if err := c.correctGroup(ctx, g); err != nil {
				return err
			}
		}
		if last != nil {
			if err := c.saveHold(ctx, last); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *closer) closeGroup(ctx context.Context, g *matches, missing []int64, last *hold) error {
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
		base, err := c.lastBaseScan(ctx)
		if err != nil {
			return err
		}
		lastFull = max(lastFull, base)
	}
	diffs, err := c.pullRequestDiffs(ctx, g.group)
	if err != nil {
		return err
	}
	g.absences.before(before)
	d, closes := newDecider(g.coverage, c.scan.IsFullScan), closings{}
	for part := range slices.Chunk(missing, closeBatch) {
		if err := c.decideRows(ctx, g, d, diffs, part, lastFull, closes); err != nil {
			return err
		}
	}
	return c.settle(ctx, g, closes, last)
}

// comparesWithItself reports whether this is a diff scan of the primary or the default branch. Its base is an earlier
// commit of the branch, so it is silent about what the branch had before.
func (s *session) comparesWithItself() bool {
	return !s.scan.IsFullScan && (s.scan.Ref == s.project.DefaultBranch || s.scan.Ref == s.project.PrimaryBranch)
}

// lastBaseScan returns the last scan of this ref at the commit that this diff scan compares with; 0 if there is none.
// This scan is silent about what that commit has, so it closes nothing that was there by then.
func (s *session) lastBaseScan(ctx context.Context) (int64, error) {
	base, err := s.mergeBase()
	if err != nil || base == "" {
		return 0, err
	}
	id, err := s.tx.Scan.Query().
		Where(scan.DeploymentID(s.deploymentID), scan.ProjectID(s.project.ID), scan.Commit(base), scan.Ref(s.scan.Ref), scan.IDLT(s.scan.ID)).
		Order(ent.Desc(scan.FieldID)).FirstID(ctx)
	if ent.IsNotFound(err) {
		return 0, nil
	}
	return id, err
}

// closing is a decision to close findings of one product.
type closing struct {
	decision
	product string
	// certain says that more than the silence of this report supports it, so it is not held.
	certain bool
}

// closings has the findings of each decision.
type closings map[closing][]int64

func (c closings) total() (n int) {
	for _, ids := range c {
		n += len(ids)
	}
	return n
}

// unseen has the columns of a missing finding that a decision needs.
type unseen struct {
	ID        int64   `sql:"id"`
	RuleID    int64   `sql:"rule_id"`
	FirstScan int64   `sql:"first_seen_scan_id"`
	IssueType string  `sql:"issue_type"`
	FilePath  *string `sql:"file_path"`
	// Historical secrets are in earlier commits: no scan looks at their files.
	Historical *bool `sql:"historical"`
}

// decideRows adds the decisions about some missing findings.
func (c *closer) decideRows(
	ctx context.Context, g *matches, d *decider, diffs *pullRequestDiffs, ids []int64, lastFull int64, closes closings,
) error {
	var rows []unseen
	err := c.tx.Finding.Query().Where(finding.DeploymentID(c.deploymentID)).Modify(store.FoundByIDs(ids)).
		Select(finding.FieldID, finding.FieldRuleID, finding.FieldFirstSeenScanID, finding.FieldIssueType, finding.FieldFilePath, finding.FieldHistorical).
		Scan(ctx, &rows)
	if err != nil {
		return err
	}
	if !c.scan.IsFullScan {
		if rows, err = c.sinceFullScan(ctx, rows, lastFull); err != nil {
			return err
		}
	}
	rules, renamed, err := c.presentNames(ctx, g.Tool, rows)
	if err != nil {
		return err
	}
	upgraded := false
	if len(renamed) > 0 {
		if upgraded, err = c.isUpgraded(ctx, g); err != nil {
			return err
		}
	}
	for _, row := range rows {
		path := ""
		if row.FilePath != nil {
			path = *row.FilePath
		}
		if g.newer.cover(row.IssueType, rules[row.RuleID], path) {
			continue
		}
		if _, judged := d.absent[path]; !judged && c.scan.IsFullScan && d.unsearched(path) && !d.renamed[path] {
			if d.absent[path], err = g.absences.judge(ctx, path); err != nil {
				return err
			}
		}
		f := d.decide(row.IssueType, rules[row.RuleID], path)
		if f, err = c.unlessPartlyParsed(ctx, g, row.ID, path, f); err != nil {
			return err
		}
		if f == keepState && row.Historical == nil {
			f = d.decideReverted(diffs, row.IssueType, rules[row.RuleID], path)
		}
		if _, ignored := c.ignores.Match(row.IssueType, path); ignored && !f.despiteIgnoring() {
			f = keepState
		}
		if f == keepState {
			continue
		}
		key := closing{f, row.IssueType, f.aboutFile() || upgraded && renamed[row.RuleID]}
		closes[key] = append(closes[key], row.ID)
	}
	return nil
}

// isUpgraded reports whether the tool's version changed since the previous scan. A run without results shows nothing
// about its rules.
func (c *closer) isUpgraded(ctx context.Context, g *matches) (bool, error) {
	now := g.coverage.GetToolVersion()
	if now == "" || len(g.joined) == 0 {
		return false, nil
	}
	before, err := c.latestCoverage(ctx, g.group, c.scan.Ref)
	if err != nil || before == nil {
		return false, err
	}
	return before.GetToolVersion() != "" && before.GetToolVersion() != now, nil
}

// sinceFullScan keeps the findings that first appeared after the last full scan, or the last scan of the base. Diff
// scans report only such findings.
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

// presentNames returns the current names of the findings' rules by rule id, and the rules that an alias renamed since
// a scan reported them last.
func (c *closer) presentNames(ctx context.Context, tool string, rows []unseen) (names map[int64]string, renamed map[int64]bool, err error) {
	var ids []int64
	for _, row := range rows {
		ids = append(ids, row.RuleID)
	}
	slices.Sort(ids)
	if names, err = ruleNamesOf(ctx, c.tx, slices.Compact(ids)); err != nil {
		return nil, nil, err
	}
	aliases, err := c.names.of(ctx, tool)
	if err != nil {
		return nil, nil, err
	}
	renamed = map[int64]bool{}
	for id, name := range names {
		if now, known := aliases[name]; known {
			names[id], renamed[id] = now, true
		}
	}
	return names, renamed, nil
}

// closeNow closes findings.
func (c *closer) closeNow(ctx context.Context, closes closings) error {
	change := stateChange{
		store: c.store, tx: c.tx, deploymentID: c.deploymentID, scanID: c.scan.ID, actorKind: "scan", actorID: c.scan.ID, at: c.now,
	}
	for _, key := range closes.inOrder() {
		n, err := change.close(ctx, key.decision, closes[key])
		if err != nil {
			return err
		}
		c.Counts[Outcome{Product: key.product, What: key.state}] += n
	}
	return nil
}
