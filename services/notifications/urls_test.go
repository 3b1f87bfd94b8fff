package notifications_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apitest"
)

// urlToken is the secret part of a URL.
const urlToken = "8f14e45fceea167a5a36dedd4bea2543"

// noURLToken requires that the secret part of a URL is neither returned nor stored in plain text.
func (c caller) noURLToken(t *testing.T, answers ...string) {
	t.Helper()
	for _, row := range c.Store.Reader.NotificationRule.Query().AllX(c.System(t)) {
		answers = append(answers, fmt.Sprint(row.Config, string(row.Secrets)))
	}
	for _, row := range c.Store.Reader.NotificationWebhook.Query().AllX(c.System(t)) {
		answers = append(answers, row.URL+string(row.SealedURL))
	}
	for _, entry := range c.Store.Reader.AuditEntry.Query().AllX(c.System(t)) {
		answers = append(answers, fmt.Sprint(entry.Request, entry.Changes))
		for _, change := range entry.Changes {
			answers = append(answers, string(change.Before)+string(change.After))
		}
	}
	for _, text := range answers {
		if strings.Contains(text, urlToken) {
			t.Errorf("the secret part of a URL is in %s", text)
		}
	}
}

// A URL with a token is sealed and returned masked, for rules and webhooks. Saving the masked URL keeps the stored one.
func TestSecretURLs(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		to := newReceiver(t, nil)
		secret, shown := to.URL+"/in/"+urlToken+"?team=red", to.URL+"/in/***?team=red"
		id := s.rule(t, "hook", secret, "")
		path := s.actions(fmt.Sprintf("/%d", id))
		replace := func(config string, want int) string {
			return s.Body(t, s.Token, http.MethodPut, path, `{"notificationRule":{"name":"hook","channel":"webhook","is_enabled":true,"config":{`+config+`}}}`, want)
		}
		delivers := func(target string) {
			t.Helper()
			if got := s.Body(t, s.jwt, http.MethodPost, target+"/test", "{}", 200); !strings.Contains(got, `"success":true`) {
				t.Error(got)
			}
		}
		has := func(text string, config string) {
			t.Helper()
			if !strings.Contains(text, `"config":{`+config+`}`) {
				t.Errorf("%s does not have the config {%s}", text, config)
			}
		}
		own := fmt.Sprintf(`"url":%q`, shown)
		has(s.Body(t, s.Token, http.MethodPost, s.actions("/list"), "{}", 200), own)
		delivers(path)
		has(replace(own, 200), own) // the masked URL
		delivers(path)
		has(replace(``, 200), own) // a credential may be omitted
		delivers(path)
		if got := replace(`"url":"https://hooks.acme.test/in/***"`, 400); !strings.Contains(got, "url must be the whole URL") {
			t.Error(got)
		}
		plain := fmt.Sprintf(`"url":%q`, to.URL+"/palisade")
		has(replace(plain, 200), plain)
		delivers(path)
		if got := replace(own, 400); !strings.Contains(got, "url must be the whole URL") {
			t.Error(got)
		}
		has(replace(fmt.Sprintf(`"url":%q`, secret), 200), own)

		made := s.Body(t, s.jwt, http.MethodPost, s.webhooks(""), fmt.Sprintf(`{"name":"hook","url":%q,"webhookSecret":%q}`, secret, hookSecret), 200)
		if want := fmt.Sprintf(`"url":%q`, shown); !strings.Contains(made, want) {
			t.Errorf("%s does not have %s", made, want)
		}
		delivers(s.webhooks("/1"))
		update := func(url string, want int) string {
			return s.Body(t, s.jwt, http.MethodPut, s.webhooks("/1"), fmt.Sprintf(`{"name":"hook","url":%q}`, url), want)
		}
		update(shown, 200)
		delivers(s.webhooks("/1"))
		update("https://hooks.acme.test/***", 400)
		s.Body(t, s.jwt, http.MethodPost, s.webhooks(""), fmt.Sprintf(`{"name":"other","url":%q}`, shown), 400)
		s.noURLToken(t, made, s.Body(t, s.jwt, http.MethodGet, s.webhooks(""), "", 200), s.Body(t, s.jwt, http.MethodGet, s.webhooks("/1"), "", 200),
			s.Body(t, s.Token, http.MethodPost, s.actions("/list"), "{}", 200), s.Get(t, s.deliveries("")))
		update(to.URL+"/palisade", 200)
		delivers(s.webhooks("/1"))
		if row := s.Store.Reader.NotificationWebhook.Query().OnlyX(s.System(t)); row.URL != to.URL+"/palisade" || len(row.SealedURL) != 0 {
			t.Errorf("a plain URL is stored as %q", row.URL)
		}
	})
}

// A URL stored in plain text by an older version is returned masked, and sealed when it is saved.
func TestURLsOfBefore(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		to := newReceiver(t, nil)
		secret, shown := to.URL+"/in/"+urlToken, to.URL+"/in/***"
		id := s.rule(t, "hook", to.URL, "")
		s.Body(t, s.jwt, http.MethodPost, s.webhooks(""), fmt.Sprintf(`{"name":"hook","url":%q,"webhookSecret":%q}`, to.URL, hookSecret), 200)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			if err := tx.NotificationRule.UpdateOneID(id).SetConfig(map[string]string{"url": secret}).Exec(ctx); err != nil {
				return err
			}
			return tx.NotificationWebhook.UpdateOneID(1).SetURL(secret).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		path := s.actions(fmt.Sprintf("/%d", id))
		list, hook := s.Body(t, s.Token, http.MethodPost, s.actions("/list"), "{}", 200), s.Body(t, s.jwt, http.MethodGet, s.webhooks("/1"), "", 200)
		for _, text := range []string{list, hook} {
			if !strings.Contains(text, fmt.Sprintf(`"url":%q`, shown)) {
				t.Errorf("%s does not show %s", text, shown)
			}
		}
		s.Body(t, s.Token, http.MethodPut, path, fmt.Sprintf(`{"notificationRule":{"name":"hook","channel":"webhook","is_enabled":true,"config":{"url":%q}}}`, shown), 200)
		s.Body(t, s.jwt, http.MethodPut, s.webhooks("/1"), fmt.Sprintf(`{"name":"hook","url":%q}`, shown), 200)
		s.noURLToken(t, list, hook)
		for _, target := range []string{path, s.webhooks("/1")} {
			apitest.Golden(t, "rule_test_ok", s.Body(t, s.jwt, http.MethodPost, target+"/test", "{}", 200))
		}
	})
}
