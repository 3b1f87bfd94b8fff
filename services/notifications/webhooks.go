package notifications

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/notificationwebhook"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/channel"
)

// NotificationWebhooks is the service group "notification webhooks".
type NotificationWebhooks struct {
	notificationsv1.UnimplementedNotificationWebhooksServiceServer
	store   *store.Store
	keyring *secret.Keyring
	senders *Senders
}

// NewNotificationWebhooks serves webhooks from the store.
func NewNotificationWebhooks(senders *Senders) *NotificationWebhooks {
	return &NotificationWebhooks{store: senders.store, keyring: senders.keyring, senders: senders}
}

// CreateNotificationWebhook creates a webhook.
func (s *NotificationWebhooks) CreateNotificationWebhook(ctx context.Context, r *notificationsv1.CreateNotificationWebhookRequest) (*notificationsv1.CreateNotificationWebhookResponse, error) {
	if err := s.senders.checkURL("url", r.GetUrl()); err != nil {
		return nil, err
	}
	response := &notificationsv1.CreateNotificationWebhookResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := requireFreeName(ctx, tx, r.GetName(), 0); err != nil {
			return err
		}
		now := store.Now()
		whole, err := unmaskURL("url", r.GetUrl(), "")
		if err != nil {
			return err
		}
		shown, _ := channel.MaskURL(whole)
		row, err := tx.NotificationWebhook.Create().SetName(r.GetName()).SetURL(shown).SetUseNetworkBroker(r.GetUseNetworkBroker()).
			SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return webhookConflict(err, r.GetName())
		}
		if shown != whole {
			_, sealed, err := s.senders.sealURL(row.ID, whole)
			if err != nil {
				return err
			}
			if row, err = row.Update().SetSealedURL(sealed).Save(ctx); err != nil {
				return err
			}
		}
		if r.GetWebhookSecret() != "" {
			sealed, err := s.keyring.Seal([]byte(r.GetWebhookSecret()), webhookSecretOf(row.ID))
			if err != nil {
				return err
			}
			if row, err = row.Update().SetSecret(sealed).Save(ctx); err != nil {
				return err
			}
		}
		response.Webhook = convertWebhook(row)
		audit.Change(ctx, "notification_webhook", row.ID, nil, response.GetWebhook())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// ListNotificationWebhooks lists all webhooks.
