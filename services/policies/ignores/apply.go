package ignores

import (
	"context"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	policy "github.com/palisade/palisade/services/policies/pathignore"
)

const (
	// window is the number of findings, of all deployments, whose part is read at once, and applyBatch the number of
	// findings that one transaction changes.
	window     = 5000
	applyBatch = 1000
	// projectsAtOnce is the number of projects whose imports the job waits for together.
	projectsAtOnce = 100
	// applyTimeout is enough for many millions of findings. A run that is aborted keeps its progress.
	applyTimeout = time.Hour
)

// Background returns the job that applies changed patterns.
func Background(st *store.Store) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) { jobs.AddWorker(workers, &applyWorker{store: st}) },
		Queues:   []jobs.Queue{{Name: policy.Queue, Workers: 2}},
	}
}

type applyWorker struct {
	river.WorkerDefaults[policy.Apply]
	store *store.Store
}

// Timeout limits a run.
func (*applyWorker) Timeout(*river.Job[policy.Apply]) time.Duration { return applyTimeout }

// Work applies the patterns to all findings of the deployment. What an earlier run has done takes no writes.
//
// A run of older patterns never overwrites a newer one, because each transaction reads the patterns after it has locked
// the projects. So runs of one deployment may overlap.
func (w *applyWorker) Work(ctx context.Context, job *river.Job[policy.Apply]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	if err := w.awaitImports(ctx); err != nil {
		return err
	}
	return (&applier{store: w.store, deploymentID: job.Args.DeploymentID}).walk(ctx)
}

// concerned selects the findings that a policy mutes, and those that it may mute.
func concerned(s *entsql.Selector) {
	s.Where(entsql.Or(
		entsql.And(entsql.EQ(s.C(finding.FieldState), lifecycle.Muted), entsql.NotNull(s.C(finding.FieldIgnoredByPattern))),
		entsql.And(entsql.EQ(s.C(finding.FieldState), lifecycle.Unresolved), entsql.NotNull(s.C(finding.FieldFilePath))),
	))
}

// awaitImports waits for imports that began before the patterns changed, and may have used the previous ones: each
// holds the lock of its project. Their new findings may have ids that a walk has passed. SQLite has only one writer.
func (w *applyWorker) awaitImports(ctx context.Context) error {
	if !w.store.Postgres() {
		return nil
	}
	for after, more := int64(0), true; more; {
		err := w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			ids, err := tx.Project.Query().Where(project.IDGT(after)).Order(ent.Asc(project.FieldID)).Limit(projectsAtOnce).ForUpdate().IDs(ctx)
			if more = len(ids) == projectsAtOnce; len(ids) > 0 {
				after = ids[len(ids)-1]
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// applier applies patterns to findings.
type applier struct {
	store        *store.Store
	deploymentID int64
}

// walk goes over the findings in windows of ids. A limit on the concerned ones instead would let a planner without
// statistics read all findings of the deployment for each batch.
func (a *applier) walk(ctx context.Context) error {
	for after := int64(0); ; {
		last, err := a.windowEnd(ctx, after)
		if err != nil || last == 0 {
			return err
		}
		if err := a.apply(ctx, finding.IDGT(after), finding.IDLTE(last)); err != nil {
			return err
		}
		after = last
	}
}

// windowEnd returns the last id of a window; 0 if there are no more findings. It counts the findings of all
// deployments, so that the primary key is the only index for it.
func (a *applier) windowEnd(ctx context.Context, after int64) (last int64, err error) {
	ctx = tenant.System(ctx)
	more := a.store.Reader.Finding.Query().Where(finding.IDGT(after))
	ids, err := more.Clone().Order(ent.Asc(finding.FieldID)).Offset(window - 1).Limit(1).IDs(ctx)
	if err == nil && len(ids) == 0 {
		ids, err = more.Order(ent.Desc(finding.FieldID)).Limit(1).IDs(ctx)
	}
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[0], nil
}

// apply decides about the findings of a window.
func (a *applier) apply(ctx context.Context, window ...predicate.Finding) error {
	rows, err := findingsOf(ctx, a.store.Reader, append(window, concerned)...)
	if err != nil {
		return err
	}
	changes, err := changesOf(ctx, a.store.Reader, rows)
	if err != nil {
		return err
	}
	for ids := range slices.Chunk(changes.ids(), applyBatch) {
		if err := a.write(ctx, ids); err != nil {
			return err
		}
	}
	return nil
}

// write decides again under the locks of the projects, and writes.
func (a *applier) write(ctx context.Context, ids []int64) error {
	return a.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		named := store.WithIDs[predicate.Finding](ids)
		if _, err := triage.LockProjects(ctx, a.store, tx, named); err != nil {
			return err
		}
		rows, err := findingsOf(ctx, tx.Client(), concerned, named)
		if err != nil {
			return err
		}
		changes, err := changesOf(ctx, tx.Client(), rows)
		if err != nil {
			return err
		}
		return changes.store(ctx, a.store, tx, a.deploymentID)
	})
}
