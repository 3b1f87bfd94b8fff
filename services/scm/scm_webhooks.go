package scm

import (
	"bytes"
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/column"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

// webhookEvents are what we want to be told.
var webhookEvents = []host.Event{host.PullRequestEvent, host.ReviewCommentEvent}

// maxRestores bounds how often a secret is pushed that others change all the time.
const maxRestores = 5

// Webhooks is the service group "SCM webhooks".
type Webhooks struct {
	scmv1.UnimplementedScmSubscriptionsServiceServer
	*Connections
}

// NewWebhooks serves the webhooks of configurations.
func NewWebhooks(c *Connections) *Webhooks { return &Webhooks{Connections: c} }

// ListScmWebhookSubscription lists what the host said last; a check asks it again.
func (s *Webhooks) ListScmWebhookSubscription(ctx context.Context, r *scmv1.ListScmWebhookSubscriptionRequest) (*scmv1.ListScmWebhookSubscriptionResponse, error) {
	row, err := find(ctx, s.store.Reader, r.GetConfigId())
	if err != nil {
		return nil, err
	}
	return &scmv1.ListScmWebhookSubscriptionResponse{
		DeploymentId: row.DeploymentID, ConfigId: row.ID, Subscriptions: subscriptionsOf(row.Subscriptions),
	}, nil
}

// ScmWebhookSubscriptionSubscribe makes the webhook, or repairs it.
func (s *Webhooks) ScmWebhookSubscriptionSubscribe(ctx context.Context, r *scmv1.ScmWebhookSubscriptionSubscribeRequest) (*scmv1.ScmWebhookSubscriptionSubscribeResponse, error) {
	row, err := find(ctx, s.store.Reader, r.GetConfigId())
	if err != nil {
		return nil, err
	}
	if row, err = s.subscribe(ctx, row); err != nil {
		return nil, hostError(err)
	}
	response := &scmv1.ScmWebhookSubscriptionSubscribeResponse{DeploymentId: row.DeploymentID, ConfigId: row.ID}
	if len(row.Subscriptions) > 0 {
		response.Subscription = subscriptionsOf(row.Subscriptions)[0]
	}
	return response, nil
}

// ScmWebhookSubscriptionUnsubscribe deletes the webhook.
func (s *Webhooks) ScmWebhookSubscriptionUnsubscribe(ctx context.Context, r *scmv1.ScmWebhookSubscriptionUnsubscribeRequest) (*scmv1.ScmWebhookSubscriptionUnsubscribeResponse, error) {
	row, err := find(ctx, s.store.Reader, r.GetConfigId())
	if err != nil {
		return nil, err
	}
	_, removed, err := s.unsubscribe(ctx, row)
	if err != nil {
		return nil, hostError(err)
	}
	response := &scmv1.ScmWebhookSubscriptionUnsubscribeResponse{DeploymentId: row.DeploymentID, ConfigId: row.ID}
	if len(removed) > 0 {
		response.Subscription = subscriptionsOf(removed)[0]
	}
	return response, nil
}

// RotateScmWebhookSecret gives the host a new secret and stores it then (contract facts: "pushed to the SCM, then
// stored"). When it cannot be stored the host gets back the one that is.
func (s *Webhooks) RotateScmWebhookSecret(ctx context.Context, r *scmv1.RotateScmWebhookSecretRequest) (*scmv1.RotateScmWebhookSecretResponse, error) {
	row, err := find(ctx, s.store.Reader, r.GetConfigId())
	if err != nil {
		return nil, err
	}
	if len(row.Subscriptions) == 0 || len(row.WebhookSecret) == 0 {
		return nil, apierr.FailedPrecondition("SCM config %d has no webhook whose secret could be rotated: subscribe first", row.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	h, err := s.Open(ctx, row)
	if err != nil {
		return nil, hostError(err)
	}
	fresh := randomText()
	if err := s.push(ctx, h, row, fresh); err != nil {
		return nil, hostError(err)
	}
	if err := s.storeSecret(ctx, row, fresh); err != nil {
		s.restore(ctx, h, row.ID)
		return nil, err
	}
	return &scmv1.RotateScmWebhookSecretResponse{Success: true}, nil
}

// push gives every webhook of a configuration a secret.
func (s *Webhooks) push(ctx context.Context, h host.Host, row *ent.ScmConfig, secret string) error {
	hook := host.Webhook{Callback: s.callback(row.WebhookKey), Secret: secret, Events: webhookEvents}
	for _, subscription := range row.Subscriptions {
		if _, err := h.UpdateWebhook(ctx, row.Namespace, subscription.RemoteID, hook); err != nil {
			return err
		}
	}
	return nil
}

// storeSecret stores a rotated secret, if nobody else has rotated since row was read.
func (s *Webhooks) storeSecret(ctx context.Context, row *ent.ScmConfig, fresh string) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now, err := s.lock(ctx, tx, row.ID)
		if err != nil {
			return err
		}
		if !bytes.Equal(now.WebhookSecret, row.WebhookSecret) {
			return apierr.Conflict("the webhook secret of SCM config %d was rotated by somebody else at the same time", row.ID)
		}
		sealed, err := s.seals.Seal(connect.ConfigTable, connect.WebhookSecret, row.DeploymentID, row.ID, fresh)
		if err != nil {
			return err
		}
		after, err := now.Update().SetPreviousWebhookSecret(now.WebhookSecret).SetWebhookSecret(sealed).
			SetWebhookRotatedAt(store.Now()).SetUpdatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		return s.audited(ctx, tx, now, after)
	})
}

