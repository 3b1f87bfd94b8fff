package notifications

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/notificationwebhook"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/mailserver"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/channel"
	"github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/notifications/slackapp"
)

// keyWebhook is the config key that names a notification webhook.
const keyWebhook = "webhook_id"

// Senders creates the senders of rules.
type Senders struct {
	store   *store.Store
	keyring *secret.Keyring
	guard   *egress.Guard
	mail    mailserver.Config
	slack   *slackapp.App
	causes  *causes
}

// NewSenders returns senders that connect through the guard. log gets why messages could not be sent.
func NewSenders(
	st *store.Store, keyring *secret.Keyring, guard *egress.Guard, mail mailserver.Config, app *slackapp.App, log *slog.Logger,
) *Senders {
	return &Senders{store: st, keyring: keyring, guard: guard, mail: mail, slack: app, causes: newCauses(log)}
}

// broken is the error of a rule with unreadable credentials.
func broken(cause error) error {
	return channel.Failed("the stored credentials cannot be read; set them again", cause)
}

// targets are what the rules of some deployments refer to.
type targets struct {
	webhooks      map[int64]*ent.NotificationWebhook // by id
	installations map[int64]*ent.ChatInstallation    // by deployment
}

// open creates the sender of a rule. A webhook of another deployment is ignored. The error is for administrators of the
// deployment.
func (s *Senders) open(row *ent.NotificationRule, known targets) (channel.Sender, error) {
	if row.Channel == channel.SlackApp {
		return s.toSlackApp(row, known.installations[row.DeploymentID])
	}
	config, err := s.fullConfig(row)
	if err != nil {
		return nil, broken(err)
	}
	if id := webhookID(row); id != 0 {
		hook := known.webhooks[id]
		if hook == nil || hook.DeploymentID != row.DeploymentID {
			return nil, fmt.Errorf("the notification webhook %d that config.webhook_id names does not exist", id)
		}
		return s.toWebhook(hook)
	}
	return channel.Open(row.Channel, config, s.guard, s.mail)
}

func (s *Senders) toWebhook(hook *ent.NotificationWebhook) (channel.Sender, error) {
	url, err := s.urlOf(hook)
	if err != nil {
		return nil, broken(err)
	}
	config := map[string]string{keyURL: url}
	if len(hook.Secret) > 0 {
		value, err := s.keyring.Unseal(hook.Secret, webhookSecretOf(hook.ID))
		if err != nil {
			return nil, broken(err)
		}
		config["secret"] = string(value)
	}
	return channel.Open(channel.Webhook, config, s.guard, s.mail)
}

// webhookID is the id of the webhook that a rule names; 0 if none.
func webhookID(row *ent.NotificationRule) int64 {
	id, _ := strconv.ParseInt(row.Config[keyWebhook], 10, 64)
	return id
}

// targetsOf reads what the rules refer to, in at most one query for each kind.
func targetsOf(ctx context.Context, db *ent.Client, rows []*ent.NotificationRule) (known targets, err error) {
	if known.webhooks, err = webhooksOf(ctx, db, rows); err != nil {
		return known, err
	}
	known.installations, err = installationsOf(ctx, db, rows)
	return known, err
}

// webhooksOf reads the webhooks that the rules name, in one query.
func webhooksOf(ctx context.Context, db *ent.Client, rows []*ent.NotificationRule) (map[int64]*ent.NotificationWebhook, error) {
	var ids []int64
	for _, row := range rows {
		if id := webhookID(row); id != 0 {
			ids = append(ids, id)
		}
	}
	hooks := map[int64]*ent.NotificationWebhook{}
	if len(ids) == 0 {
		return hooks, nil
	}
	found, err := db.NotificationWebhook.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(notificationwebhook.FieldID), ids)) }).All(ctx)
	for _, hook := range found {
		hooks[hook.ID] = hook
	}
	return hooks, err
}

// fullConfig is a rule's config including its credentials.
func (s *Senders) fullConfig(row *ent.NotificationRule) (map[string]string, error) {
	secrets, err := s.secretsOf(row)
	if err != nil {
		return nil, err
	}
	for name, value := range row.Config {
		secrets[name] = value
	}
	return secrets, nil
}

func (s *Senders) secretsOf(row *ent.NotificationRule) (map[string]string, error) {
	secrets := map[string]string{}
	if len(row.Secrets) == 0 {
		return secrets, nil
	}
	plain, err := s.keyring.Unseal(row.Secrets, ruleSecretsOf(row.ID))
	if err != nil {
		return nil, err
	}
	return secrets, json.Unmarshal(plain, &secrets)
}

// ruleSecretsOf is the associated data that binds sealed credentials to their row.
func ruleSecretsOf(id int64) []byte { return fmt.Appendf(nil, "notification_rules.secrets/%d", id) }

