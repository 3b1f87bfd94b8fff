package ingest

import (
	"context"
	"math"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// closePart is how many findings that were not seen are looked at together.
const closePart = 10 * batchSize

// createdPart is how many events of findings that a scan made are written at once, and crowdedPart while others want the processors of
// the node.
const createdPart, crowdedPart = 1000, 100

// createdEvents writes the events of findings that a scan made; what they are read from follows.
const createdEvents = `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, scan_id, at)
	SELECT deployment_id, id, CASE WHEN triage_state = '` + lifecycle.Untriaged + `' THEN 'created' ELSE 'triage_inherited' END, '', status,
		COALESCE(triage_reason, ''), '', 'scan', first_seen_scan_id, first_seen_scan_id, created_at FROM `

// PostgreSQL makes findings and their events in one statement: recordsCreated in front of the INSERT, and createdRecords behind it.
const (
	recordsCreated = "WITH made AS ("
	createdRecords = " RETURNING id, deployment_id, triage_state, triage_reason, status, first_seen_scan_id, created_at) " + createdEvents + "made"
)

// recordCreated writes an event for each finding that this scan made, unless they were written with them.
func (in *ingest) recordCreated(ctx context.Context) error {
	if in.Total("created") == 0 {
		return nil
	}
	if !in.Store.Postgres() {
		if err := in.recordInParts(ctx); err != nil {
			return err
		}
	}
	return in.recordRecognised(ctx)
}

// recordInParts writes these events after the findings, some at a time.
func (in *ingest) recordInParts(ctx context.Context) error {
	for after, last := int64(0), int64(0); last != math.MaxInt64; after = last {
		var err error
		if last, err = in.endOfPart(ctx, after); err != nil {
			return err
		}
		err = in.Store.Exec(ctx, in.tx, createdEvents+"findings WHERE deployment_id = ? AND first_seen_scan_id = ? AND id > ? AND id <= ?",
			in.deploymentID, in.Scan.ID, after, last)
		if err != nil {
			return err
		}
		in.work.Yield(ctx)
	}
	return nil
}

// endOfPart is the last of the next findings that get their events together.
func (in *ingest) endOfPart(ctx context.Context, after int64) (int64, error) {
	part := createdPart
	if in.crowded() {
		part = crowdedPart
	}
	last, err := in.tx.Finding.Query().Where(finding.DeploymentID(in.deploymentID), finding.FirstSeenScanID(in.Scan.ID), finding.IDGT(after)).
		Order(ent.Asc(finding.FieldID)).Offset(part - 1).Limit(1).IDs(ctx)
	if err != nil || len(last) == 0 {
		return math.MaxInt64, err
	}
	return last[0], nil
}

// closeMissing decides about what earlier scans found and this one did not, by coverage: only of the same ref, tool, category and
// product.
func (in *ingest) closeMissing(ctx context.Context) error {
	for _, g := range in.inOrder() {
		if g.coverage.GetFailure() != "" {
			continue
		}
		g.noteMet()
		missing := slices.DeleteFunc(g.left, g.isMet)
		if len(missing) == 0 {
			continue
		}
		if err := in.closeGroup(ctx, g, missing); err != nil {
			return err
		}
	}
	return nil
}

func (in *ingest) closeGroup(ctx context.Context, g *group, missing []int64) error {
	before := g.previous
	if before != nil && !g.coverage.ListsAll {
		repeat, err := in.isRepeat(ctx, g)
		if err != nil {
			return err
		}
		if repeat {
			before = nil
		}
	}
	lastFull := int64(0)
	if !in.Scan.IsFullScan {
		var err error
		if lastFull, err = in.lastFullScan(ctx, g); err != nil {
			return err
		}
	}
	j := newJudge(g.coverage, in.Scan.IsFullScan, before)
	for part := range slices.Chunk(missing, closePart) {
		if err := in.judgePart(ctx, g, j, part, lastFull); err != nil {
			return err
		}
	}
	return nil
}

// unseen is what has to be known of a finding that was not seen.
type unseen struct {
	ID        int64   `sql:"id"`
	RuleID    int64   `sql:"rule_id"`
	FirstScan int64   `sql:"first_seen_scan_id"`
	IssueType string  `sql:"issue_type"`
	FilePath  *string `sql:"file_path"`
}

func (in *ingest) judgePart(ctx context.Context, g *group, j *judge, ids []int64, lastFull int64) error {
	var rows []unseen
	err := in.tx.Finding.Query().Where(finding.DeploymentID(in.deploymentID)).Modify(store.FoundByIDs(ids)).
		Select(finding.FieldID, finding.FieldRuleID, finding.FieldFirstSeenScanID, finding.FieldIssueType, finding.FieldFilePath).Scan(ctx, &rows)
	if err != nil {
		return err
	}
	if !in.Scan.IsFullScan {
		if rows, err = in.sinceFullScan(ctx, rows, lastFull); err != nil {
			return err
		}
	}
	rules, err := in.presentNames(ctx, g.Tool, rows)
	if err != nil {
		return err
	}
	fates := map[fate][]int64{}
	for _, row := range rows {
		path := ""
		if row.FilePath != nil {
			path = *row.FilePath
		}
		f := j.fate(row.IssueType, rules[row.RuleID], path)
		if f == leftAlone {
			continue
		}
		fates[f] = append(fates[f], row.ID)
		in.Counts[Outcome{Product: row.IssueType, What: f.state}]++
	}
	for _, f := range []fate{goneReport, goneScanned, goneCovered, goneRule, ruleGone, fileRenamed, fileGone, fileMissing} {
		if len(fates[f]) == 0 {
			continue
		}
		slices.Sort(fates[f])
		if err := in.close(ctx, f, fates[f]); err != nil {
			return err
		}
	}
	return nil
}

// sinceFullScan leaves the findings that first appeared after the last full scan: only these can a scan that compares with a base
// see or miss.
func (in *ingest) sinceFullScan(ctx context.Context, rows []unseen, lastFull int64) ([]unseen, error) {
	rows = slices.DeleteFunc(rows, func(row unseen) bool { return row.FirstScan <= lastFull })
	first := map[int64]bool{}
	for _, row := range rows {
		first[row.FirstScan] = true
	}
	ids := make([]int64, 0, len(first))
	for id := range first {
		ids = append(ids, id)
	}
	// Scans of earlier versions stored no coverage; all of them were full ones.
	full, err := in.tx.Scan.Query().Where(scan.IsFullScan(true), func(s *entsql.Selector) { s.Where(store.InIDs(s.C(scan.FieldID), ids)) }).IDs(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range full {
		first[id] = false
	}
	return slices.DeleteFunc(rows, func(row unseen) bool { return !first[row.FirstScan] }), nil
}

// presentNames are the present names of the rules of findings, by id.
func (in *ingest) presentNames(ctx context.Context, tool string, rows []unseen) (map[int64]string, error) {
	var ids []int64
	for _, row := range rows {
		ids = append(ids, row.RuleID)
	}
	slices.Sort(ids)
	names, err := ruleNamesOf(ctx, in.tx, slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	aliases, err := in.namesOf(ctx, tool)
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

// close sets the state of findings, with an event for each that says why.
func (in *ingest) close(ctx context.Context, f fate, ids []int64) error {
	reason, args := "CAST(? AS TEXT)", []any{f.prefix}
	if f.about {
		reason, args = "CAST(? AS TEXT) || COALESCE(file_path, '') || CAST(? AS TEXT)", append(args, f.suffix)
	}
	inIDs, idArgs := in.Store.InIDs(ids)
	args = append([]any{f.state, f.state}, args...)
	args = append(append(args, in.Scan.ID, in.Scan.ID, in.now, in.deploymentID), idArgs...)
	err := in.Store.Exec(ctx, in.tx, `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, scan_id, at)
		SELECT deployment_id, id, ?, status, ?, `+reason+`, '', 'scan', ?, ?, ? FROM findings WHERE +deployment_id = ? AND id`+inIDs, args...)
	if err != nil {
		return err
	}
	return in.tx.Finding.Update().Where(store.OfDeployment[predicate.Finding](in.deploymentID), store.WithIDs[predicate.Finding](ids)).
		SetState(f.state).SetStatus(f.state).SetStateUpdatedAt(in.now).Exec(tenant.ByKey(ctx))
}
