// Package managed requests scans that Palisade itself runs: a background job fetches the code of a project and searches
// it. The domain of scans runs them; see managed_run.go there.
package managed

import (
	"context"
	"time"

	"github.com/riverqueue/river"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/managedscan"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scans/feedback"
)

const (
	// Queue is served by nodes with the role scanner.
	Queue = "scanner"
	// Category separates the findings of managed scans from what the same tools find elsewhere.
	Category = "managed"
	// attempts apply to failures that may be temporary. They span about half an hour.
	attempts = 6
)

// Run is the job that runs a managed scan.
type Run struct {
	DeploymentID int64 `json:"deployment_id"`
	ScanID       int64 `json:"scan_id"`
}

// Kind is the name in the queue.
func (Run) Kind() string { return "managed_scan" }

// InsertOpts chooses the queue.
func (Run) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Queue, MaxAttempts: attempts}
}

// Request is a managed scan that is wanted.
type Request struct {
	Project *ent.Project
	// ConfigID is the connection that reaches the code.
	ConfigID int64
	// Ref is a full ref. Commit may be empty: the commit of the ref when the scan begins counts.
	Ref, Commit string
	Cause       scansv1.ManagedScanCause
	// RetryOf is the id of a scan, or 0.
	RetryOf int64
}

// Add stores a scan that waits, and its job. If a scan of the same ref waits already, it covers the request too.
func Add(ctx context.Context, st *store.Store, tx *ent.Tx, queue *jobs.Jobs, r Request) (*ent.ManagedScan, error) {
	// Requests for one project are stored one after the other, so that one scan waits for each ref.
	locked := tx.Project.Query().Where(project.ID(r.Project.ID))
	if st.Postgres() {
		locked.ForUpdate()
	}
	if _, err := locked.OnlyID(ctx); err != nil {
		return nil, err
	}
	waiting, err := tx.ManagedScan.Query().Where(managedscan.ProjectID(r.Project.ID), managedscan.WaitingFor(r.Ref)).Only(ctx)
	if err == nil && r.Commit != "" {
		err = tx.Scan.Update().Where(scan.ID(waiting.ScanID)).SetCommit(r.Commit).Exec(ctx)
	}
	if !ent.IsNotFound(err) {
		return waiting, err
	}
	about, err := add(ctx, tx, queue, r)
	if err != nil {
		return nil, err
	}
	return about, show(ctx, tx, queue, r)
}

// show writes on the pull request that its scan is not finished, and what counts if it takes too long.
func show(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, r Request) error {
	number := gitref.PullRequest(r.Ref)
	if err := feedback.Scanned(ctx, tx, queue, r.Project, number); err != nil || number == 0 {
		return err
	}
	settings, err := tx.ManagedScanSetting.Query().Only(ctx)
	if err != nil || !settings.FailOpen || settings.FailOpenSeconds == 0 {
		return ignoreNotFound(err)
	}
	late := feedback.Write{DeploymentID: r.Project.DeploymentID, ProjectID: r.Project.ID, Number: number, Late: true}
	opts := late.InsertOpts()
	opts.ScheduledAt = time.Now().Add(time.Duration(settings.FailOpenSeconds) * time.Second)
	return queue.Enqueue(ctx, late, &opts)
}

func ignoreNotFound(err error) error {
	if ent.IsNotFound(err) {
		return nil
	}
	return err
}

func add(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, r Request) (*ent.ManagedScan, error) {
	now := store.Now()
	meta, err := proto.Marshal(Meta(r.Project, r.Ref, r.Commit, r.Cause))
	if err != nil {
		return nil, err
	}
	create := tx.Scan.Create().SetDeploymentID(r.Project.DeploymentID).SetProjectID(r.Project.ID).SetRef(r.Ref).SetCommit(r.Commit).
		SetStatus(scansv1.ScanStatus_SCAN_STATUS_PENDING.String()).SetProducts(0).SetIsFullScan(true).SetMeta(meta).SetStats(map[string]any{}).
		SetStartedAt(now)
	if number := gitref.PullRequest(r.Ref); number != 0 {
		create.SetPullRequest(number)
	}
	row, err := create.Save(ctx)
	if err != nil {
		return nil, err
	}
	args := Run{DeploymentID: r.Project.DeploymentID, ScanID: row.ID}
	job, err := queue.EnqueueTask(ctx, args, nil)
	if err != nil {
		return nil, err
	}
	about := tx.ManagedScan.Create().SetDeploymentID(args.DeploymentID).SetScanID(row.ID).SetProjectID(r.Project.ID).SetConfigID(r.ConfigID).
		SetCause(r.Cause.String()).SetJobID(job).SetWaitingFor(r.Ref).SetCreatedAt(now)
	if r.RetryOf != 0 {
		about.SetRetryOf(r.RetryOf)
	}
	return about.Save(ctx)
}

// Meta describes a managed scan as scanners describe theirs.
func Meta(of *ent.Project, ref, commit string, cause scansv1.ManagedScanCause) *scansv1.ScanMeta {
	on := map[scansv1.ManagedScanCause]string{
		scansv1.ManagedScanCause_MANAGED_SCAN_CAUSE_SCHEDULE:     "schedule",
		scansv1.ManagedScanCause_MANAGED_SCAN_CAUSE_PULL_REQUEST: "pull_request",
	}[cause]
	if on == "" {
		on = "managed_scan"
	}
	return &scansv1.ScanMeta{Branch: ref, Commit: commit, Repository: of.Name, RepoUrl: of.URL, On: on}
}
