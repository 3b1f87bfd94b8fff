package ingest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

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
	full     bool
	listsAll bool // see Coverage
	decider  *decider
	// besides has the cells (see absences) in which both scans searched a file.
	besides map[cell]bool
	// apart says that it searched other files: it decides about single files only. meets says that it searched one of
	// the same.
	apart, meets bool
	// before is the newer scan before this one, if both together can miss a file (see absences).
	before *newerScan
}

// newerScans are newer scans that were stored before this scan, the oldest first.
type newerScans []*newerScan

const (
	// newerBack is how many newer scans decide at most: the newest ones.
	newerBack = 16
	// newerBytes limits their coverages in memory, as stored. The newest one of the same files counts always.
	newerBytes = 8 << 20
)

// latest is the newest of the scans.
func (n newerScans) latest() *newerScan { return n[len(n)-1] }

// cover reports whether one of the scans would have reported a finding, if it were still there.
func (n newerScans) cover(product, rule, path string) bool {
	return slices.ContainsFunc(n, func(one *newerScan) bool { return one.covers(product, rule, path) })
}

// verdict returns the decision of the first scan that closes a finding of this scan, and that scan; nil if none does.
func (n newerScans) verdict(product, rule, path string) (*newerScan, decision) {
	for _, one := range n {
		if f := one.decide(product, rule, path); f != keepState {
			return one, f
		}
	}
	return nil, keepState
}

