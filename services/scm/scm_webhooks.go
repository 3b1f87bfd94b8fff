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

// webhookEvents are the events that webhooks subscribe to.
var webhookEvents = []host.Event{host.PullRequestEvent, host.ReviewCommentEvent, host.RepositoryEvent, host.BranchDeletedEvent}

// maxRestores is the maximum number of pushes if others keep changing the secret.
const maxRestores = 5

// Webhooks is the service group "SCM webhooks".
type Webhooks struct {
	scmv1.UnimplementedScmSubscriptionsServiceServer
	*Connections
}

// NewWebhooks serves the webhooks of configurations.
func NewWebhooks(c *Connections) *Webhooks { return &Webhooks{Connections: c} }

// ListScmWebhookSubscription lists the webhooks from the last check of the host.
func (s *Webhooks) ListScmWebhookSubscription(ctx context.Context, r *scmv1.ListScmWebhookSubscriptionRequest) (*scmv1.ListScmWebhookSubscriptionResponse, error) {
	row, err := named(ctx, s.store.Reader, r.GetConfigId())
	if err != nil {
		return nil, err
	}
	return &scmv1.ListScmWebhookSubscriptionResponse{
		DeploymentId: row.DeploymentID, ConfigId: row.ID, Subscriptions: connect.SubscriptionMessages(row.Subscriptions),
	}, nil
}

// ScmWebhookSubscriptionSubscribe creates or repairs the webhook.
func (s *Webhooks) ScmWebhookSubscriptionSubscribe(ctx context.Context, r *scmv1.ScmWebhookSubscriptionSubscribeRequest) (*scmv1.ScmWebhookSubscriptionSubscribeResponse, error) {
	row, err := named(ctx, s.store.Reader, r.GetConfigId())
	if err != nil {
		return nil, err
	}
	if row, err = s.subscribe(ctx, row); err != nil {
		return nil, hostError(err)
	}
	response := &scmv1.ScmWebhookSubscriptionSubscribeResponse{DeploymentId: row.DeploymentID, ConfigId: row.ID}
	if len(row.Subscriptions) > 0 {
		response.Subscription = connect.SubscriptionMessages(row.Subscriptions)[0]
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
		response.Subscription = connect.SubscriptionMessages(removed)[0]
	}
	return response, nil
}

// RotateScmWebhookSecret sends the host a new secret and then stores it (contract facts: "pushed to the SCM, then
// stored"). If storing fails, the host gets the stored secret again.
func (s *Webhooks) RotateScmWebhookSecret(ctx context.Context, r *scmv1.RotateScmWebhookSecretRequest) (*scmv1.RotateScmWebhookSecretResponse, error) {
	row, err := named(ctx, s.store.Reader, r.GetConfigId())
	if err != nil {
		return nil, err
	}
	if len(row.Subscriptions) == 0 || len(row.WebhookSecret) == 0 {
		return nil, apierr.FailedPrecondition("SCM config %d has no webhook with a secret to rotate: subscribe first", row.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	h, err := s.Open(ctx, row)
	if err != nil {
		return nil, hostError(err)
	}
	fresh := randomText()
	if err := s.pushSecret(ctx, h, row, fresh); err != nil {
		return nil, hostError(err)
	}
	if err := s.storeSecret(ctx, row, fresh); err != nil {
		s.restoreSecret(ctx, h, row.ID)
		return nil, err
	}
	return &scmv1.RotateScmWebhookSecretResponse{Success: true}, nil
}

// pushSecret sets a secret for all webhooks of a configuration.
func (s *Webhooks) pushSecret(ctx context.Context, h host.Host, row *ent.ScmConfig, secret string) error {
	hook := host.Webhook{Callback: s.callback(row.WebhookKey), Secret: secret, Events: webhookEvents}
	for _, subscription := range row.Subscriptions {
		if _, err := h.UpdateWebhook(ctx, row.Namespace, subscription.RemoteID, hook); err != nil {
			return err
		}
	}
	return nil
}

// storeSecret stores a rotated secret, unless it was rotated by another request since row was read.
func (s *Webhooks) storeSecret(ctx context.Context, row *ent.ScmConfig, fresh string) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now, err := s.lock(ctx, tx, row.ID)
		if err != nil {
			return err
		}
		if !bytes.Equal(now.WebhookSecret, row.WebhookSecret) {
			return apierr.Conflict("the webhook secret of SCM config %d was rotated by another request at the same time", row.ID)
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
		return s.Audited(ctx, tx, now, after)
	})
}

