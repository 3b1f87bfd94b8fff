package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// onceTag marks the jobs of OnceWaiting.
const onceTag = "once-waiting"

// OnceWaiting makes a job unique, by its kind and arguments, while it waits: whatever causes it in the meantime is done
// by that one run. What comes after the run has begun may have been missed by it, and enqueues another. Meant for the
// InsertOpts method of job arguments.
func OnceWaiting() river.InsertOpts {
	return river.InsertOpts{
		Tags: []string{onceTag},
		UniqueOpts: river.UniqueOpts{
			ByArgs: true,
			ByState: []rivertype.JobState{
				rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
				rivertype.JobStateRunning, // River insists on it; runner takes it back
			},
		},
	}
}

// runner is around every run of a job.
type runner struct {
	river.MiddlewareDefaults
	jobs *Jobs
}

type jobsKey struct{}

// FromContext returns the queue whose job runs, so that it can cause others; nil outside of a job.
func FromContext(ctx context.Context) *Jobs {
	j, _ := ctx.Value(jobsKey{}).(*Jobs)
	return j
}

// Audited makes what jobs change part of the audit trail: of those that call audit.Change. It is called before Start.
func (j *Jobs) Audited(trail *audit.Trail) { j.trail = trail }

// Work lets the next job of OnceWaiting in, gives the place of this one back at its end, and gives what the job logs
// and changes the job's name.
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
	if slices.Contains(job.Tags, onceTag) {
		_, writer := r.jobs.store.DB()
		short, cancel := context.WithTimeout(ctx, lateTime) // the job's own time has not begun
		defer cancel()
		if _, err := writer.ExecContext(short, "UPDATE river_job SET unique_key = NULL WHERE id = "+strconv.FormatInt(job.ID, 10)); err != nil {
			return fmt.Errorf("give up being the only %s: %w", job.Kind, err)
		}
	}
	return doInner(ctx)
}
