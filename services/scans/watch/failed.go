package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/freshness"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/watch/judge"
)

const (
	// ScannerTool is the tool of scans that a scanner opened. Only such scans can fail without results.
	ScannerTool = "semgrep"
	// failedWindow is how far back failed scans are searched. A scan is given up a day after its start.
	failedWindow = 7 * 24 * time.Hour
	failedBatch  = 500
	// resultsStored is the state of the results of scans that told already.
	resultsStored = "stored"
)

// Failed adds the scans of all deployments that failed without results: they stored nothing that would tell.
func (w *Watch) Failed(ctx context.Context, queue *jobs.Jobs, now time.Time) error {
	for after := int64(0); ; {
		rows, err := w.store.Reader.Scan.Query().
			Where(ofEveryDeployment, failedSince(now), behind(after)).Order(byID).Limit(failedBatch).
			Select(scan.FieldID, scan.FieldDeploymentID, scan.FieldProjectID).All(tenant.System(ctx))
		if err != nil || len(rows) == 0 {
			return err
		}
		after = rows[len(rows)-1].ID
		of := map[int64][]int64{}
		for _, row := range rows {
			of[row.ProjectID] = append(of[row.ProjectID], row.ID)
		}
		for _, row := range rows {
			if ids := of[row.ProjectID]; ids != nil {
				delete(of, row.ProjectID)
				err = errors.Join(err, w.failedOf(tenant.NewContext(ctx, row.DeploymentID), queue, row.ProjectID, ids, now))
			}
		}
		if err != nil {
			return err
		}
	}
}

// behind and byID page by id. The unary plus keeps databases from reading all scans in the order of their primary key.
func behind(id int64) predicate.Scan {
	return func(s *entsql.Selector) {
		s.Where(entsql.P(func(b *entsql.Builder) { b.WriteString("+" + s.C(scan.FieldID) + " > ").Arg(id) }))
	}
}

func byID(s *entsql.Selector) { s.OrderExpr(entsql.Expr("+" + s.C(scan.FieldID))) }

// failedSince selects failed scans that count and that their freshness does not know.
func failedSince(now time.Time) predicate.Scan {
	return func(s *entsql.Selector) {
		known := entsql.Dialect(s.Dialect()).Table(freshness.Table).As("known")
		s.Where(entsql.And(
			entsql.In(s.C(scan.FieldStatus), scansv1.ScanStatus_SCAN_STATUS_ERROR.String(), scansv1.ScanStatus_SCAN_STATUS_NEVER_FINISHED.String()),
			entsql.NotNull(s.C(scan.FieldUniqueID)),
			entsql.GTE(s.C(scan.FieldStartedAt), store.Micros(now.Add(-failedWindow))),
			entsql.EQ(s.C(scan.FieldIsFullScan), true),
			entsql.HasPrefix(s.C(scan.FieldRef), "refs/heads/"),
			entsql.NotNull(s.C(scan.FieldUniqueID)), entsql.NEQ(s.C(scan.FieldResultsState), resultsStored),
			entsql.NotExists(entsql.Dialect(s.Dialect()).Select(known.C(freshness.FieldID)).From(known).Where(entsql.And(
				entsql.ColumnsEQ(known.C(freshness.FieldDeploymentID), s.C(scan.FieldDeploymentID)),
				entsql.ColumnsEQ(known.C(freshness.FieldProjectID), s.C(scan.FieldProjectID)),
				entsql.ColumnsEQ(known.C(freshness.FieldRef), s.C(scan.FieldRef)),
				entsql.EQ(known.C(freshness.FieldTool), ScannerTool),
				entsql.EQ(known.C(freshness.FieldAnalysisCategory), ""),
				entsql.ColumnsGTE(known.C(freshness.FieldLastScanID), s.C(scan.FieldID)),
			))),
		))
	}
}

// failedOf adds failed scans of a project.
func (w *Watch) failedOf(ctx context.Context, queue *jobs.Jobs, projectID int64, ids []int64, now time.Time) error {
	return w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		of, err := w.lockProject(ctx, tx, projectID)
		if err != nil || of == nil {
			return err
		}
		scans, err := tx.Scan.Query().Where(store.OneOf(scan.FieldID, ids)).Order(ent.Asc(scan.FieldID)).All(ctx)
		if err != nil {
			return err
		}
		known, err := w.locked(tx.Freshness.Query().Where(freshness.ProjectID(projectID), freshness.Tool(ScannerTool), freshness.AnalysisCategory(""))).All(ctx)
		if err != nil {
			return err
		}
		b, byRef := w.newBatch(now), map[string]*record{}
		for _, row := range scans {
			r := byRef[row.Ref]
			if r == nil {
				if r, err = find(known, of, row.Ref, ScannerTool, ""); err != nil {
					return err
				}
				byRef[row.Ref] = r
			}
			if r.LastScanID < row.ID { // not added by another node, and no later scan has told
				r.observe(judge.Scan{ID: row.ID, At: row.StartedAt, Status: row.Status, Failure: whyFailed(row)})
			}
		}
		for _, r := range byRef {
			b.judge(r, of)
		}
		return b.save(ctx, tx, queue)
	})
}

// lockProject reads and locks a project; nil if it was deleted.
func (w *Watch) lockProject(ctx context.Context, tx *ent.Tx, id int64) (*ent.Project, error) {
	query := tx.Project.Query().Where(project.ID(id))
	if w.store.Postgres() {
		query.ForUpdate()
	}
	of, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return of, err
}

// whyFailed says why a scan failed without results.
func whyFailed(row *ent.Scan) string {
	if row.Status == scansv1.ScanStatus_SCAN_STATUS_NEVER_FINISHED.String() {
		return "the scanner did not report the end of the scan"
	}
	kept := &storev1.ScannerScan{}
	if row.Scanner != nil && proto.Unmarshal(*row.Scanner, kept) == nil && len(kept.GetErrors()) > 0 {
		return strings.Join(kept.GetErrors(), "; ")
	}
	return fmt.Sprintf("the scanner ended with exit code %d", row.ExitCode)
}
