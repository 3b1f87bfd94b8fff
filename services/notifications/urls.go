package notifications

import (
	"fmt"
	"maps"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/notifications/channel"
)

// keyURL is the key of a rule's config that holds its receiver.
const keyURL = "url"

// wholeURL replaces a URL as it is shown by the stored one, and refuses any other in which something is hidden.
func wholeURL(field, given, stored string) (string, error) {
	if !channel.IsMasked(given) {
		return given, nil
	}
	if shown, secret := channel.MaskURL(stored); secret && given == shown {
		return stored, nil
	}
	return "", apierr.InvalidArgument(field, "url must be the whole URL: %s stands for parts that are not shown, and only the stored URL, as it is shown, may have them", channel.Mask)
}

// urlOf is the whole URL of a webhook.
func (s *Senders) urlOf(hook *ent.NotificationWebhook) (string, error) {
	if len(hook.SealedURL) == 0 {
		return hook.URL, nil
	}
	plain, err := s.keyring.Unseal(hook.SealedURL, webhookURLOf(hook.ID))
	return string(plain), err
}

// sealURL returns a webhook's URL as it is stored: as it is, or masked and sealed.
func (s *Senders) sealURL(id int64, url string) (shown string, sealed []byte, err error) {
	shown, secret := channel.MaskURL(url)
	if !secret {
		return url, nil, nil
	}
	sealed, err = s.keyring.Seal([]byte(url), webhookURLOf(id))
	return shown, sealed, err
}

// webhookURLOf binds a sealed URL to its row.
func webhookURLOf(id int64) []byte { return fmt.Appendf(nil, "notification_webhooks.url/%d", id) }

// moveURL puts the URL of a rule among its credentials where it is one. old is the rule that it replaces, or nil, and
// kept its credentials.
func moveURL(out *wantedRule, given string, old *ent.NotificationRule, kept map[string]string) error {
	if out.channel != channel.Webhook || given == "" {
		return nil // of Slack it is always a credential
	}
	stored := kept[keyURL]
	if stored == "" && old != nil {
		stored = old.Config[keyURL] // of a version that sealed none
	}
	whole, err := wholeURL("notificationRule.config", given, stored)
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

// shownConfig is the config of a rule for answers and the audit trail: without credentials, but for the URL of a
// webhook, which is shown with its secret parts hidden.
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
