package watch

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/freshness"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scans/watch/judge"
)

// Watch keeps the freshness of analyses.
type Watch struct {
	store *store.Store
	// forget is the age of the last scan from which branches other than the primary one are forgotten; 0 means never.
	forget time.Duration
}

// New keeps freshness in the store.
func New(st *store.Store, forget time.Duration) *Watch { return &Watch{store: st, forget: forget} }

// Analysis is a tool and category, and what a scan says about them.
type Analysis struct {
	Tool, Category string
	judge.Scan
}

// Counts reports whether a scan counts: a full scan of a branch. Diff scans come and go with pull requests.
func Counts(row *ent.Scan) bool { return row.IsFullScan && gitref.IsBranch(row.Ref) }

// Record adds a scan to the history of its analyses. The transaction has locked the project. Call it before
// outbox.ScanFinished.
func (w *Watch) Record(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, of *ent.Project, row *ent.Scan, analyses []Analysis) error {
	if !Counts(row) || len(analyses) == 0 {
		return nil
	}
	tools := make([]string, len(analyses))
	for i, a := range analyses {
		tools[i] = a.Tool
	}
	slices.Sort(tools)
	known, err := w.locked(tx.Freshness.Query().Where(freshness.DeploymentID(of.DeploymentID), freshness.ProjectID(of.ID), freshness.Ref(row.Ref),
		store.OneOf(freshness.FieldTool, slices.Compact(tools)))).All(ctx)
	if err != nil {
		return err
	}
	b := w.newBatch(time.Now())
	for _, a := range analyses {
		r, err := find(known, of, row.Ref, a.Tool, a.Category)
		if err != nil {
			return err
		}
		r.observe(a.Scan)
		b.judge(r, of)
	}
	return b.save(ctx, tx, queue)
}

// locked locks the rows on PostgreSQL. SQLite has only one writer.
func (w *Watch) locked(query *ent.FreshnessQuery) *ent.FreshnessQuery {
	if w.store.Postgres() {
		query.ForUpdate()
	}
	return query
}

// record is a row with its decoded history.
type record struct {
	*ent.Freshness
	history *storev1.Freshness
}

func open(row *ent.Freshness) (*record, error) {
	r := &record{row, &storev1.Freshness{}}
	return r, proto.Unmarshal(row.Content, r.history)
}

// find returns the row of an analysis, or a new one.
func find(known []*ent.Freshness, of *ent.Project, ref, tool, category string) (*record, error) {
	for _, row := range known {
		if row.Ref == ref && row.Tool == tool && row.AnalysisCategory == category {
			return open(row)
		}
	}
	return open(&ent.Freshness{DeploymentID: of.DeploymentID, ProjectID: of.ID, Ref: ref, Tool: tool, AnalysisCategory: category})
}

func (r *record) observe(s judge.Scan) {
	judge.Observe(r.history, s)
	r.LastScanID = max(r.LastScanID, s.ID)
}

// primary reports whether a ref is the primary branch of a project. While none is known, each branch may be it.
func primary(of *ent.Project, ref string) bool {
	return cmp.Or(of.PrimaryBranch, of.DefaultBranch, ref) == ref
}