// restore gives the host the secret that is stored, as far as it can: the caller's error counts. Whoever pushes looks
// again, so that of two who do it at the same time the last one leaves host and store with the same secret.
func (s *Webhooks) restore(ctx context.Context, h host.Host, id int64) {
	var pushed []byte
	for range maxRestores {
		row, err := find(ctx, s.store.Reader, id)
		if err != nil || bytes.Equal(row.WebhookSecret, pushed) {
			return
		}
		secret, err := s.seals.Open(connect.ConfigTable, connect.WebhookSecret, row.DeploymentID, row.ID, row.WebhookSecret)
		if err != nil || s.push(ctx, h, row, secret) != nil {
			return
		}
		pushed = row.WebhookSecret
	}
}

// follow subscribes or unsubscribes after a change that is committed already. What the host refuses becomes the status
// of the configuration: the change itself has happened, and an error would make the caller repeat it.
func (s *Webhooks) follow(ctx context.Context, row *ent.ScmConfig, subscribe bool) (after *ent.ScmConfig, err error) {
	if subscribe {
		after, err = s.subscribe(ctx, row)
	} else {
		after, _, err = s.unsubscribe(ctx, row)
	}
	text := connect.ErrorText(err)
	if err == nil || text == "" {
		return after, err
	}
	err = s.change(ctx, row, sameConnection, func(update *ent.ScmConfigUpdateOne) {
		update.SetCheckedAt(store.Now()).SetCheckOk(false).SetCheckError("webhook: " + text)
	}, &after)
	return after, err
}

// subscribe makes the webhook of a configuration, or gives the one that is there our secret and events.
func (s *Webhooks) subscribe(ctx context.Context, row *ent.ScmConfig) (after *ent.ScmConfig, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	h, err := s.Open(ctx, row)
	if err != nil {
		return nil, err
	}
	// Key and secret are stored first: the host calls back at once, while it makes the webhook.
	row, secret, err := s.receiver(ctx, row)
	if err != nil {
		return nil, err
	}
	existing, err := s.ours(ctx, h, row)
	if err != nil {
		return nil, err
	}
	hook := host.Webhook{Callback: s.callback(row.WebhookKey), Secret: secret, Events: webhookEvents}
	made, err := establish(ctx, h, row.Namespace, existing, hook)
	if err != nil {
		return nil, err
	}
	err = s.change(ctx, row, sameReceiver, func(update *ent.ScmConfigUpdateOne) {
		update.SetSubscriptions([]column.ScmSubscription{stored(made)})
	}, &after)
	switch {
	case err != nil:
		return nil, err
	case after.WebhookKey != row.WebhookKey: // ended in the meantime: what was made calls nobody
		_ = h.Unsubscribe(ctx, row.Namespace, made.ID) // one that stays is answered 404
		return nil, apierr.Conflict("the webhook of SCM config %d was deleted by somebody else at the same time: subscribe again", row.ID)
	case !bytes.Equal(after.WebhookSecret, row.WebhookSecret):
		s.restore(ctx, h, row.ID) // rotated in the meantime
	}
	return after, nil
}

