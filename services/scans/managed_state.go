package scans

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/managedscan"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/feedback"
	"github.com/palisade/palisade/services/scans/managed"
)

const (
	// managedLease is how long a node that says nothing is considered alive.
	managedLease = time.Minute
	// maxManagedClaims is how many nodes may die with a scan before the scan is considered the cause.
	maxManagedClaims = 3
	// maxManagedLog limits the log of a scan in bytes.
	maxManagedLog = 32 << 10
)

var (
	// errNotMine says that the scan was cancelled, or that another node runs it.
	errNotMine = errors.New("the scan was cancelled, or another node runs it")
	pending    = scansv1.ScanStatus_SCAN_STATUS_PENDING.String()
	running    = scansv1.ScanStatus_SCAN_STATUS_RUNNING.String()
)

// managedRun is a managed scan that this node runs. The number of claims tells nodes apart that ran it one after the
// other.
type managedRun struct {
	store   *store.Store
	about   *ent.ManagedScan
	scan    *ent.Scan
	project *ent.Project
}

// beginManaged claims a scan for this node; nil if it has ended, or if another node runs it.
func beginManaged(ctx context.Context, st *store.Store, queue *jobs.Jobs, scanID int64) (r *managedRun, err error) {
	err = st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		r = nil
		row, about, err := lockManaged(ctx, st, tx, scanID)
		if err != nil || row.Status != pending && row.Status != running || about.LeaseUntil > store.Now() {
			return ignoreNotFound(err)
		}
		of, err := tx.Project.Query().Where(project.ID(row.ProjectID)).Only(ctx)
		if err != nil {
			return ignoreNotFound(err)
		}
		if about.Claims >= maxManagedClaims {
			return endManaged(ctx, tx, queue, row, about, scansv1.ScanStatus_SCAN_STATUS_NEVER_FINISHED,
				fmt.Sprintf("%d nodes stopped while they ran this scan: look at their logs and their memory", about.Claims))
		}
		if err := supersede(ctx, tx, queue, row); err != nil {
			return err
		}
		now := store.Now()
		update := about.Update().ClearWaitingFor().SetLeaseUntil(now + managedLease.Microseconds()).SetClaims(about.Claims + 1)
		if about.BegunAt == nil {
			update.SetBegunAt(now)
		}
		if about, err = update.Save(ctx); err != nil {
			return err
		}
		if row, err = row.Update().SetStatus(running).Save(ctx); err != nil {
			return err
		}
		r = &managedRun{store: st, about: about, scan: row, project: of}
		return nil
	})
	return r, err
}

// lockManaged reads a managed scan and locks its scan until the end of the transaction.
func lockManaged(ctx context.Context, st *store.Store, tx *ent.Tx, scanID int64) (*ent.Scan, *ent.ManagedScan, error) {
	query := tx.Scan.Query().Where(scan.ID(scanID))
	if st.Postgres() {
		query.ForUpdate()
	}
	row, err := query.Only(ctx)
	if err != nil {
		return nil, nil, err
	}
	about, err := tx.ManagedScan.Query().Where(managedscan.ScanID(scanID)).Only(ctx)
	return row, about, err
}

// supersede cancels the earlier scans of the same ref that still run: they search an older commit.
func supersede(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, row *ent.Scan) error {
	older, err := tx.Scan.Query().Where(scan.ProjectID(row.ProjectID), scan.Status(running), scan.Ref(row.Ref), scan.IDLT(row.ID), scan.UniqueIDIsNil()).All(ctx)
	if err != nil {
		return err
	}
	for _, one := range older {
		about, err := tx.ManagedScan.Query().Where(managedscan.ScanID(one.ID)).Only(ctx)
		if ent.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = endManaged(ctx, tx, queue, one, about, scansv1.ScanStatus_SCAN_STATUS_CANCELLED, fmt.Sprintf("scan %d of the same ref took its place", row.ID))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endManaged ends a scan without results, and shows that on its pull request.
func endManaged(
	ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, row *ent.Scan, about *ent.ManagedScan, as scansv1.ScanStatus, problem string,
) error {
	now := store.Now()
	if err := row.Update().SetStatus(as.String()).SetCompletedAt(max(now, row.StartedAt+1)).Exec(ctx); err != nil {
		return err
	}
	err := about.Update().ClearWaitingFor().SetLeaseUntil(0).SetProblem(problem).SetLog(addLine(about.Log, "ended: "+problem)).Exec(ctx)
	if err != nil || row.PullRequest == nil {
		return err
	}
	of, err := tx.Project.Query().Where(project.ID(row.ProjectID)).Only(ctx)
	if err != nil {
		return err
	}
	return feedback.Scanned(ctx, tx, queue, of, *row.PullRequest)
}

// mine reports whether this node still runs the scan, whose rows it locks.
func (r *managedRun) mine(ctx context.Context, tx *ent.Tx) (*ent.Scan, *ent.ManagedScan, error) {
	row, about, err := lockManaged(ctx, r.store, tx, r.scan.ID)
	if ent.IsNotFound(err) || err == nil && (row.Status != running || about.Claims != r.about.Claims) {
		err = errNotMine
	}
	return row, about, err
}

// write changes the scan, unless it is no longer this node's.
func (r *managedRun) write(ctx context.Context, change func(context.Context, *ent.Tx, *ent.Scan, *ent.ManagedScan) error) error {
	return r.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, about, err := r.mine(ctx, tx)
		if err != nil {
			return err
		}
		return change(ctx, tx, row, about)
	})
}