// sample is the message of a test.
func sample() channel.Message {
	now := time.Now()
	return channel.Message{
		Kind: kindTest, EventID: testEventID(), Payload: payload.Sample(now), At: now,
		Subject: "Test of a notification from Palisade", Text: "This is a test of a notification from Palisade. Nothing was found.",
	}
}

func testEventID() string { return "msg_test_" + uuid.NewString() }

// test sends a message. The error is for the caller; see describe.
func (s *Senders) test(ctx context.Context, m channel.Message, open func() (channel.Sender, error)) error {
	to, err := open()
	if err != nil {
		return channel.Failed(err.Error(), err)
	}
	_, err = to.Send(ctx, m)
	return err
}

// openRule is a rule with its sender.
type openRule struct {
	endpoint
	channel string
	pace    pace
	sender  channel.Sender
	err     error // why there is no sender
	readAt  time.Time
}

func (r *openRule) send(ctx context.Context, m channel.Message) (status int, err error) {
	if r.err != nil {
		return 0, channel.Failed(r.err.Error(), r.err)
	}
	return r.sender.Send(ctx, m)
}

// openRules loads the rules of waiting deliveries that this run does not know or that are stale, and creates their
// senders. It cancels deliveries of a rule that was deleted or disabled while they were written.
func (d *dispatch) openRules(ctx context.Context) error {
	var ids []int64
	now := time.Now()
	for id := range d.waiting {
		if r := d.rules[id]; r == nil || r.readAt.Before(d.staleBefore) || now.Sub(r.readAt) > ruleTTL {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if len(d.rules) > maxServed {
		d.rules = map[int64]*openRule{}
		return d.openRules(ctx)
	}
	system := tenant.System(ctx)
	db := d.engine.store.Reader
	found, err := db.NotificationRule.Query().
		Where(notificationrule.IsEnabled(true), func(s *entsql.Selector) { s.Where(store.InIDs(s.C(notificationrule.FieldID), ids)) }).All(system)
	if err != nil {
		return err
	}
	known, err := targetsOf(system, db, found)
	if err != nil {
		return err
	}
	for _, id := range ids {
		delete(d.rules, id)
	}
	for _, row := range found {
		to, err := d.engine.senders.open(row, known)
		d.rules[row.ID] = &openRule{
			endpoint: endpoint{receiver{row.DeploymentID, row.ID}, row.UpdatedAt}, channel: row.Channel, pace: d.engine.senders.paceOf(row), sender: to, err: err, readAt: now,
		}
	}
	for _, id := range ids {
		if d.rules[id] != nil {
			continue
		}
		of := receiverOf(d.waiting[id][0])
		d.release(id)
		err := d.engine.store.Write(tenant.NewContext(ctx, of.deploymentID), func(ctx context.Context, tx *ent.Tx) error {
			return cancelOf(ctx, d.engine.store, tx, id)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// paceOf is the pace of the rule's receiver.
func (s *Senders) paceOf(row *ent.NotificationRule) pace {
	switch row.Channel {
	case channel.SlackApp:
		return paceOf(fmt.Sprint(row.DeploymentID, row.Config[keyChannel]))
	case channel.Slack:
	default:
		return pace{}
	}
	config, err := s.fullConfig(row)
	if err != nil {
		return pace{} // nothing is sent
	}
	return paceOf(config[keyURL])
}

// reportMessage is the message of a test with a report.
func reportMessage(report payload.Report) channel.Message {
	body := report.Body()
	subject, text := payload.Describe(body)
	return channel.Message{Kind: kindTest, EventID: testEventID(), Payload: body, Subject: "Test: " + subject, Text: text, HTML: payload.HTML(body), At: report.SentAt}
}

// messageOf builds the message of a delivery.
func messageOf(row *ent.Delivery) channel.Message {
	subject, text := payload.Describe(row.Payload)
	return channel.Message{
		Kind: row.Kind, EventID: row.EventID, Payload: row.Payload, Subject: subject, Text: text, HTML: payload.HTML(row.Payload), At: store.Time(row.CreatedAt),
		DeliveredTo: row.DeliveredTo,
	}
}

// failure describes a failed attempt; the zero value is success.
type failure struct {
	text       string
	permanent  bool
	retryAfter time.Duration
	// accepted lists the recipients that have the e-mail, refused the permanently refused recipients with the mail
	// server's reply.
	accepted []string
	refused  map[string]string
}

// describe converts a sender's error. The text of other errors is not public.
func describe(err error) failure {
	var known *channel.Error
	switch {
	case err == nil:
		return failure{}
	case errors.As(err, &known):
		return failure{
			text: known.Public, permanent: known.Permanent, retryAfter: known.RetryAfter,
			accepted: known.Accepted, refused: known.Refused,
		}
	}
	return failure{text: "the message could not be sent"}
}
