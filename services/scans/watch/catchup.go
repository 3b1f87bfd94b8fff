package watch

import (
	"context"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/freshness"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scancoverage"
	"github.com/palisade/palisade/ent/tenant"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/watch/judge"
)

const (
	// projectsAtOnce is how many projects are searched together.
	projectsAtOnce = 500
	// contentsAtOnce is how many coverages are read together: they list files.
	contentsAtOnce = 20
	// maxCaughtUp is how many scans of an analysis are added: as many as its history has days.
	maxCaughtUp = 30
)

// CatchUp adds the scans of all deployments that did not update their freshness, because a node of an earlier version
// stored them, and watches branches that became the primary one. It returns the number of projects.
func (w *Watch) CatchUp(ctx context.Context, queue *jobs.Jobs, now time.Time) (n int, err error) {
	deployments, err := w.store.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldID)).IDs(tenant.System(ctx))
	if err != nil {
		return 0, err
	}
	for _, id := range deployments {
		done, err := w.catchUpOf(tenant.NewContext(ctx, id), queue, now)
		if n += done; err != nil {
			return n, err
		}
	}
	return n, w.store.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		return w.store.Exec(ctx, tx, `UPDATE freshnesses SET due_at = ? WHERE deployment_id IN (SELECT id FROM deployments) AND state = 0 AND EXISTS (
			SELECT 1 FROM projects WHERE projects.id = freshnesses.project_id AND projects.deployment_id = freshnesses.deployment_id
			AND CASE projects.primary_branch WHEN '' THEN projects.default_branch ELSE projects.primary_branch END = freshnesses.ref)`, store.Micros(now))
	})
}

// catchUpOf adds the scans of the context's deployment.
func (w *Watch) catchUpOf(ctx context.Context, queue *jobs.Jobs, now time.Time) (n int, err error) {
	for after := int64(0); ; {
		var projects []int64
		err := w.store.Reader.ScanCoverage.Query().Where(scancoverage.ProjectIDGT(after), unseen).Unique(true).Order(ent.Asc(scancoverage.FieldProjectID)).
			Limit(projectsAtOnce).Select(scancoverage.FieldProjectID).Scan(ctx, &projects)
		if err != nil || len(projects) == 0 {
			return n, err
		}
		after = projects[len(projects)-1]
		for _, id := range projects {
			if err := w.catchUpProject(ctx, queue, id, now); err != nil {
				return n, fmt.Errorf("freshness of project %d: %w", id, err)
			}
			n++
		}
	}
}

// unseen selects coverages of scans that count and that their freshness does not know.
func unseen(s *entsql.Selector) {
	known := entsql.Dialect(s.Dialect()).Table(freshness.Table).As("known")
	same := []*entsql.Predicate{entsql.ColumnsGTE(known.C(freshness.FieldLastScanID), s.C(scancoverage.FieldScanID))}
	for _, field := range []string{
		freshness.FieldDeploymentID, freshness.FieldProjectID, freshness.FieldRef, freshness.FieldTool, freshness.FieldAnalysisCategory,
	} {
		same = append(same, entsql.ColumnsEQ(known.C(field), s.C(field)))
	}
	s.Where(entsql.And(
		entsql.EQ(s.C(scancoverage.FieldIsFullScan), true),
		entsql.HasPrefix(s.C(scancoverage.FieldRef), "refs/heads/"),
		entsql.NotExists(entsql.Dialect(s.Dialect()).Select(known.C(freshness.FieldID)).From(known).Where(entsql.And(same...))),
	))
}

// catchUpProject adds the scans of a project.
func (w *Watch) catchUpProject(ctx context.Context, queue *jobs.Jobs, projectID int64, now time.Time) error {
	return w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		of, err := w.lockProject(ctx, tx, projectID)
		if err != nil || of == nil {
			return err
		}
		coverages, err := lastCoverages(ctx, tx, projectID)
		if err != nil {
			return err
		}
		results, err := resultsOf(ctx, tx, coverages)
		if err != nil {
			return err
		}
		known, err := w.locked(tx.Freshness.Query().Where(freshness.ProjectID(projectID))).All(ctx)
		if err != nil {
			return err
		}
		b, records := w.newBatch(now), map[[3]string]*record{}
		for part := range slices.Chunk(coverages, contentsAtOnce) {
			contents, err := contentsOf(ctx, tx, part)
			if err != nil {
				return err
			}
			for _, c := range part {
				key := [3]string{c.Ref, c.Tool, c.AnalysisCategory}
				if records[key] == nil {
					if records[key], err = find(known, of, c.Ref, c.Tool, c.AnalysisCategory); err != nil {
						return err
					}
				}
				if done, content := results[c.ScanID], contents[c.ID]; done != nil && content.GetFailure() != Limited {
					records[key].observe(Covered(done.scan, content, done.results))
				}
			}
		}
		for _, r := range records {
			if r.history.GetLastAt() == 0 {
				continue // only limited scans
			}
			r.LastScanID = max(r.LastScanID, newest(coverages, r))
			b.judge(r, of)
		}
		return b.save(ctx, tx, queue)
	})
}