// establish leaves exactly one webhook of ours at the host: two callers at the same time may have made one each.
func establish(ctx context.Context, h host.Host, namespace string, existing []column.ScmSubscription, hook host.Webhook) (host.Subscription, error) {
	if len(existing) == 0 {
		return h.Subscribe(ctx, namespace, hook)
	}
	for _, surplus := range existing[1:] {
		if err := h.Unsubscribe(ctx, namespace, surplus.RemoteID); err != nil {
			return host.Subscription{}, err
		}
	}
	return h.UpdateWebhook(ctx, namespace, existing[0].RemoteID, hook)
}

// receiver makes sure that a configuration has a place where webhooks arrive, and a secret for them.
func (s *Webhooks) receiver(ctx context.Context, row *ent.ScmConfig) (after *ent.ScmConfig, secret string, err error) {
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if after, err = s.lock(ctx, tx, row.ID); err != nil {
			return err
		}
		if secret, err = s.seals.Open(connect.ConfigTable, connect.WebhookSecret, after.DeploymentID, after.ID, after.WebhookSecret); err != nil {
			return err
		}
		if after.WebhookKey != "" && secret != "" {
			return nil
		}
		secret = randomText()
		sealed, err := s.seals.Seal(connect.ConfigTable, connect.WebhookSecret, after.DeploymentID, after.ID, secret)
		if err != nil {
			return err
		}
		after, err = after.Update().SetWebhookKey(randomText()).SetWebhookSecret(sealed).Save(ctx)
		return err
	})
	return after, secret, err
}

// unsubscribe deletes the webhooks of a configuration at the host and returns them. Key and secrets end with them, the
// secret before a rotation too: another subscription gets new ones.
func (s *Webhooks) unsubscribe(ctx context.Context, row *ent.ScmConfig) (after *ent.ScmConfig, removed []column.ScmSubscription, err error) {
	if row.WebhookKey == "" {
		return row, nil, nil // there never was one
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	h, err := s.Open(ctx, row)
	if err != nil {
		return nil, nil, err
	}
	if removed, err = s.ours(ctx, h, row); err != nil {
		return nil, nil, err
	}
	for _, subscription := range removed {
		if err := h.Unsubscribe(ctx, row.Namespace, subscription.RemoteID); err != nil {
			return nil, nil, err
		}
	}
	err = s.change(ctx, row, sameReceiver, endReceiver, &after)
	return after, removed, err
}

// endReceiver takes key and secrets from a configuration: no webhook arrives there any more.
func endReceiver(update *ent.ScmConfigUpdateOne) {
	update.SetSubscriptions([]column.ScmSubscription{}).
		SetWebhookKey("").ClearWebhookSecret().ClearPreviousWebhookSecret().ClearWebhookRotatedAt()
}

// ours lists those webhooks of a namespace that call this configuration's receiver. It is never nil without an error.
func (s *Webhooks) ours(ctx context.Context, h host.Host, row *ent.ScmConfig) ([]column.ScmSubscription, error) {
	all, err := h.Subscriptions(ctx, row.Namespace)
	if err != nil {
		return nil, err
	}
	out := []column.ScmSubscription{}
	for _, subscription := range all {
		if subscription.Callback == s.callback(row.WebhookKey) {
			out = append(out, stored(subscription))
		}
	}
	return out, nil
}

func stored(s host.Subscription) column.ScmSubscription {
	return column.ScmSubscription{RemoteID: s.ID, URL: s.URL, Events: s.Events}
}

// sameReceiver reports whether a configuration has the connection and the key for webhooks that it had.
func sameReceiver(a, b *ent.ScmConfig) bool {
	return sameConnection(a, b) && a.WebhookKey == b.WebhookKey
}

// change writes what a host brought about, unless the configuration is not the same any more as when it was read: then
// it is about another, and the row stays as it is.
func (s *Webhooks) change(ctx context.Context, asked *ent.ScmConfig, same func(a, b *ent.ScmConfig) bool, fields func(*ent.ScmConfigUpdateOne), after **ent.ScmConfig) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		before, err := s.lock(ctx, tx, asked.ID)
		if err != nil {
			return err
		}
		if !same(before, asked) {
			*after = before
			return nil
		}
		update := before.Update().SetUpdatedAt(store.Now())
		fields(update)
		if *after, err = update.Save(ctx); err != nil {
			return err
		}
		return s.audited(ctx, tx, before, *after)
	})
}
