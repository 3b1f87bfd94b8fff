package ingest

import (
	"cmp"
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
	"github.com/palisade/palisade/services/internal/store"
)

// newerScan is a newer scan that was stored before this scan. What it covers, it has decided.
type newerScan struct {
	newest
	full    bool
	decider *decider
	// besides has the cells (see absences) in which both scans searched a file.
	besides map[cell]bool
}

// newest is a newer scan, and what makes it newer.
type newest struct {
	id int64
	by Order
}

// Order is what makes another scan newer.
type Order string

const (
	byNothing Order = "" // it is not newer
	// ByCommit: its commit is newer.
	ByCommit Order = "of a newer commit"
	// ByRun: its tool ran later.
	ByRun Order = "of a later run"
	// ByStart: it began later.
	ByStart Order = "that began later"
)

// newerScan returns the newest successful scan of the same analysis, ref and products that is newer than this one (see
// newerBy). Scans of different files are parts of a project, and a diff scan says nothing about what a full scan
// reports.
func (s *session) newerScan(ctx context.Context, g *group) (*newerScan, error) {
	ran := s.ranAt(g.coverage)
	rows, err := s.maybeNewer(ctx, g, ran)
	if err != nil || len(rows) == 0 {
		return nil, err
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
		if other == nil {
			continue
		}
		by := newerBy(run{s.scan, ran, again}, run{scan: other, ran: row.RanAt})
		if by == byNothing {
			continue
		}
		found, err := s.decidedBy(ctx, g, row)
		if err != nil {
			return nil, err
		}
		if found != nil {
			found.by = by
			return found, nil
		}
	}
	return nil, nil
}

