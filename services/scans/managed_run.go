package scans

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/riverqueue/river"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/managedscan"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/managed"
	"github.com/palisade/palisade/services/scans/managed/packages"
	"github.com/palisade/palisade/services/scans/managed/secrets"
	"github.com/palisade/palisade/services/scm/clone"
	"github.com/palisade/palisade/services/scm/connect"
)

const (
	// managedWorkers is how many managed scans one node runs at a time.
	managedWorkers = 2
	// lostManagedInterval is how often the scans of dead nodes are searched.
	lostManagedInterval = 30 * time.Second
	// checkouts is the directory below the data directory that holds fetched code. Workflows use it too.
	checkouts = "checkouts"
)

// ManagedOptions configures managed scans.
type ManagedOptions struct {
	Store   *store.Store
	Hosts   *connect.Hosts
	Egress  *egress.Guard
	Keyring *secret.Keyring
	Log     *slog.Logger
	// Dir is the data directory of the node. Limit is the timeout of a scan, and Every the time between full scans.
	Dir          string
	Limit, Every time.Duration
	Uploads      UploadOptions
}

// uploads imports the results of a job.
func (o *ManagedOptions) uploads(ctx context.Context) (*ReportUploads, error) {
	options := o.Uploads
	var err error
	options.RedactionKey, err = o.Keyring.StoredKey(ctx, o.Store, ingest.RedactionKey)
	return &ReportUploads{store: o.Store, jobs: jobs.FromContext(ctx), options: options}, err
}

// ManagedBackground runs managed scans, starts the scheduled ones, and finds the ones of dead nodes.
func ManagedBackground(o ManagedOptions) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &managedWorker{ManagedOptions: o})
			jobs.AddWorker(workers, &scheduleWorker{ManagedOptions: o})
			jobs.AddWorker(workers, &lostManagedWorker{store: o.Store})
		},
		Periodic: []*river.PeriodicJob{jobs.Every(scheduleInterval, scheduledScans{}), jobs.Every(lostManagedInterval, lostManagedScans{})},
		Queues:   []jobs.Queue{{Name: managed.Queue, Workers: managedWorkers, Role: config.RoleScanner}},
	}
}

type managedWorker struct {
	river.WorkerDefaults[managed.Run]
	ManagedOptions
}

// Timeout leaves the worker time to say that the scan took too long.
func (w *managedWorker) Timeout(*river.Job[managed.Run]) time.Duration { return w.Limit + time.Minute }

// Work runs a scan to its end, once: a run that is repeated finds that the scan has ended.
func (w *managedWorker) Work(ctx context.Context, job *river.Job[managed.Run]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	run, err := beginManaged(ctx, w.Store, jobs.FromContext(ctx), job.Args.ScanID)
	if err != nil || run == nil {
		return err
	}
	err = w.run(ctx, run)
	ended := context.WithoutCancel(ctx)
	var fetch *clone.Error
	switch {
	case err == nil || errors.Is(err, errNotMine):
		return nil
	case ctx.Err() != nil: // the node stops
		return errors.Join(err, ignoreNotMine(run.release(ended, "the node stopped; the scan begins again")))
	case errors.As(err, &fetch) && fetch.Permanent:
		return ignoreNotMine(run.fail(ended, jobs.FromContext(ctx), fetch.Text))
	case errors.Is(err, context.DeadlineExceeded):
		return ignoreNotMine(run.fail(ended, jobs.FromContext(ctx), fmt.Sprintf("it took longer than %s, the limit of managed-scan-timeout", w.Limit)))
	case job.Attempt < job.MaxAttempts:
		return errors.Join(err, ignoreNotMine(run.release(ended, "an attempt failed and is repeated: "+publicText(err))))
	}
	w.Log.WarnContext(ctx, "a managed scan failed", "scan", job.Args.ScanID, "error", err)
	return ignoreNotMine(run.fail(ended, jobs.FromContext(ctx), publicText(err)))
}

func ignoreNotMine(err error) error {
	if errors.Is(err, errNotMine) {
		return nil
	}
	return err
}

// publicText is what users may read of an error.
func publicText(err error) string {
	var fetch *clone.Error
	var refused *apierr.Error
	switch {
	case errors.As(err, &fetch):
		return fetch.Text
	case errors.As(err, &refused):
		return refused.Error()
	}
	return "an error of the server; its log says which"
}

// run fetches the code, searches it and stores the results.
func (w *managedWorker) run(ctx context.Context, r *managedRun) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	limited, cancel := context.WithTimeout(ctx, w.Limit)
	defer cancel()
	go r.keepAlive(ctx, stop)
	err := w.search(limited, r)
	if errors.Is(context.Cause(ctx), errNotMine) {
		return errNotMine
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return context.DeadlineExceeded
	}
	return err
}

