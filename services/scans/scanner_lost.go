package scans

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/riverqueue/river"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
)

const (
	// lostInterval is how often jobs of killed nodes are searched. The scanner polls for half an hour, but the queue
	// itself rescues jobs of dead nodes only after an hour.
	lostInterval = 10 * time.Second
	// lostAfter is how long a job is assumed to be running before its locks are checked.
	lostAfter = 15 * time.Second
	// maxLost is how many nodes may die with the same results before the results are considered the cause.
	maxLost = 3
)

// lostScanResults is the periodic job that restarts the jobs of killed nodes.
type lostScanResults struct{}

// Kind implements river.JobArgs.
func (lostScanResults) Kind() string { return "lost_scan_results" }

// InsertOpts prevents runs from piling up while no node works.
func (lostScanResults) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type lostResultsWorker struct {
	river.WorkerDefaults[lostScanResults]
	results *resultsWorker
	since   time.Time // jobs that started earlier belong to another process
}

// Work enqueues the lost jobs again, once for each loss. Storing results is idempotent, so mistaking a running job for
// a lost one only costs one read of the scan.
func (w *lostResultsWorker) Work(ctx context.Context, _ *river.Job[lostScanResults]) error {
	before := time.Now().Add(-lostAfter)
	if !w.results.store.Postgres() {
		before = w.since // SQLite has one process
	}
	lost, err := jobs.FromContext(ctx).Lost(ctx, storeScanResults{}.Kind(), before)
	if err != nil {
		return err
	}
	var failures []error
	for _, raw := range lost {
		var args storeScanResults
		if err := json.Unmarshal(raw, &args); err != nil {
			return fmt.Errorf("arguments of a lost job: %w", err)
		}
		failures = append(failures, w.retry(tenant.NewContext(ctx, args.DeploymentID), args))
	}
	return errors.Join(failures...)
}

// retry enqueues the job of a scan again, or abandons its results.
func (w *lostResultsWorker) retry(ctx context.Context, args storeScanResults) error {
	row, err := w.results.store.Reader.Scan.Query().Where(scan.ID(args.ScanID)).Only(ctx)
	if ent.IsNotFound(err) || err == nil && row.ResultsState != resultsReceived {
		return nil // a stale job: another one has stored the results
	}
	if err != nil {
		return err
	}
	givenUp := false
	err = w.results.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		givenUp = false
		if locked, err := w.projectLocked(ctx, tx, row.ProjectID); err != nil || locked {
			return err
		}
		row, err := lockScan(ctx, tx, w.results.store.Postgres(), args.ScanID)
		if err != nil || row.ResultsState != resultsReceived {
			return err
		}
		kept, err := scannerOf(row)
		if err != nil || kept.GetAttempts() != args.Lost {
			return err // this loss is known
		}
		args.Lost++
		kept.Attempts, givenUp = args.Lost, args.Lost >= maxLost
		encoded, err := proto.Marshal(kept)
		if err != nil {
			return err
		}
		if err := row.Update().SetScanner(encoded).Exec(ctx); err != nil || givenUp {
			return err
		}
		return jobs.FromContext(ctx).Enqueue(ctx, args, nil)
	})
	if err != nil || !givenUp {
		return err
	}
	w.results.log.ErrorContext(ctx, "results of a scan could not be stored: the server stopped during each attempt", "scan", args.ScanID)
	return w.results.fail(ctx, args.ScanID, args.Lost)
}

// projectLocked reports whether a connection holds the lock of the project, as a job does while it stores results.
func (w *lostResultsWorker) projectLocked(ctx context.Context, tx *ent.Tx, projectID int64) (bool, error) {
	if !w.results.store.Postgres() {
		return false, nil
	}
	free, err := tx.Project.Query().Where(project.ID(projectID)).ForUpdate(entsql.WithLockAction(entsql.SkipLocked)).Exist(ctx)
	return !free, err
}
