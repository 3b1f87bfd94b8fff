package scans

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scanpayload"
	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/policies/pathignore"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/scans/blocking"
	"github.com/palisade/palisade/services/scans/feedback"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/scanner"
	"github.com/palisade/palisade/services/scans/scanstats"
	"github.com/palisade/palisade/services/supplychain/dependencies"
)

const (
	// scansQueue is the queue of results that wait to be stored. It is separate so that they do not delay other jobs.
	scansQueue = "scans"
	// scansWorkers is how many scans of different projects one node stores at a time. One deployment gets at most half
	// of them.
	scansWorkers = 4
	// scansPoll is how often a node looks for results. A scanner waits for them (see ScannerProtocol.await).
	scansPoll = 200 * time.Millisecond
	// storeAttempts is the number of attempts to store results. They span a quarter of an hour; the scanner polls for
	// half an hour.
	storeAttempts = 6
	// storeTimeout limits one attempt.
	storeTimeout = 30 * time.Minute
	// fullSnooze is the delay of a retry after the disk was full.
	fullSnooze = time.Minute
	// completionWait is how long results wait for the completion of their scan. A scanner sends it at once, and with its
	// retries within a few minutes. Without it, the scan closes nothing.
	completionWait = 10 * time.Minute
	// completionPoll is how often a job of an earlier version, which did not wait, looks for the completion.
	completionPoll = 5 * time.Second
)

// notStored is the final error for the scanner.
const notStored = "the results could not be stored; the log of the server says why"

// storeScanResults is enqueued with the results of a scan.
type storeScanResults struct {
	DeploymentID int64 `json:"deployment_id"`
	ScanID       int64 `json:"scan_id"`
	// Lost is the number of attempts that ended with the death of their node before this job.
	Lost int32 `json:"lost,omitempty"`
	// Incomplete says that the results are stored even if the scanner did not complete the scan.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Kind implements river.JobArgs.
func (storeScanResults) Kind() string { return "store_scan_results" }

// InsertOpts selects the queue.
func (storeScanResults) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: scansQueue, MaxAttempts: storeAttempts}
}

// ScannerBackground returns the jobs that store the results of scanners as findings.
func ScannerBackground(st *store.Store, log *slog.Logger, o UploadOptions) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			results := &resultsWorker{store: st, log: log, options: o}
			jobs.AddWorker(workers, results)
			jobs.AddWorker(workers, &lostResultsWorker{results: results, since: time.Now()})
		},
		Periodic: []*river.PeriodicJob{jobs.Every(lostInterval, lostScanResults{})},
		Queues:   []jobs.Queue{{Name: scansQueue, Workers: scansWorkers, Poll: scansPoll}},
	}
}

type resultsWorker struct {
	river.WorkerDefaults[storeScanResults]
	store   *store.Store
	log     *slog.Logger
	options UploadOptions
}

// Timeout limits an attempt.
func (*resultsWorker) Timeout(*river.Job[storeScanResults]) time.Duration { return storeTimeout }

// Work stores the results of one scan, all of them or none. After the last attempt it reports the failure to the
// scanner.
func (w *resultsWorker) Work(ctx context.Context, job *river.Job[storeScanResults]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	attempt := job.Args.Lost + int32(job.Attempt)
	waits := !job.Args.Incomplete && time.Since(job.CreatedAt) < completionWait
	err := w.storeResults(ctx, job.Args.ScanID, attempt, waits)
	if errors.Is(err, errNotComplete) {
		return river.JobSnooze(completionPoll)
	}
	if apierr.Is(apierr.Map(err), errorsv1.Reason_REASON_STORAGE_FULL) {
		w.log.ErrorContext(ctx, "results of a scan wait until the disk has room", "scan", job.Args.ScanID, "error", err)
		return river.JobSnooze(fullSnooze) // not counted as an attempt: a full disk must not make the results fail
	}
	if err == nil || job.Attempt < job.MaxAttempts {
		return err
	}
	w.log.ErrorContext(ctx, "results of a scan could not be stored", "scan", job.Args.ScanID, "error", err)
	if failed := w.fail(context.WithoutCancel(ctx), job.Args.ScanID, attempt); failed != nil {
		w.log.ErrorContext(ctx, "a scan could not be marked as failed", "scan", job.Args.ScanID, "error", failed)
	}
	return err
}

// errNotComplete says that the scanner has not completed the scan.
var errNotComplete = errors.New("the scan is not complete")

