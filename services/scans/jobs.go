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
	"github.com/palisade/palisade/ent/managedscan"
	"github.com/palisade/palisade/ent/pendingimport"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// statisticsThreshold is how many rows an import has to change to make new planner statistics worth their cost.
	statisticsThreshold = 1000
	// statisticsTimeout leaves room for a long import that holds the only writer of SQLite.
	statisticsTimeout = 30 * time.Minute
	// statisticsSnooze is the delay of a retry while another job maintains the tables.
	statisticsSnooze = time.Minute
	// abandonedAfter is how long a scan may be pending or running before it is considered abandoned.
	abandonedAfter = 24 * time.Hour
	// abandonedInterval is how often abandoned scans are searched, and announcements of imports on dead nodes.
	abandonedInterval = 5 * time.Minute
	// announcementAge is the age from which an announcement is checked. By then its import has announced itself for
	// sure, and a live import deletes its announcement when it commits.
	announcementAge = time.Minute
	// purgeInterval is how often coverages and answers of old scans are deleted.
	purgeInterval = 24 * time.Hour
)

// Background returns the background jobs of scans.
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

// refreshStatistics is enqueued by an import that changed many rows.
type refreshStatistics struct{}

// Kind implements river.JobArgs.
func (refreshStatistics) Kind() string { return "refresh_statistics" }

// InsertOpts makes one run serve all imports of a burst.
func (refreshStatistics) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type statisticsWorker struct {
	river.WorkerDefaults[refreshStatistics]
	store *store.Store
}

// Timeout limits a run.
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

// abandonedScans is the periodic job that abandons scans without a report from their scanner.
type abandonedScans struct{}

// Kind implements river.JobArgs.
func (abandonedScans) Kind() string { return "abandoned_scans" }

// InsertOpts prevents runs from piling up while no node works.
func (abandonedScans) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type abandonedWorker struct {
	river.WorkerDefaults[abandonedScans]
	store *store.Store
	log   *slog.Logger
}

// Work marks the abandoned scans of all deployments, and deletes the announcements of imports on dead nodes.
func (w *abandonedWorker) Work(ctx context.Context, _ *river.Job[abandonedScans]) error {
	deleted := deletePendingImports(ctx, w.store, time.Now().Add(-announcementAge))
	n, err := giveUpScans(ctx, w.store, time.Now().Add(-abandonedAfter))
	if err == nil && n > 0 {
		w.log.InfoContext(ctx, "scans that never finished were abandoned", "scans", n)
	}
	return errors.Join(deleted, err)
}

// giveUpScans sets SCAN_STATUS_NEVER_FINISHED (contract facts, SearchScansRequest.statuses) on scans of all deployments
// that started before a time and are still pending or running. It returns their number.
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
		if err != nil {
			return err
		}
		// A managed scan that no node took does not stand in the way of later ones of its ref.
		return tx.ManagedScan.Update().
			Where(ofEveryDeployment, managedscan.WaitingForNotNil(), managedscan.CreatedAtLT(store.Micros(startedBefore))).
			ClearWaitingFor().SetProblem("no node took it for a day: start one with the role scanner").Exec(ctx)
	})
	return n, err
}

// deletePendingImports deletes the announcements from before a time in all deployments. It skips announcements of
// running imports, which have locked the rows (see announce).
func deletePendingImports(ctx context.Context, st *store.Store, before time.Time) error {
	if !st.Postgres() {
		return nil // SQLite has no announcements
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

// ofEveryDeployment is always true. It names the first column of the indexes of tenants' tables. Without it, the
// database reads all rows, for example all scans ever made.
func ofEveryDeployment(s *entsql.Selector) {
	s.Where(entsql.In(s.C(scan.FieldDeploymentID), entsql.Dialect(s.Dialect()).Select(deployment.FieldID).From(entsql.Table(deployment.Table))))
}

// purgedCoverages is the periodic job that deletes the coverages and answers of old scans.
type purgedCoverages struct{}

// Kind implements river.JobArgs.
func (purgedCoverages) Kind() string { return "purge_scan_coverages" }

// InsertOpts prevents runs from piling up while no node works.
func (purgedCoverages) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type coverageWorker struct {
	river.WorkerDefaults[purgedCoverages]
	store *store.Store
	log   *slog.Logger
}

// Work deletes coverages and answers of all deployments.
func (w *coverageWorker) Work(ctx context.Context, _ *river.Job[purgedCoverages]) error {
	coverages, err := purgeCoverages(ctx, w.store, time.Now().Add(-coverageAge))
	if err != nil {
		return err
	}
	answers, err := purgeAnswers(ctx, w.store, time.Now().Add(-answerAge))
	if err == nil && coverages+answers > 0 {
		w.log.InfoContext(ctx, "coverages and answers of old scans were deleted", "coverages", coverages, "answers", answers)
	}
	return err
}
