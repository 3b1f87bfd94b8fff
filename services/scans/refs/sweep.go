package refs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
)

const (
	// sweepInterval is how often refs are checked. Webhooks tell of closed pull requests at once; this is for hosts
	// without them.
	sweepInterval = 6 * time.Hour
	// tidyTimeout limits the work for one deployment. The next sweep continues.
	tidyTimeout = 30 * time.Minute
	// refsQueue is a queue of its own, so that nodes of earlier versions do not claim these jobs during an upgrade.
	refsQueue   = "refs"
	refsWorkers = 2
	// projectsAtOnce is how many projects are looked at together.
	projectsAtOnce = 500
)

// Ages are the ages of a ref's last scan from which its findings are removed; 0 means never.
type Ages struct {
	// Detached is for checkouts without a branch, Stale for all other refs but the primary branch.
	Detached, Stale time.Duration
}

// Background returns the jobs that tidy refs.
func Background(t *Tidier) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &sweepWorker{store: t.store})
			jobs.AddWorker(workers, t)
			jobs.AddWorker(workers, NewRenamer(t.store, t.log))
		},
		Queues:   []jobs.Queue{{Name: refsQueue, Workers: refsWorkers}},
		Periodic: []*river.PeriodicJob{jobs.Every(sweepInterval, sweepArgs{}), jobs.Every(renameInterval, renameArgs{})},
	}
}

// once enqueues a job that waits at most once.
func once() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = refsQueue
	return opts
}

// sweepArgs is the periodic job that enqueues the jobs of all deployments.
type sweepArgs struct{}

// Kind implements river.JobArgs.
func (sweepArgs) Kind() string { return "sweep_refs" }

// InsertOpts prevents runs from piling up while no node works.
func (sweepArgs) InsertOpts() river.InsertOpts { return once() }

type sweepWorker struct {
	river.WorkerDefaults[sweepArgs]
	store *store.Store
}

// Work enqueues the jobs. A job that waits is not added again.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[sweepArgs]) error {
	ids, err := w.store.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldID)).IDs(tenant.System(ctx))
	for _, id := range ids {
		err = errors.Join(err, w.store.Write(tenant.NewContext(ctx, id), func(ctx context.Context, _ *ent.Tx) error {
			return jobs.FromContext(ctx).Enqueue(ctx, tidyArgs{DeploymentID: id}, nil)
		}))
	}
	return err
}

// tidyArgs is the job that tidies the refs of a deployment.
type tidyArgs struct {
	DeploymentID int64 `json:"deployment_id"`
}

// Kind implements river.JobArgs.
func (tidyArgs) Kind() string { return "tidy_refs" }

// InsertOpts keeps at most one waiting job per deployment.
func (tidyArgs) InsertOpts() river.InsertOpts {
	opts := once()
	opts.MaxAttempts = 3 // the next sweep starts again
	return opts
}

// Tidier tidies the refs of a deployment.
type Tidier struct {
	river.WorkerDefaults[tidyArgs]
	store *store.Store
	hosts *connect.Hosts
	ages  Ages
	log   *slog.Logger
}

// NewTidier tidies refs in the store, with what the source-code hosts tell.
func NewTidier(st *store.Store, hosts *connect.Hosts, ages Ages, log *slog.Logger) *Tidier {
	return &Tidier{store: st, hosts: hosts, ages: ages, log: log}
}

// Timeout limits a run.
func (*Tidier) Timeout(*river.Job[tidyArgs]) time.Duration { return tidyTimeout }

// Work implements river.Worker.
func (t *Tidier) Work(ctx context.Context, job *river.Job[tidyArgs]) error {
	return t.Tidy(tenant.NewContext(ctx, job.Args.DeploymentID))
}

// Tidy tidies the refs of the context's deployment: first what the database tells, then what the hosts tell.
func (t *Tidier) Tidy(ctx context.Context) error {
	var pulls []openRef
	for after := int64(0); ; {
		projects, err := t.store.Reader.Project.Query().Where(project.IDGT(after)).Order(ent.Asc(project.FieldID)).Limit(projectsAtOnce).All(ctx)
		if err != nil {
			return err
		}
		if len(projects) == 0 {
			break
		}
		after = projects[len(projects)-1].ID
		open, err := t.openRefs(ctx, projects)
		if err != nil {
			return err
		}
		for _, ref := range open {
			if why, stale := t.stale(ref); stale {
				if err := t.remove(ctx, ref, nil, why); err != nil {
					return err
				}
			} else if ref.pullRequest() != 0 {
				pulls = append(pulls, ref)
			}
		}
	}
	return t.tidyPulls(ctx, pulls)
}