func (s *NotificationWebhooks) ListNotificationWebhooks(ctx context.Context, _ *notificationsv1.ListNotificationWebhooksRequest) (*notificationsv1.ListNotificationWebhooksResponse, error) {
	rows, err := s.store.Reader.NotificationWebhook.Query().Order(ent.Asc(notificationwebhook.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &notificationsv1.ListNotificationWebhooksResponse{}
	for _, row := range rows {
		response.Webhooks = append(response.Webhooks, convertWebhook(row))
	}
	return response, nil
}

// GetNotificationWebhook returns one webhook.
func (s *NotificationWebhooks) GetNotificationWebhook(ctx context.Context, r *notificationsv1.GetNotificationWebhookRequest) (*notificationsv1.GetNotificationWebhookResponse, error) {
	row, err := findWebhook(ctx, s.store.Reader, r.GetWebhookId())
	if err != nil {
		return nil, err
	}
	return &notificationsv1.GetNotificationWebhookResponse{Webhook: convertWebhook(row)}, nil
}

// DeleteNotificationWebhook deletes a webhook. Rules that name it stay, and cannot send.
func (s *NotificationWebhooks) DeleteNotificationWebhook(ctx context.Context, r *notificationsv1.DeleteNotificationWebhookRequest) (*notificationsv1.DeleteNotificationWebhookResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := findWebhook(ctx, tx.Client(), r.GetWebhookId())
		if err != nil {
			return err
		}
		audit.Change(ctx, "notification_webhook", row.ID, convertWebhook(row), nil)
		return tx.NotificationWebhook.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &notificationsv1.DeleteNotificationWebhookResponse{}, nil
}

// UpdateNotificationWebhook replaces a webhook.
func (s *NotificationWebhooks) UpdateNotificationWebhook(ctx context.Context, r *notificationsv1.UpdateNotificationWebhookRequest) (*notificationsv1.UpdateNotificationWebhookResponse, error) {
	if err := s.senders.checkURL("url", r.GetUrl()); err != nil {
		return nil, err
	}
	response := &notificationsv1.UpdateNotificationWebhookResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		before, err := findWebhook(ctx, tx.Client(), r.GetWebhookId())
		if err != nil {
			return err
		}
		if err := requireFreeName(ctx, tx, r.GetName(), before.ID); err != nil {
			return err
		}
		update := before.Update().SetName(r.GetName()).SetUseNetworkBroker(r.GetUseNetworkBroker()).SetUpdatedAt(store.Now())
		if err := s.setURL(update, before, r.GetUrl()); err != nil {
			return err
		}
		switch {
		case r.GetRemoveSecret():
			update.ClearSecret()
		case r.GetWebhookSecret() != "":
			sealed, err := s.keyring.Seal([]byte(r.GetWebhookSecret()), webhookSecretOf(before.ID))
			if err != nil {
				return err
			}
			update.SetSecret(sealed)
		}
		after, err := update.Save(ctx)
		if err != nil {
			return webhookConflict(err, r.GetName())
		}
		response.Webhook = convertWebhook(after)
		audit.Change(ctx, "notification_webhook", after.ID, convertWebhook(before), response.GetWebhook())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// TestNotificationWebhook sends a sample.
func (s *NotificationWebhooks) TestNotificationWebhook(ctx context.Context, r *notificationsv1.TestNotificationWebhookRequest) (*notificationsv1.TestNotificationWebhookResponse, error) {
	row, err := findWebhook(ctx, s.store.Reader, r.GetWebhookId())
	if err != nil {
		return nil, err
	}
	failed := s.senders.test(ctx, sample(), func() (channel.Sender, error) { return s.senders.toWebhook(row) })
	s.senders.causes.note(ctx, receiver{deploymentID: row.DeploymentID}, channel.Webhook, failed, slog.Int64("webhook_id", row.ID))
	return &notificationsv1.TestNotificationWebhookResponse{Success: failed == nil, ErrorDetail: describe(failed).text}, nil
}

// setURL stores a webhook's URL. The masked form of the stored URL keeps the stored one.
func (s *NotificationWebhooks) setURL(update *ent.NotificationWebhookUpdateOne, before *ent.NotificationWebhook, given string) error {
	stored, err := s.senders.urlOf(before)
	if err != nil {
		stored = "" // unreadable URLs are dropped; the caller can set it again
	}
	whole, err := unmaskURL("url", given, stored)
	if err != nil {
		return err
	}
	shown, sealed, err := s.senders.sealURL(before.ID, whole)
	if err != nil {
		return err
	}
	update.SetURL(shown)
	if sealed == nil {
		update.ClearSealedURL()
	} else {
		update.SetSealedURL(sealed)
	}
	return nil
}

func findWebhook(ctx context.Context, db *ent.Client, id int64) (*ent.NotificationWebhook, error) {
	row, err := db.NotificationWebhook.Query().Where(notificationwebhook.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("notification webhook %d not found", id)
	}
	return row, err
}

// requireFreeName checks before the insert: on PostgreSQL a unique violation aborts the transaction.
func requireFreeName(ctx context.Context, tx *ent.Tx, name string, self int64) error {
	taken, err := tx.NotificationWebhook.Query().Where(notificationwebhook.Name(name), notificationwebhook.IDNEQ(self)).Exist(ctx)
	if err != nil {
		return err
	}
	if taken {
		return nameTaken(name)
	}
	return nil
}

// webhookConflict converts the unique violation of a concurrent request.
func webhookConflict(err error, name string) error {
	if ent.IsConstraintError(err) {
		return nameTaken(name)
	}
	return err
}

func nameTaken(name string) error {
	return apierr.AlreadyExists("a notification webhook with the name %q exists; names are unique in a deployment", name)
}

// webhookSecretOf is the associated data that binds a sealed secret to its row.
func webhookSecretOf(id int64) []byte { return fmt.Appendf(nil, "notification_webhooks.secret/%d", id) }

func convertWebhook(row *ent.NotificationWebhook) *notificationsv1.NotificationWebhook {
	shown, _ := channel.MaskURL(row.URL) // stored by a version that did not seal URLs
	return &notificationsv1.NotificationWebhook{
		Id: row.ID, Name: row.Name, Url: shown, HasSecret: len(row.Secret) > 0, UseNetworkBroker: row.UseNetworkBroker,
	}
}

// checkURL rejects a URL that the guard does not allow. The guard's text follows the field's name and contains no
// secret.
func (s *Senders) checkURL(field, url string) error {
	if err := s.guard.CheckURL(url); err != nil {
		return apierr.InvalidArgument(field, "%s %v", field, err)
	}
	return nil
}
