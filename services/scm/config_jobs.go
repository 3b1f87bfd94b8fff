package scm

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/scm/connect"
)

const (
	// unsubscribeAttempts span about an hour. A webhook that cannot be deleted gets 404 and is harmless.
	unsubscribeAttempts = 8
	// syncTimeout is enough for all pages of the largest organizations.
	syncTimeout = 30 * time.Minute
)

// Background returns the background work of configurations.
func (c *Connections) Background(log *slog.Logger) jobs.Work {
	return jobs.Work{Register: func(workers *river.Workers) {
		jobs.AddWorker(workers, &unsubscribeWorker{connections: c, log: log})
		jobs.AddWorker(workers, &syncWorker{connections: c, log: log})
	}}
}

// unsubscribeArgs is the job that deletes webhooks of a deleted or moved configuration. It has the sealed credential of
// the row, which may be gone.
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

// InsertOpts limits the attempts.
func (unsubscribeArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: unsubscribeAttempts}
}

// enqueueUnsubscribe deletes a configuration's webhooks at the host after the commit.
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
	if err != nil && !connect.Temporary(err) {
		w.log.InfoContext(ctx, "a webhook was not deleted: its host refuses it", "config_id", job.Args.ConfigID, "error", err)
	}
	return connect.Retry(err, job.CreatedAt)
}
