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
	// lostInterval is how often results are looked for whose node was killed: the scanner asks for half an hour, and the
	// queue itself frees jobs of dead nodes only after an hour.
	lostInterval = 10 * time.Second
	// lostAfter is how long a job is taken to be at work without a look at its locks.
	lostAfter = 15 * time.Second
	// maxLost is how many nodes may die with the same results until those are taken to be the cause.
	maxLost = 3
)

// lostScanResults is the periodic job that goes on with what killed nodes left.
type lostScanResults struct{}

// Kind is the name in the queue.
func (lostScanResults) Kind() string { return "lost_scan_results" }

// InsertOpts keep runs from piling up while no node works.
func (lostScanResults) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type lostResultsWorker struct {
	river.WorkerDefaults[lostScanResults]
	results *resultsWorker
	since   time.Time // jobs that were taken before were not taken by this process
}

// Work enqueues the lost jobs anew, once for each loss. Storing results does no harm when it is done twice, so that to
// take a living job for a lost one costs no more than a look at the scan.
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
		failures = append(failures, w.again(tenant.NewContext(ctx, args.DeploymentID), args))
	}
	return errors.Join(failures...)
}

// again enqueues the job of a scan anew, or gives its results up.
func (w *lostResultsWorker) again(ctx context.Context, args storeScanResults) error {
	row, err := w.results.store.Reader.Scan.Query().Where(scan.ID(args.ScanID)).Only(ctx)
	if ent.IsNotFound(err) || err == nil && row.ResultsState != resultsReceived {
		return nil // the job of an hour ago is still in the queue; others have done its work
	}
	if err != nil {
		return err
	}
	givenUp := false
	err = w.results.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		givenUp = false
		if atWork, err := w.atWork(ctx, tx, row.ProjectID); err != nil || atWork {
			return err
		}
		row, err := holdScan(ctx, tx, w.results.store.Postgres(), args.ScanID)
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
	w.results.log.ErrorContext(ctx, "results of a scan could not be stored: the server ended while it did, again and again", "scan", args.ScanID)
	return w.results.fail(ctx, args.ScanID, args.Lost)
}

// atWork reports whether somebody holds the project, as whoever stores results does until its connection ends.
func (w *lostResultsWorker) atWork(ctx context.Context, tx *ent.Tx, projectID int64) (bool, error) {
	if !w.results.store.Postgres() {
		return false, nil
	}
	free, err := tx.Project.Query().Where(project.ID(projectID)).ForUpdate(entsql.WithLockAction(entsql.SkipLocked)).Exist(ctx)
	return !free, err
}
