package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/mailserver"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/notifications/channel"
)

// Receivers of support cases.
const (
	supportEmail   = "email"
	supportWebhook = "webhook"
)

const (
	supportQueue   = "support"
	supportWorkers = 2
)

// supportReceivers are the receivers that the operator has set up.
func supportReceivers(cfg config.Config) (list []string) {
	if cfg.SupportEmail != "" {
		list = append(list, supportEmail)
	}
	if cfg.SupportWebhook != "" {
		list = append(list, supportWebhook)
	}
	return list
}

// forwardArgs is the job that forwards a case to one receiver, so that a receiver that fails does not delay the other.
type forwardArgs struct {
	DeploymentID int64  `json:"deployment_id"`
	CaseID       int64  `json:"case_id"`
	Receiver     string `json:"receiver"`
}

// Kind is the name in the queue.
func (forwardArgs) Kind() string { return "forward_support_case" }

// InsertOpts sets the queue. River's attempts span three weeks.
func (forwardArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: supportQueue} }

// supportBackground is the work of the queue.
func supportBackground(cfg config.Config, st *store.Store, guard *egress.Guard, log *slog.Logger) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &forwardWorker{cfg: cfg, store: st, guard: guard, log: log})
		},
		Queues: []jobs.Queue{{Name: supportQueue, Workers: supportWorkers}},
	}
}

type forwardWorker struct {
	river.WorkerDefaults[forwardArgs]
	cfg   config.Config
	store *store.Store
	guard *egress.Guard
	log   *slog.Logger
}

// Work sends a case. A repeated message has the same id, by which receivers find it.
func (w *forwardWorker) Work(ctx context.Context, job *river.Job[forwardArgs]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	row, err := w.store.Reader.SupportCase.Get(ctx, job.Args.CaseID)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	sender, err := w.open(job.Args.Receiver)
	if err != nil || sender == nil {
		return err
	}
	message, err := w.message(ctx, row)
	if err != nil {
		return err
	}
	_, err = sender.Send(ctx, message)
	var failed *channel.Error
	if !errors.As(err, &failed) {
		return err
	}
	w.log.WarnContext(ctx, "a support case could not be forwarded", "receiver", job.Args.Receiver, "case", row.Number,
		"deployment_id", row.DeploymentID, "reason", failed.Public, telemetry.Cause(channel.Cause(err)), "final", failed.Permanent)
	switch {
	case failed.Permanent:
		return river.JobCancel(failed)
	case failed.RetryAfter > 0:
		return river.JobSnooze(min(failed.RetryAfter, time.Hour))
	}
	return failed
}

// open returns the sender for a receiver; nil if the operator has removed it since.
func (w *forwardWorker) open(receiver string) (channel.Sender, error) {
	switch {
	case receiver == supportEmail && w.cfg.SupportEmail != "":
		server, err := mailserver.Parse(w.cfg.SMTP, w.cfg.SMTPFrom)
		if err != nil {
			return nil, err
		}
		return channel.Open(channel.Email, map[string]string{"to": w.cfg.SupportEmail}, w.guard, server)
	case receiver == supportWebhook && w.cfg.SupportWebhook != "":
		return channel.Open(channel.Webhook, map[string]string{"url": w.cfg.SupportWebhook, "secret": w.cfg.SupportWebhookSecret}, w.guard, mailserver.Config{})
	}
	return nil, nil
}

// message is a case in both forms.
func (w *forwardWorker) message(ctx context.Context, row *ent.SupportCase) (channel.Message, error) {
	deployment, err := w.store.Reader.Deployment.Query().Only(ctx)
	if err != nil {
		return channel.Message{}, err
	}
	event := fmt.Sprintf("support-case-%d-%d", row.ID, row.CreatedAt) // the time differs between installations with one mailbox
	payload, err := json.Marshal(map[string]any{
		"event": "support_case", "eventId": event, "supportCase": json.RawMessage(showCase(row).AppendJSON(nil)),
		"deployment": map[string]any{"id": deployment.ID, "slug": deployment.Slug, "name": deployment.Name},
	})
	text := fmt.Sprintf("%s\n\nCase %d of %s (%s)\nType: %s\nPriority: %s\nAnswer to: %s\n\n"+
		"Take it: palisade support update %d --status in_progress --owner YOU\n",
		row.Description, row.Number, deployment.Name, deployment.Slug, row.Kind, row.Priority, row.Email, row.Number)
	return channel.Message{
		Kind: "support_case", EventID: event, Payload: payload, At: store.Time(row.CreatedAt), ReplyTo: row.Email,
		Subject: fmt.Sprintf("[%s #%d] %s", deployment.Slug, row.Number, row.Subject), Text: text,
	}, err
}
