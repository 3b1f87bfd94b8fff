package scm

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

const (
	// unsubscribeAttempts spread over about an hour: a webhook that stays behind is answered 404 and does no harm.
	unsubscribeAttempts = 8
	// syncAttempts are for hosts that fail; what the caller must put right ends the task at once.
	syncAttempts = 6
	// syncTimeout is for all pages of the largest organizations.
	syncTimeout = 30 * time.Minute
	// rateLimitWait is how long we stay away from a host that does not say until when its limit holds.
	rateLimitWait = 5 * time.Minute
	// rateLimitPatience is how long after its beginning a task still waits for a limit to end.
	rateLimitPatience = 24 * time.Hour
)

// Background is what this package's configurations need done when nobody waits.
func (c *Connections) Background(log *slog.Logger) jobs.Work {
	return jobs.Work{Register: func(workers *river.Workers) {
		jobs.AddWorker(workers, &unsubscribeWorker{connections: c, log: log})
		jobs.AddWorker(workers, &syncWorker{connections: c, log: log})
	}}
}

// unsubscribeArgs delete webhooks of a configuration that is gone or has moved on. The credential is the sealed one of
// the row, which may not exist any more.
type unsubscribeArgs struct {
	DeploymentID int64    `json:"deployment_id"`
	ConfigID     int64    `json:"config_id"`
	Type         string   `json:"type"`
	BaseURL      string   `json:"base_url"`
	Namespace    string   `json:"namespace"`
	SealedToken  []byte   `json:"sealed_token,omitempty"`
	AppID        *int64   `json:"app_id,omitempty"`
	RemoteIDs    []string `json:"remote_ids"`
}

// Kind is the name in the queue.
func (unsubscribeArgs) Kind() string { return "scm_unsubscribe" }

// InsertOpts bound the tries.
func (unsubscribeArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: unsubscribeAttempts}
}

// enqueueUnsubscribe has the webhooks of a configuration deleted at the host after the commit.
func (s *Configurations) enqueueUnsubscribe(ctx context.Context, row *ent.ScmConfig) error {
	if len(row.Subscriptions) == 0 {
		return nil
	}
	args := unsubscribeArgs{
		DeploymentID: row.DeploymentID, ConfigID: row.ID, Type: row.Type, BaseURL: row.BaseURL, Namespace: row.Namespace,
		SealedToken: row.AccessToken, AppID: row.ScmAppID,
	}
	for _, subscription := range row.Subscriptions {
		args.RemoteIDs = append(args.RemoteIDs, subscription.RemoteID)
	}
	return s.jobs.Enqueue(ctx, args, nil)
}

type unsubscribeWorker struct {
	river.WorkerDefaults[unsubscribeArgs]
	connections *Connections
	log         *slog.Logger
}

// Work deletes the webhooks.
func (w *unsubscribeWorker) Work(ctx context.Context, job *river.Job[unsubscribeArgs]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	h, err := w.connections.OpenWith(ctx, connect.Credentials{
		ConfigID: job.Args.ConfigID, DeploymentID: job.Args.DeploymentID, Type: connect.TypeOf(job.Args.Type), BaseURL: job.Args.BaseURL,
		Namespace: job.Args.Namespace, SealedToken: job.Args.SealedToken, AppID: job.Args.AppID,
	})
	for _, id := range job.Args.RemoteIDs {
		if err == nil {
			err = h.Unsubscribe(ctx, job.Args.Namespace, id)
		}
	}
	if err != nil && !passing(err) {
		w.log.InfoContext(ctx, "a webhook stays at its host, which does not let us delete it", "config_id", job.Args.ConfigID, "error", err)
	}
	return retry(err, job.CreatedAt)
}

// passing reports whether an error may be gone the next time.
func passing(err error) bool {
	return connect.ErrorText(err) == "" || host.Is(err, host.RateLimited) || host.Is(err, host.TimedOut) || host.Is(err, host.Unreachable) || host.Is(err, host.Failed)
}

// retry tells the queue what to do about a host's error: try again, later when the host says when, or never.
func retry(err error, begun time.Time) error {
	var limit *host.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &limit) && limit.Kind == host.RateLimited && time.Since(begun) < rateLimitPatience:
		return river.JobSnooze(limitWait(limit))
	case passing(err):
		return err
	}
	return river.JobCancel(err)
}

// limitWait is how long to stay away from a host whose limit is used up.
func limitWait(limit *host.Error) time.Duration {
	if limit.Reset.IsZero() {
		return rateLimitWait
	}
	return min(max(time.Until(limit.Reset), time.Second), time.Hour)
}
