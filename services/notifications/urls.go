package notifications

import (
	"fmt"
	"maps"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/notifications/channel"
)

// keyURL is the config key of the receiver's URL.
const keyURL = "url"

// unmaskURL replaces a masked URL by the stored one it was made from, and rejects other masked URLs.
func unmaskURL(field, given, stored string) (string, error) {
	if !channel.IsMasked(given) {
		return given, nil
	}
	if shown, secret := channel.MaskURL(stored); secret && given == shown {
		return stored, nil
	}
	return "", apierr.InvalidArgument(field, "url must be the whole URL: %s stands for parts that are not shown, and only the stored URL, as it is shown, may have them", channel.Mask)
}

// urlOf returns a webhook's unmasked URL.
func (s *Senders) urlOf(hook *ent.NotificationWebhook) (string, error) {
	if len(hook.SealedURL) == 0 {
		return hook.URL, nil
	}
	plain, err := s.keyring.Unseal(hook.SealedURL, webhookURLOf(hook.ID))
	return string(plain), err
}

// sealURL returns a webhook's URL in stored form: unchanged, or masked and sealed.
func (s *Senders) sealURL(id int64, url string) (shown string, sealed []byte, err error) {
	shown, secret := channel.MaskURL(url)
	if !secret {
		return url, nil, nil
	}
	sealed, err = s.keyring.Seal([]byte(url), webhookURLOf(id))
	return shown, sealed, err
}

// webhookURLOf is the associated data that binds a sealed URL to its row.
func webhookURLOf(id int64) []byte { return fmt.Appendf(nil, "notification_webhooks.url/%d", id) }

// splitURL moves a rule's URL to its credentials if it contains a secret. old is the rule that it replaces, or nil.
// kept holds its credentials.
func splitURL(out *wantedRule, given string, old *ent.NotificationRule, kept map[string]string) error {
	if out.channel == channel.Chat && channel.IsMasked(given) {
		return apierr.InvalidArgument("notificationRule.config", "config.url must be the whole URL; without it, the stored one stays")
	}
	if out.channel != channel.Webhook || given == "" {
		return nil // a URL of a chat is always a credential
	}
	stored := kept[keyURL]
	if stored == "" && old != nil {
		stored = old.Config[keyURL] // stored by a version that did not seal URLs
	}
	whole, err := unmaskURL("notificationRule.config", given, stored)
	if err != nil {
		return err
	}
	delete(out.secrets, keyURL)
	out.config[keyURL] = whole
	if _, secret := channel.MaskURL(whole); secret {
		delete(out.config, keyURL)
		out.secrets[keyURL] = whole
	}
	return nil
}

// shownConfig is a rule's config for answers and the audit trail: without credentials, but with the masked URL of a
// webhook.
func (s *NotificationRules) shownConfig(row *ent.NotificationRule) map[string]string {
	url := row.Config[keyURL]
	if row.Channel == channel.Webhook && url == "" {
		if secrets, err := s.senders.secretsOf(row); err == nil {
			url = secrets[keyURL]
		}
	}
	masked, secret := channel.MaskURL(url)
	if !secret {
		return row.Config
	}
	shown := maps.Clone(row.Config)
	shown[keyURL] = masked
	return shown
}
