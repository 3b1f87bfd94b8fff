package backtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scancoverage"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/blocking"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/scanstats"
)

const (
	// scansAtOnce is the number of scans that are read at once.
	scansAtOnce = 1000
	// longestScan is how long before the period a scan may have begun that ended in it.
	longestScan = 24 * time.Hour
	// commitsAtOnce is the number of commits whose scans are looked up at once, in each of their projects.
	commitsAtOnce = 100
)

// analysis is a tool and its category.
type analysis struct{ tool, category string }

// scanOf is a scan of the period.
type scanOf struct {
	id, startedAt, endedAt int64
	number                 int
	project                *replayed
	ref                    *refOf
	commit, mergeBase      string
	products               int32
	counts                 [3]int32 // of code, supply chain and secrets
	full, ofScanner, older bool
	// analyses are the products of each analysis as lastscan.Products; nil if they are not stored any more.
	analyses map[int32]int32
	// files has the hashed paths that a diff scan analyzed; nil if they are unknown. renamed has former paths.
	files   map[uint64]bool
	renamed map[string]bool
	base    *blocking.Base
}

// readScans reads the completed scans of the period in windows of their start.
func (h *history) readScans(ctx context.Context) error {
	begin, after := h.in.From-longestScan.Microseconds(), int64(0)
	for {
		query := h.db.Scan.Query().Where(
			scan.Or(scan.StartedAtGT(begin), scan.And(scan.StartedAt(begin), scan.IDGT(after))), scan.StartedAtGTE(begin), scan.StartedAtLTE(h.in.To),
		)
		rows, err := query.Order(ent.Asc(scan.FieldStartedAt), ent.Asc(scan.FieldID)).Limit(scansAtOnce).
			Select(scan.FieldID, scan.FieldProjectID, scan.FieldRef, scan.FieldCommit, scan.FieldStatus, scan.FieldProducts, scan.FieldIsFullScan,
				scan.FieldUniqueID, scan.FieldScanner, scan.FieldCodeCount, scan.FieldSupplyChainCount, scan.FieldSecretsCount, scan.FieldStats,
				scan.FieldStartedAt, scan.FieldCompletedAt).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := h.addScan(row); err != nil {
				return err
			}
		}
		if len(h.scans) > maxScans {
			return errTooMuch("scans", maxScans)
		}
		if len(rows) < scansAtOnce {
			break
		}
		begin, after = rows[len(rows)-1].StartedAt, rows[len(rows)-1].ID
	}
	byEnd := func(a, b *scanOf) int { return cmp.Or(cmp.Compare(a.endedAt, b.endedAt), cmp.Compare(a.id, b.id)) }
	for _, p := range h.projects {
		slices.SortFunc(p.scans, byEnd)
		p.Scans = len(p.scans)
		for number, s := range p.scans {
			s.number = number
			s.ref.scans = append(s.ref.scans, s)
		}
	}
	return nil
}

// addScan keeps a scan that ended successfully in the period.
func (h *history) addScan(row *ent.Scan) error {
	p := h.projects[row.ProjectID]
	if p == nil || row.CompletedAt == nil || *row.CompletedAt < h.in.From || *row.CompletedAt > h.in.To ||
		row.Status != scansv1.ScanStatus_SCAN_STATUS_COMPLETED.String() {
		return nil
	}
	s := &scanOf{
		id: row.ID, startedAt: row.StartedAt, endedAt: *row.CompletedAt, project: p, ref: p.ref(row.Ref), commit: row.Commit,
		products: row.Products, counts: [3]int32{row.CodeCount, row.SupplyChainCount, row.SecretsCount}, full: row.IsFullScan,
	}
	if row.UniqueID != nil && row.Scanner != nil {
		kept := &storev1.ScannerScan{}
		if err := proto.Unmarshal(*row.Scanner, kept); err != nil {
			return fmt.Errorf("scan %d: %w", row.ID, err)
		}
		s.ofScanner, s.mergeBase = true, kept.GetMergeBase()
	}
	_, s.older = row.Stats[scanstats.Older]
	s.ref.hasFull, s.ref.hasDiff, s.ref.hasOlder = s.ref.hasFull || s.full, s.ref.hasDiff || !s.full, s.ref.hasOlder || s.older
	h.scans[s.id], p.scans = s, append(p.scans, s)
	return nil
}

// readCoverages reads what the scans analyzed. The content, which may be large, is read for diff scans only: full scans
// analyze all files.
func (h *history) readCoverages(ctx context.Context) error {
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(h.scans)), scansAtOnce) {
		of := []predicate.ScanCoverage{scancoverage.ScanIDGTE(ids[0]), scancoverage.ScanIDLTE(ids[len(ids)-1])}
		rows, err := h.db.ScanCoverage.Query().Where(of...).Order(ent.Asc(scancoverage.FieldScanID)).
			Select(scancoverage.FieldScanID, scancoverage.FieldTool, scancoverage.FieldAnalysisCategory, scancoverage.FieldProducts).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if s := h.scans[row.ScanID]; s != nil {
				s.addAnalysis(h.analyses.number(analysis{row.Tool, row.AnalysisCategory}), row.Products)
			}
		}
		diffs := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return h.scans[id].full || h.scans[id].analyses == nil })
		if len(diffs) == 0 {
			continue
		}
		rows, err = h.db.ScanCoverage.Query().Where(store.OneOf(scancoverage.FieldScanID, diffs)).
			Select(scancoverage.FieldScanID, scancoverage.FieldContent).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := h.scans[row.ScanID].addCoverage(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scanOf) addAnalysis(number int32, products *int32) {
	if s.analyses == nil {
		s.analyses = map[int32]int32{}
	}
	s.analyses[number] = math.MaxInt32
	if products != nil && *products != 0 { // 0: a failed run, which reported some findings all the same
		s.analyses[number] = *products
	}
}

