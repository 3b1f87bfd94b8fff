package channel

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMaskURL(t *testing.T) {
	for raw, want := range map[string]string{
		// Known services.
		"https://discord.com/api/webhooks/123456789012345678/abcDEF_ghi-JKL":                          "https://discord.com/api/***/***/***",
		"https://hooks.slack.com/services/T0/B0/x":                                                    "https://hooks.slack.com/services/***/***/***",
		"https://acme.webhook.office.com/webhookb2/x@y/IncomingWebhook/z/w":                           "https://acme.webhook.office.com/webhookb2/***/***/***/***",
		"https://prod-1.westeurope.logic.azure.com:443/workflows/a/triggers?api-version=1&sp=x&sig=y": "https://prod-1.westeurope.logic.azure.com:443/workflows/***/***?api-version=1&sp=x&sig=***",
		"https://chat.googleapis.com/v1/spaces/AA/messages?key=abc&token=def":                         "https://chat.googleapis.com/v1/***/***/***?key=***&token=***",
		// URLs with a part that looks like a token.
		"https://hooks.acme.test/in/550e8400-e29b-41d4-a716-446655440000":       "https://hooks.acme.test/in/***",
		"https://hooks.acme.test/in/8f14e45fceea167a5a36dedd4bea2543/tail":      "https://hooks.acme.test/in/***/tail",
		"https://hooks.acme.test/x7Fq9aZ2":                                      "https://hooks.acme.test/***",
		"https://hooks.acme.test/in?secret=hunter2&team=red":                    "https://hooks.acme.test/in?secret=***&team=red",
		"https://hooks.acme.test/in?x=8f14e45fceea167a5a36dedd4bea2543#section": "https://hooks.acme.test/in?x=***#section",
		"https://hooks.acme.test/in?8f14e45fceea167a5a36dedd4bea2543":           "https://hooks.acme.test/in?***",
		// URLs without a secret.
		"https://hooks.acme.test/palisade":                                        "",
		"https://hooks.acme.test/":                                                "",
		"https://hooks.acme.test":                                                 "",
		"https://siem.acme.test:8443/in2/findings.json?team=red&verbose=true":     "",
		"https://hooks.acme.test/palisade-notifications-2024/incomingWebhook/v1/": "",
		"http://127.0.0.1:43211/":                                                 "",
		"https://evil-discord.com.acme.test/api/webhooks/":                        "",
		"not a url": "",
		"":          "",
	} {
		masked, secret := MaskURL(raw)
		if secret != (want != "") || secret && masked != want || !secret && masked != raw {
			t.Errorf("%s: got %q, %t, want %q", raw, masked, secret, want)
		}
		if again, _ := MaskURL(masked); IsMasked(masked) != secret || again != masked {
			t.Errorf("%s: masked again: %q", masked, again)
		}
	}
}

// Random tokens in common alphabets are found in any position.
func TestMaskURLHidesTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.OneOf(rapid.StringMatching(`[0-9a-f]{31}[0-9]`), rapid.StringMatching(`[A-Za-z0-9]{30}a1Z`), rapid.StringMatching(`[A-Z2-7]{31}2`)).Draw(t, "token")
		form := rapid.SampledFrom([]string{"/in/%", "/%/in", "/in?x=%", "/in?%", "/in?token=%&y=z", "/in/prefix-%"}).Draw(t, "form")
		masked, secret := MaskURL("https://hooks.acme.test" + strings.Replace(form, "%", token, 1))
		if !secret || strings.Contains(masked, token) {
			t.Fatalf("%s is shown: %s", token, masked)
		}
	})
}
