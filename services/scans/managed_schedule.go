package scans

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/blocking"
	"github.com/palisade/palisade/services/scans/managed"
	"github.com/palisade/palisade/services/scm/connect"
)

const (
	// scheduleInterval is how often due full scans are searched.
	scheduleInterval = time.Minute
	// scheduleBatch is how many of them one run starts. More wait for the next run.
	scheduleBatch = 500
	// jitter is the part of the time between scans that is random, so that the scans of many projects spread.
	jitter = 0.1
)

// scheduledScans is the periodic job that starts the full scans that are due.
type scheduledScans struct{}

// Kind implements river.JobArgs.
func (scheduledScans) Kind() string { return "scheduled_managed_scans" }

// InsertOpts prevents runs from piling up while no node works.
func (scheduledScans) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type scheduleWorker struct {
	river.WorkerDefaults[scheduledScans]
	ManagedOptions
}

// due selects the projects whose full scan is due.
func due(now int64) predicate.Project {
	return project.And(project.ManagedFullScan(true), project.ArchivedAtIsNil(),
		project.Or(project.NextFullScanAtIsNil(), project.NextFullScanAtLTE(now)))
}

// Work starts due scans of all deployments.
func (w *scheduleWorker) Work(ctx context.Context, _ *river.Job[scheduledScans]) error {
	rows, err := w.Store.Reader.Project.Query().Where(due(store.Now())).Order(ent.Asc(project.FieldNextFullScanAt)).Limit(scheduleBatch).
		All(tenant.System(ctx))
	if err != nil {
		return err
	}
	configs := map[int64][]*ent.ScmConfig{}
	for _, row := range rows {
		ctx := tenant.NewContext(ctx, row.DeploymentID)
		if _, known := configs[row.DeploymentID]; !known {
			if configs[row.DeploymentID], err = w.Store.Reader.ScmConfig.Query().Order(ent.Asc(scmconfig.FieldID)).All(ctx); err != nil {
				return err
			}
		}
		if failed := w.start(ctx, row, configs[row.DeploymentID]); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// start plans the next scan of a project, and requests this one if its code can be read.
func (w *scheduleWorker) start(ctx context.Context, row *ent.Project, configs []*ent.ScmConfig) error {
	config, _, _ := connect.Reached(configs, row)
	ref := blocking.Primary(row)
	return w.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now := store.Now()
		next := now + int64(float64(w.Every.Microseconds())*(1-jitter/2+jitter*rand.Float64())) //nolint:gosec // spreads load
		n, err := tx.Project.Update().Where(project.ID(row.ID), due(now)).SetNextFullScanAt(next).Save(ctx)
		if err != nil || n == 0 || config == nil || ref == "" || connect.Callable(config) != nil {
			return err
		}
		_, err = managed.Add(ctx, w.Store, tx, jobs.FromContext(ctx), managed.Request{
			Project: row, ConfigID: config.ID, Ref: ref, Cause: scansv1.ManagedScanCause_MANAGED_SCAN_CAUSE_SCHEDULE,
		})
		return err
	})
}