// addCoverage adds what a diff scan analyzed.
func (s *scanOf) addCoverage(row *ent.ScanCoverage) error {
	about, err := ingest.StoredCoverage(row)
	if err != nil {
		return err
	}
	if s.renamed == nil {
		s.renamed = map[string]bool{}
	}
	for _, path := range about.GetRenamed() {
		s.renamed[path] = true
	}
	if !about.GetFilesKnown() {
		return nil
	}
	if s.files == nil {
		s.files = map[uint64]bool{}
	}
	for _, path := range about.GetFiles() {
		s.files[xxhash.Sum64String(path)] = true
	}
	return nil
}

// commitOf is a commit of a project.
type commitOf struct {
	project int64
	commit  string
}

// readCompared reads the scans of the commits that bases are made of: merge bases, and commits of primary branches.
func (h *history) readCompared(ctx context.Context) error {
	commits := map[commitOf]bool{}
	for _, s := range h.scans {
		if s.mergeBase != "" && s.mergeBase != s.commit {
			commits[commitOf{s.project.ID, s.mergeBase}] = true
		}
		if s.commit != "" && s.ref.name == s.project.primary {
			commits[commitOf{s.project.ID, s.commit}] = true
		}
	}
	sorted := slices.SortedFunc(maps.Keys(commits), func(a, b commitOf) int {
		return cmp.Or(cmp.Compare(a.project, b.project), cmp.Compare(a.commit, b.commit))
	})
	for part := range slices.Chunk(sorted, commitsAtOnce) {
		if err := h.readCommits(ctx, part); err != nil {
			return err
		}
	}
	for _, s := range h.scans {
		s.base = s.findBase()
		if s.base.Ref != "" {
			s.project.ref(s.base.Ref)
		}
		if s.base.ScanID != 0 {
			h.reachesBack = min(h.reachesBack, s.base.At)
		}
	}
	return nil
}

// readCommits reads the scans of some commits, the newest first.
func (h *history) readCommits(ctx context.Context, of []commitOf) error {
	projects, commits := make([]int64, len(of)), make([]string, len(of))
	for i, c := range of {
		projects[i], commits[i] = c.project, c.commit
	}
	slices.Sort(commits)
	rows, err := h.db.Scan.Query().
		Where(store.OneOf(scan.FieldProjectID, slices.Compact(projects)), store.OneOf(scan.FieldCommit, slices.Compact(commits))).
		Select(scan.FieldID, scan.FieldProjectID, scan.FieldRef, scan.FieldCommit, scan.FieldStatus, scan.FieldProducts, scan.FieldIsFullScan,
			scan.FieldUniqueID, scan.FieldExitCode, scan.FieldStartedAt, scan.FieldCompletedAt).All(ctx)
	slices.SortFunc(rows, func(a, b *ent.Scan) int { return cmp.Compare(b.ID, a.ID) })
	for _, row := range rows {
		if slices.Contains(of, commitOf{row.ProjectID, row.Commit}) {
			compared := h.projects[row.ProjectID].compared
			compared[row.Commit] = append(compared[row.Commit], row)
		}
	}
	return err
}

// findBase is what the gate compared with: see gate.base of package scans.
func (s *scanOf) findBase() *blocking.Base {
	p := s.project
	if s.mergeBase != "" && s.mergeBase != s.commit {
		candidates := slices.DeleteFunc(slices.Clone(p.compared[s.mergeBase]), func(of *ent.Scan) bool {
			return !of.IsFullScan || of.CompletedAt == nil || *of.CompletedAt >= s.endedAt || of.UniqueID == nil ||
				of.Status != scansv1.ScanStatus_SCAN_STATUS_COMPLETED.String() || of.ExitCode < 0 || of.ExitCode > 1 || of.Ref == s.ref.name
		})
		if of := blocking.ScanOfMergeBase(candidates, s.products, p.primary); of != nil {
			return &blocking.Base{Ref: of.Ref, ScanID: of.ID, At: *of.CompletedAt}
		}
	}
	if p.primary != s.ref.name {
		return &blocking.Base{Ref: p.primary, At: math.MaxInt64}
	}
	b := &blocking.Base{Ref: p.primary, At: s.startedAt - 1, SameCommit: map[int64]bool{s.id: true}}
	if s.commit == "" {
		return b
	}
	for _, row := range p.compared[s.commit] {
		if row.Ref == s.ref.name && row.StartedAt <= s.endedAt {
			b.SameCommit[row.ID], b.At = true, min(b.At, row.StartedAt-1)
		}
	}
	return b
}