// maybeNewer returns the coverages that may be of newer scans, without their content: first by newer commits, then by
// later runs.
func (s *session) maybeNewer(ctx context.Context, g *group, ran *int64) (rows []*ent.ScanCoverage, err error) {
	type later struct {
		than predicate.ScanCoverage
		by   string
	}
	began, at := scancoverage.ScanIDGT(s.scan.ID), s.scan.CommitTime
	var each []later // one by one, because each has its index
	if at != nil {
		each = append(each, later{scancoverage.CommitTimeGT(*at), scancoverage.FieldCommitTime})
		began = scancoverage.And(began, scancoverage.Or(scancoverage.CommitTimeIsNil(), scancoverage.CommitTime(*at)))
	}
	if ran != nil {
		each = append(each, later{scancoverage.RanAtGT(*ran), scancoverage.FieldRanAt})
	}
	for _, one := range append(each, later{began, scancoverage.FieldScanID}) {
		query := s.tx.ScanCoverage.Query().Where(s.ofAnalysis(g.Analysis, s.scan.Ref)...).Where(one.than)
		if s.scan.IsFullScan {
			query.Where(scancoverage.IsFullScan(true))
		}
		some, err := query.Order(ent.Desc(one.by, scancoverage.FieldScanID)).Limit(historyLength).
			Select(scancoverage.FieldID, scancoverage.FieldScanID, scancoverage.FieldIsFullScan, scancoverage.FieldRanAt).All(ctx)
		if err != nil {
			return nil, err
		}
		for _, row := range some {
			if !slices.ContainsFunc(rows, func(other *ent.ScanCoverage) bool { return other.ID == row.ID }) {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// ranAt is when the tool of an analysis ran; nil if unknown. A report says when its run ended or began, and that is not
// later than its arrival: so a wrong clock counts only until then. The scanner protocol has the start of the scan, by
// the clock of the server.
func (s *session) ranAt(c *Coverage) *int64 {
	at := s.scan.StartedAt
	switch {
	case s.scan.UniqueID != nil:
	case c.RanAt.Unix() <= 0:
		return nil
	default:
		at = min(store.Micros(c.RanAt), at)
	}
	return &at
}

// run is what orders a scan of an analysis.
type run struct {
	scan *ent.Scan
	ran  *int64 // see ranAt
	// again says that the commit was scanned before: a job of an old commit was run again.
	again bool
}

// reported says that the scan is a report, and not of the scanner protocol.
func (r run) reported() bool { return r.scan.UniqueID == nil }

// newerBy returns what makes another scan newer. The times of the commits decide, if both are known and differ. Else
// the times of the runs decide, and if one is unknown or they are equal, the start of the scans: a report starts with
// its arrival. Among scans of the protocol only their start counts.
//
// Scans of one commit that are not both reports are never older than each other: they are parts of a project, or found
// the same. Reports of one commit that arrive late are of a slow job or a retry.
func newerBy(this, other run) Order {
	same := this.scan.Commit != "" && this.scan.Commit == other.scan.Commit
	mine, theirs := this.scan.CommitTime, other.scan.CommitTime
	switch {
	case same && !(this.reported() && other.reported()):
		return byNothing
	case !same && mine != nil && theirs != nil && *mine != *theirs:
		if *theirs > *mine && (this.again || surelyOlder(this.scan, other.scan)) {
			return ByCommit
		}
	case this.ran != nil && other.ran != nil && *this.ran != *other.ran && (this.reported() || other.reported()):
		if *other.ran > *this.ran {
			return ByRun
		}
	case !same && other.scan.ID > this.scan.ID:
		return ByStart
	}
	return byNothing
}

// ExactCommitTime is the key in scans.stats for a commit time whose time zone the scanner said.
const ExactCommitTime = "commit_time_exact"

// zones is the largest difference between two local times of the same moment.
const zones = 26 * time.Hour

// surelyOlder reports whether a scan is certainly older than one with a later commit time. Without a time zone the
// times may be of machines in different zones. Scans that ran at the same time are compared anyway.
func surelyOlder(this, other *ent.Scan) bool {
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

// scannedAgain reports whether the commit of this scan was scanned before on this ref.
func (s *session) scannedAgain(ctx context.Context) (bool, error) {
	if s.scan.Commit == "" {
		return false, nil
	}
	return s.tx.Scan.Query().
		Where(scan.DeploymentID(s.deploymentID), scan.ProjectID(s.project.ID), scan.Commit(s.scan.Commit), scan.Ref(s.scan.Ref), scan.IDLT(s.scan.ID)).
		Exist(ctx)
}

// decidedBy reads a newer scan; nil if it decided nothing about the files and products of this scan.
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
	n := &newerScan{newest: newest{id: row.ScanID}, full: row.IsFullScan, decider: newDecider(c, true), besides: map[cell]bool{}}
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

// covers reports whether the newer scan would have reported a finding, if it were still there.
func (n *newerScan) covers(product, rule, path string) bool {
	switch {
	case n.decider.blind(product, rule, path), n.decider.coverage.GetRulesKnown() && !n.decider.ran(rule):
		return false
	case !n.full, n.decider.renamed[path], !n.decider.unsearched(path):
		return true // a diff scan searches what the branch changes
	}
	return n.besides[cellOf(path)]
}

// overtaken reports whether the newer scan has decided about a result.
func (i *Result) overtaken() bool {
	newer := i.matches.newer
	return newer != nil && newer.covers(i.Product, i.ruleName, i.path)
}

// compareOlder decides what a result of an older scan changes about its stored finding: nothing, unless the finding is
// closed and the newer scan said nothing about it.
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

// superseded is the outcome of results that a newer scan no longer has.
const superseded = "superseded"

// noteSuperseded keeps the ids of created findings that a newer scan no longer has.
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
		w.superseded[i.matches.newer.newest] = append(w.superseded[i.matches.newer.newest], row.ID)
	}
	return nil
}

// closeSuperseded closes these findings.
func (w *writer) closeSuperseded(ctx context.Context) error {
	change := stateChange{
		store: w.store, tx: w.tx, deploymentID: w.deploymentID, scanID: w.scan.ID, actorKind: "scan", actorID: w.scan.ID, at: w.now,
	}
	byID := func(a, b newest) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.by, b.by)) }
	for _, newer := range slices.SortedFunc(maps.Keys(w.superseded), byID) {
		why := decision{state: lifecycle.Fixed, prefix: fmt.Sprintf("scan %d %s did not report it", newer.id, newer.by)}
		if _, err := change.close(ctx, why, w.superseded[newer]); err != nil {
			return err
		}
	}
	return nil
}
