package jobs

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// onceTag marks the jobs of OnceWaiting.
const onceTag = "once-waiting"

// OnceWaiting makes a job unique by kind and arguments while it waits: one run covers all causes until it begins. A
// cause that arrives after that enqueues another job, because the run may have missed it. Use it in the InsertOpts
// method of job arguments.
func OnceWaiting() river.InsertOpts {
	return river.InsertOpts{
		Tags: []string{onceTag},
		UniqueOpts: river.UniqueOpts{
			ByArgs: true,
			ByState: []rivertype.JobState{
				rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
				rivertype.JobStateRunning, // River requires this state; a claim removes the unique key
			},
		},
	}
}

// runner is middleware around every run.
type runner struct {
	river.MiddlewareDefaults
	jobs *Jobs
}

type jobsKey struct{}

// FromContext returns the queue of the running job, which can enqueue more jobs. It is nil outside a job.
func FromContext(ctx context.Context) *Jobs {
	j, _ := ctx.Value(jobsKey{}).(*Jobs)
	return j
}

// Audited adds the changes of jobs that call audit.Change to the audit trail. Call it before Start.
func (j *Jobs) Audited(trail *audit.Trail) { j.trail = trail }

// Work frees the job's worker slot when it ends, and adds the job to its log records and audit entries.
func (r *runner) Work(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) error {
	defer r.jobs.queues[job.Queue].end(job.ID)
	ctx = context.WithValue(store.ForJob(ctx), jobsKey{}, r.jobs)
	if r.jobs.trail != nil {
		ctx, _ = r.jobs.trail.Record(ctx, audit.Call{
			Actor:  audit.Actor{Kind: audit.KindJob, ID: job.ID, Name: job.Kind},
			Method: job.Kind, RequestID: "job-" + strconv.FormatInt(job.ID, 10),
		})
	}
	ctx = telemetry.WithAttrs(ctx, slog.String("job", job.Kind), slog.Int64("job_id", job.ID))
	return doInner(ctx)
}
