package ingest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scancoverage"
	"github.com/palisade/palisade/services/findings/lifecycle"
)

// newerScan is a scan of a newer commit that was stored before this scan. What it covers, it has decided.
type newerScan struct {
	id      int64
	full    bool
	decider *decider
	// besides has the cells (see absences) in which both scans searched a file.
	besides map[cell]bool
}

// newerScan returns the newest successful scan of the same analysis, ref and products that is newer than this one. The
// time of the commits decides, if it is comparable (see olderThan) or the commit was scanned before; if one is unknown
// or they are equal, the start of the scans decides. Scans of the same commit are never older than each other. Scans of
// different files are parts of a project, and a diff scan says nothing about what a full scan reports.
func (s *session) newerScan(ctx context.Context, g *group) (*newerScan, error) {
	later := []predicate.ScanCoverage{scancoverage.ScanIDGT(s.scan.ID)}
	if at := s.scan.CommitTime; at != nil {
		later = []predicate.ScanCoverage{
			scancoverage.CommitTimeGT(*at),
			scancoverage.And(scancoverage.ScanIDGT(s.scan.ID), scancoverage.Or(scancoverage.CommitTimeIsNil(), scancoverage.CommitTime(*at))),
		}
	}
	var rows []*ent.ScanCoverage
	for _, newer := range later { // one by one, because each has its index
		query := s.tx.ScanCoverage.Query().Where(s.ofAnalysis(g.Analysis, s.scan.Ref)...).Where(newer)
		if s.scan.IsFullScan {
			query.Where(scancoverage.IsFullScan(true))
		}
		some, err := query.Order(ent.Desc(scancoverage.FieldCommitTime, scancoverage.FieldScanID)).Limit(historyLength).
			Select(scancoverage.FieldID, scancoverage.FieldScanID, scancoverage.FieldIsFullScan).All(ctx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	scans, err := s.scansOf(ctx, rows)
	if err != nil {
		return nil, err
	}
	again, err := s.scannedAgain(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		other := scans[row.ScanID]
		if other == nil || other.Commit == s.scan.Commit && other.Commit != "" || !again && !olderThan(s.scan, other) {
			continue
		}
		found, err := s.decidedBy(ctx, g, row)
		if err != nil || found != nil {
			return found, err
		}
	}
	return nil, nil
}

// ExactCommitTime is the key in scans.stats for a commit time whose time zone the scanner said.
const ExactCommitTime = "commit_time_exact"

// zones is the largest difference between two local times of the same moment.
const zones = 26 * time.Hour

// olderThan reports whether a scan is certainly older than another one with a later commit time. Without a time zone
// the times may be of machines in different zones. Scans that ran at the same time are compared anyway.
func olderThan(this, other *ent.Scan) bool {
	if this.CommitTime == nil || other.CommitTime == nil {
		return this.ID < other.ID
	}
	return this.StartedAt < max(other.StartedAt, deref(other.CompletedAt)) || exactTime(this) && exactTime(other) ||
		*other.CommitTime-*this.CommitTime > zones.Microseconds()
}

func exactTime(row *ent.Scan) bool {
	exact, _ := row.Stats[ExactCommitTime].(bool)
	return exact || row.UniqueID == nil // uploads say a time with its zone
}

func deref(at *int64) int64 {
	if at == nil {
		return 0
	}
	return *at
}

// scannedAgain reports whether the commit of this scan was scanned before on this ref: a job of an old commit was run
// again.
func (s *session) scannedAgain(ctx context.Context) (bool, error) {
	if s.scan.Commit == "" {
		return false, nil
	}
	return s.tx.Scan.Query().
		Where(scan.DeploymentID(s.deploymentID), scan.ProjectID(s.project.ID), scan.Commit(s.scan.Commit), scan.Ref(s.scan.Ref), scan.IDLT(s.scan.ID)).
		Exist(ctx)
}

// decidedBy reads a scan of a newer commit; nil if it decided nothing about the files and products of this scan.
func (s *session) decidedBy(ctx context.Context, g *group, row *ent.ScanCoverage) (*newerScan, error) {
	whole, err := s.tx.ScanCoverage.Get(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	content, err := StoredCoverage(whole)
	if err != nil {
		return nil, err
	}
	c := &Coverage{ScanCoverage: content, Products: splitList(content.GetProduct())}
	if c.GetFailure() != "" || !coversAny(c.Products, g.coverage.Products) {
		return nil, nil
	}
	n := &newerScan{id: row.ScanID, full: row.IsFullScan, decider: newDecider(c, true), besides: map[cell]bool{}}
	files := set(g.coverage.GetFiles())
	if n.full && c.GetFilesKnown() && g.coverage.GetFilesKnown() && !overlap(files, n.decider.files) {
		return nil, nil
	}
	for file := range files {
		if n.decider.files[file] {
			n.besides[cellOf(file)] = true
		}
	}
	return n, nil
}

// covers reports whether the newer scan would have reported a finding, if its commit had it.
func (n *newerScan) covers(product, rule, path string) bool {
	switch {
	case n.decider.blind(product, rule, path), n.decider.coverage.GetRulesKnown() && !n.decider.ran(rule):
		return false
	case !n.full, n.decider.renamed[path], !n.decider.unsearched(path):
		return true // a diff scan searches what the branch changes
	}
	return n.besides[cellOf(path)]
}

// overtaken reports whether the scan of a newer commit has decided about a result.
func (i *Result) overtaken() bool {
	newer := i.matches.newer
	return newer != nil && newer.covers(i.Product, i.ruleName, i.path)
}

// compareOlder decides what a result of an older commit changes about its stored finding: nothing, unless the finding
// is closed and the newer commit said nothing about it.
func (i *Result) compareOlder(old *ent.Finding) change {
	c := change{Result: i, old: old, what: "unchanged"}
	switch {
	case lifecycle.Seen(old.State):
	case i.overtaken():
		c.what = superseded
	default:
		c.what, c.event = "reopened", "reopened"
	}
	return c
}

// superseded is the outcome of results that a newer commit no longer has.
const superseded = "superseded"

// noteSuperseded keeps the ids of created findings that a newer commit no longer has.
func (w *writer) noteSuperseded(ctx context.Context, fresh []*Result) error {
	overtaken := slices.DeleteFunc(slices.Clone(fresh), func(i *Result) bool { return !i.overtaken() })
	if len(overtaken) == 0 {
		return nil
	}
	made, err := w.readCreated(ctx, overtaken)
	if err != nil {
		return err
	}
	for _, i := range overtaken {
		row := made[storedKey{i.fingerprint, i.Group.Category}]
		if row == nil {
			return fmt.Errorf("created finding not found: %s", i.fingerprint)
		}
		w.superseded[i.matches.newer.id] = append(w.superseded[i.matches.newer.id], row.ID)
	}
	return nil
}

// closeSuperseded closes these findings.
func (w *writer) closeSuperseded(ctx context.Context) error {
	change := stateChange{
		store: w.store, tx: w.tx, deploymentID: w.deploymentID, scanID: w.scan.ID, actorKind: "scan", actorID: w.scan.ID, at: w.now,
	}
	for _, id := range slices.Sorted(maps.Keys(w.superseded)) {
		why := decision{state: lifecycle.Fixed, prefix: fmt.Sprintf("scan %d of a newer commit did not report it", id)}
		if _, err := change.close(ctx, why, w.superseded[id]); err != nil {
			return err
		}
	}
	return nil
}