// lastCoverages reads the unseen coverages of a project without their contents, the oldest first: of each analysis the
// newest ones.
func lastCoverages(ctx context.Context, tx *ent.Tx, projectID int64) ([]*ent.ScanCoverage, error) {
	rows, err := tx.ScanCoverage.Query().Where(scancoverage.ProjectID(projectID), unseen).Order(ent.Desc(scancoverage.FieldScanID)).
		Select(scancoverage.FieldID, scancoverage.FieldScanID, scancoverage.FieldRef, scancoverage.FieldTool, scancoverage.FieldAnalysisCategory).All(ctx)
	kept := map[[3]string]int{}
	rows = slices.DeleteFunc(rows, func(row *ent.ScanCoverage) bool {
		key := [3]string{row.Ref, row.Tool, row.AnalysisCategory}
		kept[key]++
		return kept[key] > maxCaughtUp
	})
	slices.Reverse(rows)
	return rows, err
}

// newest is the newest scan among the coverages of an analysis.
func newest(coverages []*ent.ScanCoverage, r *record) (id int64) {
	for _, c := range coverages {
		if c.Ref == r.Ref && c.Tool == r.Tool && c.AnalysisCategory == r.AnalysisCategory {
			id = max(id, c.ScanID)
		}
	}
	return id
}

// scanResults is a scan with the number of its results; -1 if it has several analyses, so that the number of each is
// unknown.
type scanResults struct {
	scan    *ent.Scan
	results int64
}

func resultsOf(ctx context.Context, tx *ent.Tx, coverages []*ent.ScanCoverage) (map[int64]*scanResults, error) {
	ids := make([]int64, len(coverages))
	for i, c := range coverages {
		ids[i] = c.ScanID
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	scans, err := tx.Scan.Query().Where(store.OneOf(scan.FieldID, ids)).
		Select(scan.FieldID, scan.FieldStartedAt, scan.FieldStatus, scan.FieldTotalCount).All(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]*scanResults, len(scans))
	for _, row := range scans {
		out[row.ID] = &scanResults{row, int64(row.TotalCount)}
	}
	var analyses []struct {
		ScanID int64 `sql:"scan_id"`
		Count  int   `sql:"count"`
	}
	err = tx.ScanCoverage.Query().Where(store.OneOf(scancoverage.FieldScanID, ids)).GroupBy(scancoverage.FieldScanID).Aggregate(ent.Count()).Scan(ctx, &analyses)
	for _, a := range analyses {
		if a.Count > 1 && out[a.ScanID] != nil {
			out[a.ScanID].results = -1
		}
	}
	return out, err
}

func contentsOf(ctx context.Context, tx *ent.Tx, coverages []*ent.ScanCoverage) (map[int64]*storev1.ScanCoverage, error) {
	ids := make([]int64, len(coverages))
	for i, c := range coverages {
		ids[i] = c.ID
	}
	rows, err := tx.ScanCoverage.Query().Where(store.WithIDs[predicate.ScanCoverage](ids)).All(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]*storev1.ScanCoverage, len(rows))
	for _, row := range rows {
		if out[row.ID], err = ingest.StoredCoverage(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Limited is the failure of a scan that ran only some rules, because somebody asked for them. It says nothing about
// freshness.
const Limited = "the scan was limited to some rules"

// Covered is a scan as its coverage describes it.
func Covered(row *ent.Scan, c *storev1.ScanCoverage, results int64) judge.Scan {
	s := judge.Scan{
		ID: row.ID, At: row.StartedAt, Status: row.Status, Failure: c.GetFailure(), Results: results, Files: -1, Rules: -1, ToolVersion: c.GetToolVersion(),
	}
	if c.GetFilesKnown() {
		s.Files = int64(len(c.GetFiles()))
	}
	if c.GetRulesKnown() {
		s.Rules = int64(len(c.GetRules()))
	}
	return s
}