// storeResults stores the results of a scan, unless they wait for its completion.
func (w *resultsWorker) storeResults(ctx context.Context, scanID int64, attempt int32, waits bool) error {
	before, err := w.store.Reader.Scan.Query().Where(scan.ID(scanID)).Only(ctx)
	if ent.IsNotFound(err) || err == nil && before.ResultsState != resultsReceived {
		return nil // deleted with its project, or stored by an attempt that did not report back
	}
	if err != nil {
		return err
	}
	if err := w.options.Spool.Of(ctx).Check(); err != nil {
		return err
	}
	var result *ingest.Summary
	err = w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		of, err := lockProjectByID(ctx, w.store, tx, before.ProjectID)
		if ent.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("hold project: %w", err)
		}
		row, err := tx.Scan.Query().Where(scan.ID(scanID)).Only(ctx)
		if err != nil || row.ResultsState != resultsReceived {
			return err
		}
		kept, err := scannerOf(row)
		if err != nil {
			return err
		}
		if waits && !kept.GetComplete() {
			return errNotComplete
		}
		result, err = w.ingest(ctx, tx, of, row, kept, attempt)
		return err
	})
	if err != nil || result == nil {
		return err
	}
	if w.options.Ingested != nil {
		for o, n := range result.Counts {
			w.options.Ingested(o.Product, o.What, n)
		}
	}
	return nil
}

// ingest stores the results of a scan. The caller has locked the project. The results are read under this lock, too:
// the search for lost jobs uses the lock to see that the job is alive (see projectLocked), and policies and rule texts
// are current.
func (w *resultsWorker) ingest(
	ctx context.Context, tx *ent.Tx, of *ent.Project, row *ent.Scan, kept *storev1.ScannerScan, attempt int32,
) (*ingest.Summary, error) {
	of, err := scannedProject(ctx, tx, of, row)
	if err != nil {
		return nil, err
	}
	results, err := newScannerResults(ctx, tx.Client(), row, kept)
	if err != nil {
		return nil, err
	}
	policies, err := remediation.Load(ctx, tx.Client())
	if err != nil {
		return nil, fmt.Errorf("load remediation policies: %w", err)
	}
	if len(policies) > 0 || len(kept.GetDecidedRules()) > 0 {
		results.reported = map[uint64]bool{}
	}
	ignores, err := pathignore.Read(ctx, tx.Client())
	if err != nil {
		return nil, fmt.Errorf("read ignored paths: %w", err)
	}
	prepared, err := ingest.Read(ctx, tx.Client(), ingest.Input{
		Results: results, Commit: row.Commit, CommitTime: row.CommitTime, Calls: w.options.Calls, Spool: w.options.Spool.Of(ctx), Ignores: ignores.For(of),
	})
	if err != nil {
		return nil, err
	}
	defer prepared.Release()
	result, err := ingest.Store(ctx, tx, ingest.Target{Store: w.store, Project: of, Scan: row}, prepared)
	if err != nil {
		return nil, fmt.Errorf("store findings: %w", err)
	}
	var decision remediation.Decision
	if len(results.reported) > 0 {
		decision, err = results.gate(tx, of, policies, result).decide(ctx)
		if err != nil {
			return nil, fmt.Errorf("decide whether the scan blocks: %w", err)
		}
	}
	// The scanner may complete the scan concurrently. From here on, that call waits for this transaction.
	if row, err = lockScan(ctx, tx, w.store.Postgres(), row.ID); err != nil {
		return nil, err
	}
	if kept, err = scannerOf(row); err != nil {
		return nil, err
	}
	if len(result.Older) == 0 {
		if err := replaceDependencies(ctx, w.store, tx, row, &payload{ctx: ctx, db: tx.Client(), scanID: row.ID}); err != nil {
			return nil, err
		}
	}
	if _, err := tx.ScanPayload.Delete().Where(scanpayload.ScanID(row.ID)).Exec(ctx); err != nil {
		return nil, err
	}
	kept.Attempts, kept.Block, kept.BlockReason, kept.BlockingMatchBasedIds = attempt, decision.Block, decision.Reason, decision.MatchBasedIDs
	if err := closeScannerScan(ctx, row, kept, result); err != nil {
		return nil, err
	}
	queue := jobs.FromContext(ctx)
	if err := w.options.Watch.Record(ctx, tx, queue, of, row, observed(result, row)); err != nil {
		return nil, fmt.Errorf("update the freshness: %w", err)
	}
	if err := feedback.Scanned(ctx, tx, queue, of, pullRequestOf(row)); err != nil {
		return nil, fmt.Errorf("ask for feedback on the pull request: %w", err)
	}
	if err := outbox.ScanFinished(ctx, tx, queue, row.DeploymentID, row.ID); err != nil || result.Changed() < statisticsThreshold {
		return result, err
	}
	return result, queue.Enqueue(ctx, refreshStatistics{}, nil)
}

