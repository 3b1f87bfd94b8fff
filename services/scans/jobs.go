package scans

import (
	"context"
	"errors"
	"log/slog"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/pendingimport"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// statisticsThreshold is how many rows an import must change to make new planner statistics worth their cost.
	statisticsThreshold = 1000
	// statisticsTimeout leaves room for a long import that holds the only writer of SQLite.
	statisticsTimeout = 30 * time.Minute
	// statisticsSnooze is when it is tried again after others looked after the tables.
	statisticsSnooze = time.Minute
	// abandonedAfter is how long a scan may be on its way before nobody expects it any more.
	abandonedAfter = 24 * time.Hour
	// abandonedInterval is how often we look for such scans, and for announcements of imports whose node has died.
	abandonedInterval = 5 * time.Minute
	// announcedBefore is how long ago an import was announced that surely has its announcement, which it takes back when
	// it is committed, if it lives.
	announcedBefore = time.Minute
	// purgeInterval is how often we delete coverages of old scans.
	purgeInterval = 24 * time.Hour
)

// Background is what scans need done when nobody calls.
func Background(st *store.Store, log *slog.Logger) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &statisticsWorker{store: st})
			jobs.AddWorker(workers, &abandonedWorker{store: st, log: log})
			jobs.AddWorker(workers, &coverageWorker{store: st, log: log})
			jobs.AddWorker(workers, &upgradeWorker{store: st, log: log})
		},
		Periodic: []*river.PeriodicJob{
			jobs.Every(abandonedInterval, abandonedScans{}), jobs.Every(purgeInterval, purgedCoverages{}), jobs.Every(upgradeInterval, upgradeArgs{}),
		},
	}
}

// refreshStatistics is enqueued by an import that changed much.
type refreshStatistics struct{}

// Kind is the name in the queue.
func (refreshStatistics) Kind() string { return "refresh_statistics" }

// InsertOpts make one run of the many that a burst of imports asks for.
func (refreshStatistics) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type statisticsWorker struct {
	river.WorkerDefaults[refreshStatistics]
	store *store.Store
}

// Timeout is how long a run may take.
func (*statisticsWorker) Timeout(*river.Job[refreshStatistics]) time.Duration {
	return statisticsTimeout
}

// Work refreshes the statistics of all tables.
func (w *statisticsWorker) Work(ctx context.Context, _ *river.Job[refreshStatistics]) error {
	err := w.store.RefreshStatistics(ctx)
	if errors.Is(err, store.ErrBusy) {
		return river.JobSnooze(statisticsSnooze)
	}
	return err
}

// abandonedScans is the periodic job that gives up scans whose scanner never reported.
type abandonedScans struct{}

// Kind is the name in the queue.
func (abandonedScans) Kind() string { return "abandoned_scans" }

// InsertOpts keep runs from piling up while no node works.
func (abandonedScans) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type abandonedWorker struct {
	river.WorkerDefaults[abandonedScans]
	store *store.Store
	log   *slog.Logger
}

// Work marks the abandoned scans of all deployments, and forgets the announcements of imports whose node has died.
func (w *abandonedWorker) Work(ctx context.Context, _ *river.Job[abandonedScans]) error {
	forgotten := forgetImports(ctx, w.store, time.Now().Add(-announcedBefore))
	n, err := giveUpScans(ctx, w.store, time.Now().Add(-abandonedAfter))
	if err == nil && n > 0 {
		w.log.InfoContext(ctx, "scans that never finished were given up", "scans", n)
	}
	return errors.Join(forgotten, err)
}

// giveUpScans sets SCAN_STATUS_NEVER_FINISHED (contract facts, SearchScansRequest.statuses) on scans of any deployment
// that were started before a time and are still pending or running, and returns how many they were.
func giveUpScans(ctx context.Context, st *store.Store, startedBefore time.Time) (n int, err error) {
	err = st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		n, err = tx.Scan.Update().
			Where(
				ofEveryDeployment,
				scan.StatusIn(scansv1.ScanStatus_SCAN_STATUS_RUNNING.String(), scansv1.ScanStatus_SCAN_STATUS_PENDING.String()),
				scan.StartedAtLT(store.Micros(startedBefore)),
			).
			SetStatus(scansv1.ScanStatus_SCAN_STATUS_NEVER_FINISHED.String()).
			Save(ctx)
		return err
	})
	return n, err
}

// forgetImports deletes what imports of any deployment announced before a time, unless they are at work: then they have
// the rows locked (see announce).
func forgetImports(ctx context.Context, st *store.Store, before time.Time) error {
	if !st.Postgres() {
		return nil // nothing is announced there
	}
	return st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		dead, err := tx.PendingImport.Query().Where(ofEveryDeployment, pendingimport.RelevantSinceLT(store.Micros(before))).
			ForUpdate(entsql.WithLockAction(entsql.SkipLocked)).IDs(ctx)
		if err != nil || len(dead) == 0 {
			return err
		}
		_, err = tx.PendingImport.Delete().Where(ofEveryDeployment, store.OneOf(pendingimport.FieldID, dead)).Exec(ctx)
		return err
	})
}

// ofEveryDeployment is always true. It names the first column of the indexes of tenants' tables, without which the
// database would read all rows, of scans for example all that were ever made.
func ofEveryDeployment(s *entsql.Selector) {
	s.Where(entsql.In(s.C(scan.FieldDeploymentID), entsql.Dialect(s.Dialect()).Select(deployment.FieldID).From(entsql.Table(deployment.Table))))
}

// purgedCoverages is the periodic job that deletes what old scans looked at.
type purgedCoverages struct{}

// Kind is the name in the queue.
func (purgedCoverages) Kind() string { return "purge_scan_coverages" }

// InsertOpts keep runs from piling up while no node works.
func (purgedCoverages) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type coverageWorker struct {
	river.WorkerDefaults[purgedCoverages]
	store *store.Store
	log   *slog.Logger
}

// Work deletes them for all deployments.
func (w *coverageWorker) Work(ctx context.Context, _ *river.Job[purgedCoverages]) error {
	n, err := purgeCoverages(ctx, w.store, time.Now().Add(-coverageAge))
	if err == nil && n > 0 {
		w.log.InfoContext(ctx, "coverages of old scans were deleted", "coverages", n)
	}
	return err
}
