package watch

import (
	"context"
	"errors"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/freshness"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// dueBatch is how many rows one transaction looks at.
const dueBatch = 200

// Due updates the rows of all deployments whose state the time may have changed.
func (w *Watch) Due(ctx context.Context, queue *jobs.Jobs, now time.Time) error {
	var deployments []int64
	err := w.store.Reader.Freshness.Query().Where(ofEveryDeployment, freshness.DueAtLTE(store.Micros(now))).
		Unique(true).Select(freshness.FieldDeploymentID).Scan(tenant.System(ctx), &deployments)
	for _, id := range deployments {
		err = errors.Join(err, w.dueOf(tenant.NewContext(ctx, id), queue, now))
	}
	return err
}

// dueOf updates the rows of the context's deployment. Each node takes rows that no other one has locked.
func (w *Watch) dueOf(ctx context.Context, queue *jobs.Jobs, now time.Time) error {
	for {
		n := 0
		err := w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			query := tx.Freshness.Query().Where(freshness.DueAtLTE(store.Micros(now))).Order(ent.Asc(freshness.FieldDueAt)).Limit(dueBatch)
			if w.store.Postgres() {
				query.ForUpdate(entsql.WithLockAction(entsql.SkipLocked))
			}
			rows, err := query.All(ctx)
			if n = len(rows); err != nil || n == 0 {
				return err
			}
			return w.update(ctx, tx, queue, rows, now)
		})
		if err != nil || n < dueBatch {
			return err
		}
	}
}

// update decides about locked rows again.
func (w *Watch) update(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, rows []*ent.Freshness, now time.Time) error {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ProjectID
	}
	projects, err := tx.Project.Query().Where(store.OneOf(project.FieldID, ids)).All(ctx)
	if err != nil {
		return err
	}
	of := make(map[int64]*ent.Project, len(projects))
	for _, p := range projects {
		of[p.ID] = p
	}
	b := w.newBatch(now)
	for _, row := range rows {
		if of[row.ProjectID] == nil { // a node of an earlier version deleted the project
			b.gone = append(b.gone, row.ID)
			continue
		}
		r, err := open(row)
		if err != nil {
			return err
		}
		b.judge(r, of[row.ProjectID])
	}
	return b.save(ctx, tx, queue)
}
