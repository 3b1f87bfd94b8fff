package config

import (
	"net/mail"
	"unicode/utf8"

	"github.com/palisade/palisade/services/internal/egress"
)

// minWebhookSecret is the shortest secret of a webhook, in characters (contract facts, section 9).
const minWebhookSecret = 15

// validateSupport checks where support cases are forwarded to.
func (c Config) validateSupport(p *problemList) {
	if c.SupportEmail != "" {
		if _, err := mail.ParseAddressList(c.SupportEmail); err != nil {
			p.add("support-email", "got %q, want addresses such as appsec@example.com, separated by commas", c.SupportEmail)
		}
		if c.SMTP == "" {
			p.add("support-email", "needs a mail server: set smtp and smtp-from, or no support-email")
		}
	}
	if n := utf8.RuneCountInString(c.SupportWebhookSecret); n > 0 && n < minWebhookSecret {
		p.add("support-webhook-secret", "has %d characters, want at least %d", n, minWebhookSecret)
	}
	if c.SupportWebhook == "" {
		if c.SupportWebhookSecret != "" {
			p.add("support-webhook-secret", "is set without support-webhook; set both, or neither")
		}
		return
	}
	guard, err := egress.New(egress.Config{Allow: c.EgressAllow})
	if err != nil {
		return // validateOutgoing reports it
	}
	if err := guard.CheckURL(c.SupportWebhook); err != nil {
		p.add("support-webhook", "%v", err)
	}
}