func (w *managedWorker) search(ctx context.Context, r *managedRun) error {
	owner, err := w.Store.Reader.Deployment.Query().Where(deployment.ID(r.scan.DeploymentID)).Only(ctx)
	if err != nil {
		return err
	}
	if err := r.note(ctx, "fetches %s of %s", r.scan.Ref, r.project.RepositoryURL); err != nil {
		return err
	}
	source, err := w.Hosts.Repository(ctx, r.project.ID)
	if err != nil {
		return err
	}
	checkout, err := clone.Fetch(ctx, w.Egress, source, r.scan.Ref, filepath.Join(w.Dir, checkouts), clone.Limits{File: max(secrets.MaxFile, packages.MaxFile), Timeout: w.Limit})
	if err != nil {
		return err
	}
	defer func() { _ = checkout.Close() }()
	if err := r.note(ctx, "searches commit %s", checkout.Commit); err != nil {
		return err
	}
	return w.store(ctx, r, owner.Slug, checkout)
}

// store searches the code, and imports the results like an upload.
func (w *managedWorker) store(ctx context.Context, r *managedRun, slug string, checkout *clone.Checkout) error {
	uploads, err := w.uploads(ctx)
	if err != nil {
		return err
	}
	target := &scansv1.UploadReportTarget{
		Project: r.project.Name, Ref: r.scan.Ref, Commit: checkout.Commit, Category: managed.Category, CommitTime: timestamppb.New(checkout.At),
	}
	search := formats.Format{Name: "managed", Convert: func(_ *formats.Input, out *formats.Writer) error {
		if err := w.searchPackages(ctx, r, checkout, out); err != nil {
			return err
		}
		n, err := secrets.Search(ctx, checkout, out)
		if err != nil {
			return err
		}
		return r.note(ctx, "secrets: %d in %d files (%.1f MB); %d binary files were left out, and %d larger than %d MiB",
			n.Secrets, n.Files, float64(n.Bytes)/1e6, n.Binary, n.Large, secrets.MaxFile>>20)
	}}
	opened, err := openAs(ctx, search, bytes.NewReader(nil), target, uploads.options)
	if err != nil {
		return err
	}
	defer func() { _ = opened.close() }() // an unnamed file
	_, err = uploads.ingest(ctx, slug, target, opened, r)
	return err
}

// searchPackages is the first search: the dependencies of a report are those of its first run.
func (w *managedWorker) searchPackages(ctx context.Context, r *managedRun, checkout *clone.Checkout, out *formats.Writer) error {
	found, n, err := packages.Read(ctx, checkout, out)
	if err != nil {
		return err
	}
	if n.Vulnerabilities, err = packages.Match(ctx, w.Store.Reader, found, out); err != nil {
		return err
	}
	known, err := w.Store.Reader.Advisory.Query().Count(ctx)
	if err != nil {
		return err
	}
	return r.note(ctx, "dependencies: %d vulnerabilities of %d packages in %d lockfiles by %d advisories; %d lockfiles could not be read",
		n.Vulnerabilities, n.Packages, n.Lockfiles, known, n.Unread)
}

// lostManagedScans is the periodic job that finds the scans of dead nodes.
type lostManagedScans struct{}

// Kind implements river.JobArgs.
func (lostManagedScans) Kind() string { return "lost_managed_scans" }

// InsertOpts prevents runs from piling up while no node works.
func (lostManagedScans) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type lostManagedWorker struct {
	river.WorkerDefaults[lostManagedScans]
	store *store.Store
}

// Work enqueues the scans whose node is silent again. The queue itself rescues jobs of dead nodes only after an hour.
func (w *lostManagedWorker) Work(ctx context.Context, _ *river.Job[lostManagedScans]) error {
	now := store.Now()
	rows, err := w.store.Reader.ManagedScan.Query().Where(managedscan.LeaseUntilGT(0), managedscan.LeaseUntilLT(now)).
		Limit(maxLostManaged).All(tenant.System(ctx))
	for _, row := range rows {
		again := w.store.Write(tenant.NewContext(ctx, row.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			n, err := tx.ManagedScan.Update().Where(managedscan.ID(row.ID), managedscan.LeaseUntil(row.LeaseUntil)).SetLeaseUntil(0).
				SetLog(addLine(row.Log, "the node that ran it is silent; another one begins again")).Save(ctx)
			if err != nil || n == 0 {
				return err
			}
			return jobs.FromContext(ctx).Enqueue(ctx, managed.Run{DeploymentID: row.DeploymentID, ScanID: row.ScanID}, nil)
		})
		err = errors.Join(err, again)
	}
	return err
}

// maxLostManaged is how many scans of dead nodes one run takes up.
const maxLostManaged = 100