// newest is a newer scan, and what makes it newer.
type newest struct {
	id int64
	by Order
	at int64 // when it was stored
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

// newerScans returns the newest successful scans of the same analysis, ref and products that are newer than this one
// (see newerBy). Scans of different files are parts of a project, and a diff scan says nothing about what a full scan
// reports.
func (s *session) newerScans(ctx context.Context, g *group) (list newerScans, err error) {
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
	size, compared := 0, false
	for _, row := range rows {
		other := scans[row.ScanID]
		if other == nil {
			continue
		}
		by := newerBy(run{s.scan, ran, again}, run{scan: other, ran: row.RanAt})
		if by == byNothing {
			continue
		}
		found, bytes, err := s.decidedBy(ctx, g, row, other)
		if err != nil {
			return nil, err
		}
		enough := len(list) >= newerBack || len(list) > 0 && size+bytes > newerBytes
		if enough && compared {
			break
		}
		if found == nil || enough && found.apart {
			continue
		}
		found.by = by
		list, size, compared = append(list, found), size+bytes, compared || !found.apart
	}
	return list.inOrder(scans), nil
}

// inOrder puts the oldest scan first. If all searched other files, this scan is of another part, and none is newer.
func (n newerScans) inOrder(scans map[int64]*ent.Scan) newerScans {
	slices.Reverse(n)
	if !slices.ContainsFunc(n, func(one *newerScan) bool { return !one.apart }) {
		return nil
	}
	for i, one := range n[1:] {
		// A report that was sent twice misses a file once.
		if before := n[i]; scans[before.id].Commit != scans[one.id].Commit || !proto.Equal(before.decider.coverage.ScanCoverage, one.decider.coverage.ScanCoverage) {
			one.before = before
		}
	}
	return n
}

// later selects coverages that may be of newer scans, in the order of a column.
type later struct {
	than predicate.ScanCoverage
	by   string
	at   func(*ent.ScanCoverage) int64 // the column
}

// maybeNewer returns the coverages that may be of newer scans, without their content: first by newer commits, then by
// later runs, the newest first.
func (s *session) maybeNewer(ctx context.Context, g *group, ran *int64) (rows []*ent.ScanCoverage, err error) {
	began, at := scancoverage.ScanIDGT(s.scan.ID), s.scan.CommitTime
	var each []later // one by one, because each has its index
	if at != nil {
		each = append(each, later{
			scancoverage.CommitTimeGT(*at), scancoverage.FieldCommitTime, func(row *ent.ScanCoverage) int64 { return deref(row.CommitTime) },
		})
		began = scancoverage.And(began, scancoverage.Or(scancoverage.CommitTimeIsNil(), scancoverage.CommitTime(*at)))
	}
	if ran != nil {
		each = append(each, later{
			scancoverage.RanAtGT(*ran), scancoverage.FieldRanAt, func(row *ent.ScanCoverage) int64 { return deref(row.RanAt) },
		})
	}
	each = append(each, later{began, scancoverage.FieldScanID, func(row *ent.ScanCoverage) int64 { return row.ScanID }})
	found := make([][]*ent.ScanCoverage, len(each))
	for _, ref := range []string{s.scan.Ref, overtakenRef(s.scan.Ref)} {
		for n, one := range each {
			some, err := s.laterCoverages(ctx, g, ref, one)
			if err != nil {
				return nil, err
			}
			found[n] = append(found[n], some...)
		}
		if !slices.ContainsFunc(found, func(some []*ent.ScanCoverage) bool { return len(some) > 0 }) {
			return nil, nil // nothing overtook an older scan
		}
	}
	for n, one := range each {
		slices.SortFunc(found[n], func(a, b *ent.ScanCoverage) int {
			return cmp.Or(cmp.Compare(one.at(b), one.at(a)), cmp.Compare(b.ScanID, a.ScanID))
		})
		for _, row := range found[n] {
			if !slices.ContainsFunc(rows, func(other *ent.ScanCoverage) bool { return other.ID == row.ID }) {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

func (s *session) laterCoverages(ctx context.Context, g *group, ref string, one later) ([]*ent.ScanCoverage, error) {
	query := s.tx.ScanCoverage.Query().Where(s.ofAnalysis(g.Analysis, ref)...).Where(one.than)
	if s.scan.IsFullScan {
		query.Where(scancoverage.IsFullScan(true))
	}
	return query.Order(ent.Desc(one.by, scancoverage.FieldScanID)).Limit(historyLength).
		Select(scancoverage.FieldID, scancoverage.FieldScanID, scancoverage.FieldIsFullScan, scancoverage.FieldCommitTime, scancoverage.FieldRanAt,
			scancoverage.FieldAt).All(ctx)
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

// decidedBy reads a newer scan, and the size of its coverage; nil if it decided nothing about the products of this one.
func (s *session) decidedBy(ctx context.Context, g *group, row *ent.ScanCoverage, other *ent.Scan) (*newerScan, int, error) {
	whole, err := s.tx.ScanCoverage.Get(ctx, row.ID)
	if err != nil {
		return nil, 0, err
	}
	content, err := StoredCoverage(whole)
	if err != nil {
		return nil, 0, err
	}
	content.Unsearched, content.Kept = nil, nil // not needed
	c := &Coverage{ScanCoverage: content, Products: splitList(content.GetProduct())}
	if c.GetFailure() != "" || !coversAny(c.Products, g.coverage.Products) {
		return nil, 0, nil
	}
	n := &newerScan{
		newest: newest{id: row.ScanID, at: row.At}, full: row.IsFullScan, listsAll: row.IsFullScan && other.UniqueID != nil,
		decider: newDecider(c, row.IsFullScan), besides: map[cell]bool{},
	}
	n.compareFiles(g.coverage)
	return n, len(whole.Content), nil
}

// compareFiles compares the files of both scans.
func (n *newerScan) compareFiles(c *Coverage) {
	files := set(c.GetFiles())
	bothKnown := n.decider.coverage.GetFilesKnown() && c.GetFilesKnown()
	n.apart, n.meets = n.full && bothKnown && !overlap(files, n.decider.files), !bothKnown
	for file := range files {
		if n.decider.files[file] {
			n.besides[cellOf(file)], n.meets = true, true
		}
	}
}

// covers reports whether the newer scan would have reported a finding, if it were still there.
func (n *newerScan) covers(product, rule, path string) bool {
	switch {
	case n.decider.blind(product, rule, path), n.decider.coverage.GetRulesKnown() && !n.decider.ran(rule):
		return false
	case n.apart:
		return n.decider.files[path]
	case !n.full, n.decider.renamed[path], !n.decider.unsearched(path):
		return true // a diff scan searches what the branch changes
	}
	return n.listsAll && n.besides[cellOf(path)]
}

// decide returns whether the newer scan closes a finding of this scan.
func (n *newerScan) decide(product, rule, path string) decision {
	switch {
	case n.apart && !n.decider.files[path], n.decider.blind(product, rule, path):
		return keepState
	case !n.full && n.covers(product, rule, path):
		return goneReport
	}
	f := n.decider.decide(product, rule, path)
	if f != keepState || !n.full || !n.decider.unsearched(path) {
		return f
	}
	switch {
	case n.listsAll && n.besides[cellOf(path)]:
		return fileGone
	case !n.listsAll && n.meets && n.before != nil && n.before.decider.unsearched(path):
		return fileMissing
	}
	return keepState
}

// overtaken returns the newer scan that closed what this scan found, and its decision; nil if there is none.
func (i *Result) overtaken() (*newerScan, decision) {
	return i.matches.newer.verdict(i.Product, i.ruleName, i.path)
}

// olderOutcome is the outcome of a result of an older scan, if a newer scan decided its stored finding; else empty.
func (i *Result) olderOutcome(old *ent.Finding) string {
	if lifecycle.Seen(old.State) {
		if i.matches.newer.cover(i.Product, i.ruleName, i.path) {
			return "unchanged"
		}
		return ""
	}
	if newer, _ := i.overtaken(); newer != nil {
		return superseded
	}
	return ""
}

// superseded is the outcome of results that a newer scan no longer has.
const superseded = "superseded"

// noteSuperseded keeps the ids of created findings that a newer scan no longer has.
func (w *writer) noteSuperseded(ctx context.Context, fresh []*Result) error {
	overtaken := slices.DeleteFunc(slices.Clone(fresh), func(i *Result) bool {
		newer, _ := i.overtaken()
		return newer == nil
	})
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
		why := overtakenBy(i.overtaken())
		w.superseded[why] = append(w.superseded[why], row.ID)
	}
	return nil
}

// overtaking is the decision of a newer scan about findings of this one.
type overtaking struct {
	decision
	scanID int64
}

// overtakenBy adds the scan to the reason of its decision.
func overtakenBy(newer *newerScan, f decision) overtaking {
	by := fmt.Sprintf("scan %d %s", newer.id, newer.by)
	if f.state == lifecycle.Fixed {
		return overtaking{decision{state: f.state, prefix: by + " did not report it"}, newer.id}
	}
	f.prefix = by + ": " + f.prefix
	return overtaking{f, newer.id}
}

// closeSuperseded closes these findings.
func (w *writer) closeSuperseded(ctx context.Context) error {
	inOrder := func(a, b overtaking) int {
		return cmp.Or(cmp.Compare(a.scanID, b.scanID), cmp.Compare(a.prefix, b.prefix))
	}
	for _, why := range slices.SortedFunc(maps.Keys(w.superseded), inOrder) {
		change := stateChange{
			store: w.store, tx: w.tx, deploymentID: w.deploymentID, scanID: why.scanID, actorKind: "scan", actorID: w.scan.ID, at: w.now,
		}
		if _, err := change.close(ctx, why.decision, w.superseded[why]); err != nil {
			return err
		}
	}
	return nil
}