// restoreSecret sets the stored secret at the host, best effort: the caller reports its own error. After a push it
// reads the stored secret again, so that after concurrent pushes the last one leaves host and store with the same
// secret.
func (s *Webhooks) restoreSecret(ctx context.Context, h host.Host, id int64) {
	var pushed []byte
	for range maxRestores {
		row, err := find(ctx, s.store.Reader, id)
		if err != nil || bytes.Equal(row.WebhookSecret, pushed) {
			return
		}
		secret, err := s.seals.Open(connect.ConfigTable, connect.WebhookSecret, row.DeploymentID, row.ID, row.WebhookSecret)
		if err != nil || s.pushSecret(ctx, h, row, secret) != nil {
			return
		}
		pushed = row.WebhookSecret
	}
}

// applyWebhook subscribes or unsubscribes after a committed change. A host's refusal becomes the configuration's
// status: the change is done, and after an error the caller would repeat it.
func (s *Webhooks) applyWebhook(ctx context.Context, row *ent.ScmConfig, subscribe bool) (after *ent.ScmConfig, err error) {
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

// subscribe creates a configuration's webhook, or updates the secret and events of the existing one.
func (s *Webhooks) subscribe(ctx context.Context, row *ent.ScmConfig) (after *ent.ScmConfig, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	h, err := s.Open(ctx, row)
	if err != nil {
		return nil, err
	}
	// Store key and secret first: the host sends a request while it creates the webhook.
	row, secret, err := s.receiver(ctx, row)
	if err != nil {
		return nil, err
	}
	existing, err := s.ownWebhooks(ctx, h, row)
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
	case after.WebhookKey != row.WebhookKey: // deleted or renewed concurrently: the new webhook has no receiver
		_ = h.Unsubscribe(ctx, row.Namespace, made.ID) // if this fails, its requests get 404
		return nil, apierr.Conflict("the webhook of SCM config %d was deleted by another request at the same time: subscribe again", row.ID)
	case !bytes.Equal(after.WebhookSecret, row.WebhookSecret):
		s.restoreSecret(ctx, h, row.ID) // rotated concurrently
	}
	return after, nil
}

// establish leaves exactly one webhook at the host: two concurrent callers may have created one each.
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

// receiver ensures that a configuration has a webhook key and secret.
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

// unsubscribe deletes a configuration's webhooks at the host and returns them. It also removes the key and both
// secrets; another subscription gets new ones.
func (s *Webhooks) unsubscribe(ctx context.Context, row *ent.ScmConfig) (after *ent.ScmConfig, removed []column.ScmSubscription, err error) {
	if row.WebhookKey == "" {
		return row, nil, nil // there was none
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	h, err := s.Open(ctx, row)
	if err != nil {
		return nil, nil, err
	}
	if removed, err = s.ownWebhooks(ctx, h, row); err != nil {
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

// endReceiver removes key and secrets from a configuration, so that it receives no more webhooks.
func endReceiver(update *ent.ScmConfigUpdateOne) {
	update.SetSubscriptions([]column.ScmSubscription{}).
		SetWebhookKey("").ClearWebhookSecret().ClearPreviousWebhookSecret().ClearWebhookRotatedAt()
}

// ownWebhooks lists the namespace's webhooks that call this configuration's receiver. It is never nil without an error.
func (s *Webhooks) ownWebhooks(ctx context.Context, h host.Host, row *ent.ScmConfig) ([]column.ScmSubscription, error) {
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

// sameReceiver reports whether the connection and the webhook key are unchanged.
func sameReceiver(a, b *ent.ScmConfig) bool {
	return sameConnection(a, b) && a.WebhookKey == b.WebhookKey
}

// change writes the result of a host request, unless the configuration was changed since it was read: the result would
// be about another connection.
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
		return s.Audited(ctx, tx, before, *after)
	})
}