// scannedProject records that a project was scanned, and guesses its default branch as uploads do.
func scannedProject(ctx context.Context, tx *ent.Tx, of *ent.Project, row *ent.Scan) (*ent.Project, error) {
	update := unarchive(of, of.Update().SetLatestScanAt(max(row.StartedAt, latest(of))))
	if row.IsFullScan && betterDefault(of, row.Ref) {
		update.SetDefaultBranch(row.Ref)
	}
	return saveScanned(ctx, tx, of, update)
}

func latest(of *ent.Project) int64 {
	if of.LatestScanAt == nil {
		return 0
	}
	return *of.LatestScanAt
}

// closeScannerScan writes the outcome of the scan. Its products are the scanned ones.
func closeScannerScan(ctx context.Context, row *ent.Scan, kept *storev1.ScannerScan, result *ingest.Summary) error {
	encoded, err := proto.Marshal(kept)
	if err != nil {
		return err
	}
	stats := row.Stats
	if stats == nil {
		stats = map[string]any{}
	}
	for o, n := range result.Counts {
		total, _ := stats[o.What].(int)
		stats[o.What] = total + n
	}
	if n := result.HeldCloses(); n > 0 {
		stats[heldStats] = n
	}
	if id := result.NewerScan(); id != 0 {
		stats[scanstats.Older] = id
	}
	closeAs(row, result)
	return result.SetCounts(row.Update()).SetProducts(row.Products).SetScanner(encoded).SetResultsState(resultsStored).SetStats(stats).
		SetStatus(row.Status).SetCompletedAt(max(store.Now(), row.StartedAt+1)).Exec(ctx)
}

// fail abandons the results.
func (w *resultsWorker) fail(ctx context.Context, scanID int64, attempt int32) error {
	return w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := lockScan(ctx, tx, w.store.Postgres(), scanID)
		if err != nil || row.ResultsState != resultsReceived {
			return err
		}
		kept, err := scannerOf(row)
		if err != nil {
			return err
		}
		kept.Attempts, kept.Errors = attempt, append(kept.Errors, notStored)
		encoded, err := proto.Marshal(kept)
		if err != nil {
			return err
		}
		if _, err := tx.ScanPayload.Delete().Where(scanpayload.ScanID(row.ID)).Exec(ctx); err != nil {
			return err
		}
		return row.Update().SetScanner(encoded).SetResultsState(resultsFailed).SetStatus(scansv1.ScanStatus_SCAN_STATUS_ERROR.String()).
			SetCompletedAt(max(store.Now(), row.StartedAt+1)).Exec(ctx)
	})
}

// replaceDependencies replaces the dependencies of the project by those in frames. Only full scans of the primary
// branch, or else of the default branch, determine the dependencies of a project.
func replaceDependencies(ctx context.Context, st *store.Store, tx *ent.Tx, row *ent.Scan, frames io.Reader) error {
	of, err := tx.Project.Get(ctx, row.ProjectID)
	if err != nil {
		return err
	}
	if !row.IsFullScan || row.Ref != blocking.Primary(of) {
		return nil
	}
	byLockfile, about := map[string][]dependencies.Dependency{}, dependencies.Scan{
		DeploymentID: row.DeploymentID, ProjectID: row.ProjectID, ScanID: row.ID, At: row.StartedAt,
	}
	err = scanner.Read(frames, func(frame *storev1.ScannerFrame) error {
		about.Skipped = append(about.Skipped, frame.GetCoverage().GetSkippedSubprojects()...)
		lockfile := frame.GetLockfile()
		switch {
		case lockfile == nil:
		case lockfile.GetPath() == "":
			about.Complete = true // it looked for all of them
		default:
			list := byLockfile[lockfile.GetPath()]
			for _, d := range lockfile.GetDependencies() {
				list = append(list, dependencies.Dependency{
					Ecosystem: d.GetEcosystem(), Package: d.GetPackage(), Version: d.GetVersion(), Transitivity: d.GetTransitivity(),
					ManifestPath: d.GetManifestPath(), ResolvedURL: d.GetResolvedUrl(), Line: int(d.GetLineNumber()),
					Licenses: d.GetLicenses(), Children: d.GetChildren(),
				})
			}
			byLockfile[lockfile.GetPath()] = list
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := dependencies.Replace(ctx, st, tx, about, byLockfile); err != nil {
		return fmt.Errorf("store dependencies: %w", err)
	}
	return nil
}
