package ingest

import (
	"cmp"
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scancoverage"
	"github.com/palisade/palisade/services/internal/store"
)

// historyLength is how many earlier scans are searched for the last one that searched a file. The coverage of each scan
// has the last search of files that it left out, so usually the first one has the answer.
const historyLength = 16

// history has the earlier full scans of an analysis and ref, in the order in which they were stored. They are read when
// they are needed.
type history struct {
	*session
	group  *group
	rows   []*ent.ScanCoverage // without content, the latest first; nil if they are not read yet
	commit map[int64]string    // by scan
	loaded map[int64]*earlierScan
}

// earlierScan is the coverage of an earlier scan that succeeded.
type earlierScan struct {
	*previousCoverage
	commit string
	files  map[string]bool // searched or skipped
	kept   []int64         // sorted
}

func (h *history) read(ctx context.Context) error {
	if h.loaded != nil {
		return nil
	}
	rows, err := h.tx.ScanCoverage.Query().Where(h.ofAnalysis(h.group.Analysis, h.scan.Ref)...).Where(scancoverage.IsFullScan(true), scancoverage.ScanIDNEQ(h.scan.ID)).
		Order(ent.Desc(scancoverage.FieldScanID)).Limit(historyLength).Select(scancoverage.FieldID, scancoverage.FieldScanID).All(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b *ent.ScanCoverage) int { return cmp.Compare(b.ID, a.ID) })
	if h.commit, err = h.commits(ctx, rows); err != nil {
		return err
	}
	h.rows, h.loaded = rows, map[int64]*earlierScan{}
	return nil
}

// commits returns the commits of scans, by scan.
func (s *session) commits(ctx context.Context, rows []*ent.ScanCoverage) (map[int64]string, error) {
	scans, err := s.scansOf(ctx, rows)
	commits := make(map[int64]string, len(scans))
	for id, row := range scans {
		commits[id] = row.Commit
	}
	return commits, err
}

// scansOf returns what orders the scans of some coverages, by their ids.
func (s *session) scansOf(ctx context.Context, rows []*ent.ScanCoverage) (map[int64]*ent.Scan, error) {
	ids := make([]int64, len(rows))
	for n, row := range rows {
		ids[n] = row.ScanID
	}
	scans, err := s.tx.Scan.Query().Where(scan.DeploymentID(s.deploymentID), store.OneOf(scan.FieldID, ids)).
		Select(scan.FieldID, scan.FieldCommit, scan.FieldCommitTime, scan.FieldStartedAt, scan.FieldCompletedAt, scan.FieldStats, scan.FieldUniqueID).All(ctx)
	byID := make(map[int64]*ent.Scan, len(scans))
	for _, row := range scans {
		byID[row.ID] = row
	}
	return byID, err
}

// ofScan returns the coverage of an earlier scan; nil if it failed, covered other products or is not known.
func (h *history) ofScan(ctx context.Context, scanID int64) (*earlierScan, error) {
	if c, known := h.loaded[scanID]; known || scanID == 0 {
		return c, nil
	}
	h.loaded[scanID] = nil
	row, err := h.tx.ScanCoverage.Query().Where(h.ofAnalysis(h.group.Analysis, h.scan.Ref)...).Where(scancoverage.ScanID(scanID)).First(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	content, err := StoredCoverage(row)
	if err != nil {
		return nil, err
	}
	c := &earlierScan{
		&previousCoverage{content, scanID}, h.commit[scanID], set(slices.Concat(content.GetFiles(), content.GetSkipped())), sums(content.GetKept()),
	}
	if c.GetFailure() != "" || !coversAll(c.products(), h.group.coverage.Products) {
		return nil, nil
	}
	if _, known := h.commit[scanID]; !known {
		commits, err := h.commits(ctx, []*ent.ScanCoverage{row})
		if err != nil {
			return nil, err
		}
		c.commit = commits[scanID]
	}
	h.loaded[scanID] = c
	return c, nil
}

// lastSearch returns the last scan that searched a file, and since when scans miss it. Both are zero if unknown.
func (h *history) lastSearch(ctx context.Context, path string) (last *earlierScan, since int64, err error) {
	if err := h.read(ctx); err != nil {
		return nil, 0, err
	}
	for _, row := range h.rows {
		c, err := h.ofScan(ctx, row.ScanID)
		if err != nil {
			return nil, 0, err
		}
		if c == nil {
			continue
		}
		if c.files[path] {
			return c, 0, nil
		}
		if missed := c.GetUnsearched()[path]; missed != nil {
			last, err := h.ofScan(ctx, missed.GetScanId())
			return last, missed.GetSince(), err
		}
	}
	return nil, 0, nil
}

// ofCommit returns the other scans of the commit of a scan.
func (h *history) ofCommit(ctx context.Context, of *earlierScan) (peers []*earlierScan, err error) {
	if of.commit == "" {
		return nil, nil
	}
	for _, row := range h.rows {
		if row.ScanID == of.scanID || h.commit[row.ScanID] != of.commit {
			continue
		}
		c, err := h.ofScan(ctx, row.ScanID)
		if err != nil {
			return nil, err
		}
		if c != nil {
			peers = append(peers, c)
		}
	}
	return peers, nil
}
