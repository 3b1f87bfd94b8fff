package watch

import (
	"context"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/freshness"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/scans/watch/judge"
)

// archivedAgain is when rows of archived projects are looked at again.
const archivedAgain = 24 * time.Hour

// batch collects what a transaction changes.
type batch struct {
	watch   *Watch
	now     time.Time
	rows    []*record
	gone    []int64
	changes []payload.Freshness
}

func (w *Watch) newBatch(now time.Time) *batch { return &batch{watch: w, now: now} }

// judge decides about a row.
func (b *batch) judge(r *record, of *ent.Project) {
	if of.ArchivedAt != nil {
		due := store.Micros(b.now.Add(archivedAgain))
		r.DueAt = &due
		b.rows = append(b.rows, r)
		return
	}
	v := judge.Judge(r.history, judge.Ref{Primary: primary(of, r.Ref), Forget: b.watch.forget}, b.now)
	before := judge.State(r.State)
	if r.State = int32(v.State); before != v.State || r.Since == 0 {
		if r.Since = store.Micros(b.now); !v.Since.IsZero() {
			r.Since = store.Micros(v.Since)
		}
		b.tell(r, of, max(before, judge.OK), v.State)
	}
	if r.DueAt = nil; !v.Due.IsZero() {
		due := store.Micros(v.Due)
		r.DueAt = &due
	}
	b.rows = append(b.rows, r)
}

// tell adds the message about a changed state. What was not watched was fine, and what is not watched any more is no
// news.
func (b *batch) tell(r *record, of *ent.Project, before, after judge.State) {
	if before == after || after == judge.Unwatched {
		return
	}
	b.changes = append(b.changes, payload.Freshness{
		DeploymentID: r.DeploymentID, ProjectID: of.ID, ScanID: r.LastScanID, Project: of.Name, Ref: r.Ref, Tool: r.Tool, Category: r.AnalysisCategory,
		State: after.String(), Before: before.String(), Since: store.Time(r.Since), Reason: judge.Reason(r.history, after, b.now),
	})
}

// save writes the rows and the messages.
func (b *batch) save(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs) error {
	writes := make([]*ent.FreshnessCreate, len(b.rows))
	for i, r := range b.rows {
		content, err := proto.Marshal(r.history)
		if err != nil {
			return err
		}
		writes[i] = tx.Freshness.Create().SetDeploymentID(r.DeploymentID).SetProjectID(r.ProjectID).SetRef(r.Ref).SetTool(r.Tool).
			SetAnalysisCategory(r.AnalysisCategory).SetState(r.State).SetSince(r.Since).SetNillableDueAt(r.DueAt).SetLastScanID(r.LastScanID).
			SetScannerVersion(judge.ToolVersion(r.history)).SetContent(content)
	}
	for part := range slices.Chunk(writes, store.RowsAtOnce) {
		err := tx.Freshness.CreateBulk(part...).
			OnConflictColumns(freshness.FieldDeploymentID, freshness.FieldProjectID, freshness.FieldRef, freshness.FieldTool, freshness.FieldAnalysisCategory).
			Update(func(u *ent.FreshnessUpsert) {
				u.UpdateState().UpdateSince().UpdateDueAt().UpdateLastScanID().UpdateScannerVersion().UpdateContent()
			}).Exec(ctx)
		if err != nil {
			return err
		}
	}
	if len(b.gone) > 0 {
		if _, err := tx.Freshness.Delete().Where(store.WithIDs[predicate.Freshness](b.gone)).Exec(ctx); err != nil {
			return err
		}
	}
	return outbox.Freshness(ctx, tx, queue, b.changes)
}

// ofEveryDeployment is always true. It names the first column of the indexes of tenants' tables.
func ofEveryDeployment(s *entsql.Selector) {
	s.Where(entsql.In(s.C(freshness.FieldDeploymentID), entsql.Dialect(s.Dialect()).Select("id").From(entsql.Table("deployments"))))
}