// note adds a line to the log of the scan, and shows that the node is alive.
func (r *managedRun) note(ctx context.Context, format string, args ...any) error {
	return r.write(ctx, func(ctx context.Context, _ *ent.Tx, _ *ent.Scan, about *ent.ManagedScan) error {
		return about.Update().SetLog(addLine(about.Log, fmt.Sprintf(format, args...))).
			SetLeaseUntil(store.Now() + managedLease.Microseconds()).Exec(ctx)
	})
}

// addLine adds a line to a log. Of a log that is too long, the beginning stays.
func addLine(log, line string) string {
	line = time.Now().UTC().Format(time.TimeOnly) + " " + strings.Join(strings.Fields(line), " ") + "\n"
	if len(log)+len(line) > maxManagedLog {
		return log
	}
	return log + line
}

// keepAlive renews the lease until ctx ends. It calls stop if the scan is no longer this node's.
func (r *managedRun) keepAlive(ctx context.Context, stop context.CancelCauseFunc) {
	ticker := time.NewTicker(managedLease / 6)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := r.write(ctx, func(ctx context.Context, _ *ent.Tx, _ *ent.Scan, about *ent.ManagedScan) error {
			return about.Update().SetLeaseUntil(store.Now() + managedLease.Microseconds()).Exec(ctx)
		})
		if errors.Is(err, errNotMine) {
			stop(errNotMine)
			return
		}
	}
}

// release lets the scan wait for its next attempt. It does not count as a node that died.
func (r *managedRun) release(ctx context.Context, why string) error {
	return r.write(ctx, func(ctx context.Context, _ *ent.Tx, row *ent.Scan, about *ent.ManagedScan) error {
		if err := row.Update().SetStatus(pending).Exec(ctx); err != nil {
			return err
		}
		return about.Update().SetLeaseUntil(0).SetClaims(about.Claims - 1).SetLog(addLine(about.Log, why)).Exec(ctx)
	})
}

// fail ends the scan without results.
func (r *managedRun) fail(ctx context.Context, queue *jobs.Jobs, problem string) error {
	return r.write(ctx, func(ctx context.Context, tx *ent.Tx, row *ent.Scan, about *ent.ManagedScan) error {
		return endManaged(ctx, tx, queue, row, about, scansv1.ScanStatus_SCAN_STATUS_ERROR, problem)
	})
}

func (r *managedRun) projectID() int64 { return r.project.ID }

func (*managedRun) ofCode() bool { return true }

// open makes the scan the one that receives results.
func (r *managedRun) open(ctx context.Context, tx *ent.Tx, u *upload, of *ent.Project) (*ent.Scan, error) {
	row, about, err := r.mine(ctx, tx)
	if err != nil {
		return nil, err
	}
	meta, err := proto.Marshal(managed.Meta(of, u.ref, u.origin.commit, causeOf(about)))
	if err != nil {
		return nil, err
	}
	if err := about.Update().SetLeaseUntil(0).Exec(ctx); err != nil {
		return nil, err
	}
	return row.Update().SetCommit(u.origin.commit).SetMeta(meta).SetNillableCommitTime(commitTime(u.origin.commitTime, store.Now())).Save(ctx)
}

// complete ends the log of the scan.
func (r *managedRun) complete(ctx context.Context, tx *ent.Tx, stored *scansv1.UploadReportResponse) error {
	about, err := tx.ManagedScan.Query().Where(managedscan.ID(r.about.ID)).Only(ctx)
	if err != nil {
		return err
	}
	return about.Update().SetLog(addLine(about.Log, fmt.Sprintf("completed: %d findings are new, %d were known, %d are fixed",
		stored.GetCreated(), stored.GetUpdated()+stored.GetUnchanged(), stored.GetFixed()))).Exec(ctx)
}

// cancelManaged cancels a scan that has not ended.
func cancelManaged(ctx context.Context, st *store.Store, queue *jobs.Jobs, scanID int64) error {
	return st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, about, err := lockManaged(ctx, st, tx, scanID)
		if ent.IsNotFound(err) {
			return apierr.NotFound("managed scan %d not found", scanID)
		}
		if err != nil {
			return err
		}
		if row.Status != pending && row.Status != running {
			return apierr.FailedPrecondition("scan %d has ended already, with the status %s", scanID, row.Status)
		}
		return endManaged(ctx, tx, queue, row, about, scansv1.ScanStatus_SCAN_STATUS_CANCELLED, "it was cancelled")
	})
}
