package scm

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmapp"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/webhookevent"
	"github.com/palisade/palisade/ent/webhookreceipt"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/webhook"
)

const (
	// expiryInterval is how often expired rows are deleted.
	expiryInterval = time.Hour
	// webhookAttempts span two to three hours. A later reply is of no use.
	webhookAttempts = 9
)

// IncomingBackground processes events of incoming webhooks, and deletes old events and expired application requests.
func IncomingBackground(c *Connections, log *slog.Logger) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			actions := &eventActions{Connections: c, log: log}
			jobs.AddWorker(workers, &drainWorker{eventActions: actions, running: map[int64]bool{}})
			jobs.AddWorker(workers, &eventWorker{eventActions: actions})
			jobs.AddWorker(workers, &replyWorker{Connections: c, log: log})
			jobs.AddWorker(workers, &sweepWorker{store: c.store})
			jobs.AddWorker(workers, &expiryWorker{store: c.store})
		},
		Periodic: []*river.PeriodicJob{jobs.Every(expiryInterval, expiryArgs{}), jobs.Every(eventsSweep, sweepArgs{})},
		Queues:   []jobs.Queue{{Name: eventsQueue, Workers: eventsWorkers, Poll: eventsPoll}},
	}
}

// eventArgs is an event and its sender: a configuration or an application.
type eventArgs struct {
	DeploymentID int64         `json:"deployment_id"`
	ConfigID     int64         `json:"config_id,omitempty"`
	AppID        int64         `json:"app_id,omitempty"`
	Host         webhook.Host  `json:"host"`
	BaseURL      string        `json:"base_url"`
	Event        webhook.Event `json:"event"`
}

// Kind is the name in the queue.
func (eventArgs) Kind() string { return "scm_webhook" }

// InsertOpts limits the attempts.
func (eventArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: webhookAttempts} }

// eventActions performs the actions of events.
type eventActions struct {
	*Connections
	log *slog.Logger
}

// step is a part of a transaction.
type step func(ctx context.Context, tx *ent.Tx) error

// act performs an event's effect. over runs first in the same transaction, because it locks the event.
func (w *eventActions) act(ctx context.Context, args eventArgs, over step) error {
	effect, login, err := w.effect(ctx, args)
	if err != nil {
		return err
	}
	return w.store.Write(asHost(ctx, args, login), func(ctx context.Context, tx *ent.Tx) error {
		if err := over(ctx, tx); err != nil {
			return err
		}
		if err := w.seen(ctx, tx, args); err != nil {
			return err
		}
		if err := w.identify(ctx, tx, args); err != nil || effect == nil {
			return err
		}
		return ignoreMissing(effect(ctx, tx))
	})
}

// effect makes the needed requests to the host. It returns the event's effect, nil for none, and the login of the user
// at the host who caused it.
func (w *eventActions) effect(ctx context.Context, args eventArgs) (effect step, login string, err error) {
	switch args.Event.Kind {
	case webhook.Pushed:
		effect, err = w.pushed(ctx, args)
	case webhook.Closed:
		effect, err = w.closed(ctx, args)
	case webhook.Commented:
		effect, err = w.commented(ctx, args)
		login = args.Event.Comment.Author
	case webhook.Changed:
		effect, err = w.changed(ctx, args)
	case webhook.Deleted:
		effect, err = w.deleted(ctx, args)
	case webhook.BranchDeleted:
		effect, err = w.branchDeleted(ctx, args)
	case webhook.Installed:
		effect = w.installed(args)
	case webhook.Other:
	}
	return effect, login, err
}

// eventWorker processes events that the previous version enqueued one by one.
type eventWorker struct {
	river.WorkerDefaults[eventArgs]
	*eventActions
}

// Work processes the event.
func (w *eventWorker) Work(ctx context.Context, job *river.Job[eventArgs]) error {
	args := job.Args
	if args.Event.At.IsZero() {
		args.Event.At = job.CreatedAt
	}
	nothing := func(context.Context, *ent.Tx) error { return nil }
	return connect.Retry(w.act(tenant.NewContext(ctx, args.DeploymentID), args, nothing), job.CreatedAt)
}

// openSender opens the host as the sender of a webhook: a configuration, or the application's installation that the
// webhook named. It returns nil if the sender was deleted.
func (c *Connections) openSender(ctx context.Context, configID, appID, installationID int64) (host.Host, error) {
	if configID != 0 {
		config, err := c.store.Reader.ScmConfig.Query().Where(scmconfig.ID(configID)).Only(ctx)
		if ent.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return c.Open(ctx, config)
	}
	app, err := c.store.Reader.ScmApp.Query().Where(scmapp.ID(appID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	opened, err := c.OpenApp(app)
	if err != nil {
		return nil, err
	}
	if installationID == 0 {
		return opened.InstallationIn(ctx, app.Namespace)
	}
	return opened.Installation(ctx, installationID)
}

type expiryArgs struct{}

// Kind is the name in the queue.
func (expiryArgs) Kind() string { return "scm_expiry" }

// InsertOpts keep runs from piling up while no node works.
func (expiryArgs) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type expiryWorker struct {
	river.WorkerDefaults[expiryArgs]
	store *store.Store
}

// Work deletes old events, old receipts and expired requests of all deployments.
func (w *expiryWorker) Work(ctx context.Context, _ *river.Job[expiryArgs]) error {
	return w.store.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		now := time.Now()
		if _, err := tx.WebhookEvent.Delete().Where(webhookevent.ReceivedAtLT(store.Micros(now.Add(-receiptLife)))).Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.WebhookReceipt.Delete().Where(webhookreceipt.ReceivedAtLT(store.Micros(now.Add(-receiptLife)))).Exec(ctx); err != nil {
			return err
		}
		_, err := tx.ScmApp.Delete().Where(scmapp.State(appPending), scmapp.ExpiresAtLT(store.Micros(now))).Exec(ctx)
		return err
	})
}
