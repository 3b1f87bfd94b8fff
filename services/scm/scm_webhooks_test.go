package scm_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmconfig"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

func TestWebhookLife(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, "")
		none := s.Get(t, s.subscriptions(id, ""))
		apitest.Golden(t, "list_scm_webhooks_none", none)
		subscribed := s.do(t, http.MethodPut, s.subscriptions(id, ""), "", http.StatusOK)
		goldenBody(t, "subscribe_scm_webhook", h.URL, subscribed)
		listed := s.Get(t, s.subscriptions(id, ""))
		goldenBody(t, "list_scm_webhooks", h.URL, listed)
		over, err := s.hooks.ListScmWebhookSubscription(s.Context(t, s.Token), &scmv1.ListScmWebhookSubscriptionRequest{DeploymentId: s.DeploymentID, ConfigId: id})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, over, listed)
		row := s.row(t, id)
		hook := h.Hooks()[0]
		if hook.URL != "https://palisade.acme.test/api/scm/webhooks/"+row.WebhookKey || len(row.WebhookKey) < 40 || len(hook.Secret) < 40 || hook.Insecure {
			t.Errorf("the host has %+v, the receiver is %q", hook, row.WebhookKey)
		}
		again, err := s.hooks.ScmWebhookSubscriptionSubscribe(s.Context(t, s.Token), &scmv1.ScmWebhookSubscriptionSubscribeRequest{DeploymentId: s.DeploymentID, ConfigId: id})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, again, subscribed)
		if hooks := h.Hooks(); len(hooks) != 1 || hooks[0].Secret != hook.Secret {
			t.Errorf("subscribed twice: %+v", hooks)
		}
		removed := s.do(t, http.MethodDelete, s.subscriptions(id, ""), "", http.StatusOK)
		if removed != subscribed {
			t.Errorf("removed %s\nwas     %s", removed, subscribed)
		}
		if got := s.Get(t, s.subscriptions(id, "")); got != none || len(h.Hooks()) != 0 {
			t.Errorf("after: %s, the host has %+v", got, h.Hooks())
		}
		gone := s.do(t, http.MethodDelete, s.subscriptions(id, ""), "", http.StatusOK)
		apitest.Golden(t, "unsubscribe_scm_webhook_none", gone)
	})
}

func TestOtherPeoplesWebhooksStay(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitLab(t, `,"subscribe":true`)
		other := s.AddTenant(t, "umbrella")
		body := fmt.Sprintf(`{"type":"SCM_TYPE_GITLAB_SELFMANAGED","namespace":"acme/platform","baseUrl":%q,"accessToken":%q,"subscribe":true}`, h.URL, h.Token)
		if got := s.Do(t, other.Token, http.MethodPost, fmt.Sprintf("/api/scm/deployments/%d/configs", other.DeploymentID), body); got.Status != http.StatusCreated {
			t.Fatal(got.Body)
		}
		if len(h.Hooks()) != 2 {
			t.Fatalf("the host has %+v", h.Hooks())
		}
		key := s.row(t, id).WebhookKey
		s.do(t, http.MethodDelete, s.subscriptions(id, ""), "", http.StatusOK)
		if hooks := h.Hooks(); len(hooks) != 1 || strings.HasSuffix(hooks[0].URL, key) {
			t.Errorf("the host has %+v", hooks)
		}
		if body := s.Get(t, s.path("/%d/check", id)); !strings.Contains(body, `"ok":true`) || len(s.read(t, id).Subscriptions) != 0 {
			t.Errorf("another's webhook is shown as ours: %s", body)
		}
	})
}

func TestRotate(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, "")
		rotate := s.subscriptions(id, "/rotate_secret")
		if got := s.do(t, http.MethodPost, rotate, "", http.StatusBadRequest); !strings.Contains(got, "subscribe first") {
			t.Error(got)
		}
		s.do(t, http.MethodPut, s.subscriptions(id, ""), "{}", http.StatusOK)
		first, before := h.Hooks()[0].Secret, s.row(t, id)
		apitest.Golden(t, "rotate_scm_webhook_secret", s.do(t, http.MethodPost, rotate, "", http.StatusOK))
		second, after := h.Hooks()[0].Secret, s.row(t, id)
		if first == second || after.WebhookKey != before.WebhookKey {
			t.Errorf("secret %q, then %q; key %q, then %q", first, second, before.WebhookKey, after.WebhookKey)
		}
		if !slices.Equal(after.PreviousWebhookSecret, before.WebhookSecret) || slices.Equal(after.WebhookSecret, before.WebhookSecret) || after.WebhookRotatedAt == nil {
			t.Error("the old secret is not kept for the calls that are on their way")
		}
		h.Answer(hosttest.Status(502, "<html>"))
		if got := s.do(t, http.MethodPost, rotate, "", http.StatusServiceUnavailable); !strings.Contains(got, "status 502") {
			t.Error(got)
		}
		h.Answer(nil)
		if now := s.row(t, id); !slices.Equal(now.WebhookSecret, after.WebhookSecret) {
			t.Error("a secret was stored that the host does not have")
		}
	})
}

func TestSubscribeByPatch(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, "")
		got := configOf(t, s.do(t, http.MethodPatch, s.path("/%d", id), `{"subscribe":true}`, http.StatusOK))
		if len(got.Subscriptions) != 1 || got.Subscriptions[0].ScmURL != h.URL+"/acme" || len(h.Hooks()) != 1 {
			t.Fatalf("%+v, the host has %+v", got, h.Hooks())
		}
		if got := configOf(t, s.do(t, http.MethodPatch, s.path("/%d", id), `{"subscribe":false,"autoScan":true}`, http.StatusOK)); len(got.Subscriptions) != 0 || len(h.Hooks()) != 0 || !got.AutoScan {
			t.Errorf("%+v, the host has %+v", got, h.Hooks())
		}
		h.Answer(hosttest.Status(403, `{"message":"Resource not accessible by integration"}`))
		got = configOf(t, s.do(t, http.MethodPatch, s.path("/%d", id), `{"subscribe":true,"autoScan":false}`, http.StatusOK))
		if got.AutoScan || got.Status == nil || got.Status.OK || !strings.Contains(got.Status.Error, "webhook: ") || !strings.Contains(got.Status.Error, "not accessible by integration") {
			t.Errorf("what the host refused is not shown: %+v", got)
		}
		if got := s.do(t, http.MethodPut, s.subscriptions(id, ""), "", http.StatusBadRequest); !strings.Contains(got, "FAILED_PRECONDITION") {
			t.Error(got)
		}
	})
}

// TestMovedWebhooks changes the namespace: the old one's webhook is deleted, the new one gets its own.
func TestMovedWebhooks(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, `,"subscribe":true`)
		s.Get(t, s.path("/%d/check", id))
		old, key := h.Hooks()[0], s.row(t, id).WebhookKey
		if got := configOf(t, s.do(t, http.MethodPatch, s.path("/%d", id), `{"namespace":"Acme"}`, http.StatusOK)); len(got.Subscriptions) != 1 || got.ScmID != "7001" || s.row(t, id).WebhookKey != key {
			t.Errorf("another spelling moved it: %+v", got)
		}
		got := configOf(t, s.do(t, http.MethodPatch, s.path("/%d", id), `{"namespace":"globex"}`, http.StatusOK))
		if got.Namespace != "globex" || got.ScmID != "" || got.TokenScopes != nil || len(got.Subscriptions) != 1 || got.Subscriptions[0].ScmURL != h.URL+"/globex" {
			t.Errorf("after the move: %+v", got)
		}
		apitest.Eventually(t, "the old webhook is deleted", func() bool {
			return h.Count(fmt.Sprintf("DELETE /api/v3/orgs/Acme/hooks/%d", old.ID)) == 1
		})
		if hooks := h.Hooks(); len(hooks) != 1 || hooks[0].URL == old.URL || hooks[0].Secret == old.Secret || s.row(t, id).WebhookKey == key {
			t.Errorf("the receiver of the old namespace still counts: %+v", hooks)
		}
	})
}

func TestDeletedConfigsWebhook(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitLab(t, `,"subscribe":true`)
		s.do(t, http.MethodDelete, s.path("/%d", id), "", http.StatusNoContent)
		apitest.Eventually(t, "the webhook is deleted", func() bool { return len(h.Hooks()) == 0 })
	})
}

func TestPersonsHaveNoWebhooks(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h := hosttest.NewGitHub(t)
		id, body := s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "octavia", h.Token, `,"subscribe":true`)
		if got := configOf(t, body); got.Status == nil || !strings.Contains(got.Status.Error, "webhooks for organizations, not for users") {
			t.Errorf("created %+v", got)
		}
		if got := s.do(t, http.MethodPut, s.subscriptions(id, ""), "", http.StatusBadRequest); !strings.Contains(got, "not for users") {
			t.Error(got)
		}
		if body := s.Get(t, s.path("/%d/check", id)); !strings.Contains(body, `"ok":true`) {
			t.Error(body)
		}
	})
}

// TestFailingChecks: a check answers 200 with the error for any failure of the host.
func TestFailingChecks(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, "")
		check := s.path("/%d/check", id)
		for name, answer := range map[string]http.HandlerFunc{
			"set a new accessToken":           hosttest.Status(401, `{"message":"Bad credentials"}`),
			"needed: admin:org":               hosttest.Status(403, `{"message":"Forbidden"}`, "X-Accepted-OAuth-Scopes", "admin:org"),
			"check the namespace":             hosttest.Status(404, `{"message":"Not Found"}`),
			"rate limit is used up":           hosttest.Status(429, `{}`, "Retry-After", "30"),
			"try again later":                 hosttest.Status(500, `oops`),
			"a control character":             hosttest.Status(422, `{"message":"a control\u0000 character"}`),
			"not from this type of host":      hosttest.Status(200, `<html>`),
			"redirects to another address":    http.RedirectHandler("http://127.0.0.1:1/elsewhere", http.StatusFound).ServeHTTP,
			"the host redirected too often":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
			"the host's answer was too large": hosttest.Status(200, `"`+strings.Repeat("x", 9<<20)+`"`),
		} {
			h.Answer(answer)
			body := s.Get(t, check)
			if !strings.Contains(body, `"ok":false`) || !strings.Contains(body, name) || strings.Contains(body, "tokenScopes") {
				t.Errorf("%s: %s", name, body)
			}
			if got := s.read(t, id); got.Status == nil || got.Status.OK || !strings.Contains(got.Status.Error, name) {
				t.Errorf("%s is not stored: %+v", name, got.Status)
			}
		}
		h.Answer(nil)
		goldenBody(t, "check_scm_config_recovered", h.URL, s.Get(t, check))
		if err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.ScmConfig.Update().Where(scmconfig.ID(id)).SetAccessToken([]byte("damaged")).Exec(ctx)
		}); err != nil {
			t.Fatal(err)
		}
		if got := s.do(t, http.MethodGet, check, "", http.StatusInternalServerError); !strings.Contains(got, `"internal error"`) {
			t.Error(got)
		}
		empty, _ := s.create(t, "SCM_TYPE_GITLAB", "", "acme", "", "")
		if body := s.Get(t, s.path("/%d/check", empty)); !strings.Contains(body, "set accessToken") {
			t.Error(body)
		}
		for _, kind := range []string{"SCM_TYPE_BITBUCKET", "SCM_TYPE_HARNESS"} {
			id, _ := s.create(t, kind, "", "acme", "t", "")
			for _, call := range []struct{ method, path string }{
				{http.MethodGet, s.path("/%d/check", id)}, {http.MethodPut, s.subscriptions(id, "")}, {http.MethodPost, s.path("/%d/_sync", id)},
			} {
				got := s.do(t, call.method, call.path, "", http.StatusBadRequest)
				if !strings.Contains(got, kind+" is not supported yet; supported: SCM_TYPE_GITHUB, ") || !strings.Contains(got, "FAILED_PRECONDITION") {
					t.Error(got)
				}
			}
		}
	})
}

// TestRotationsAtOnce: concurrent rotations leave host and store with the same secret.
func TestRotationsAtOnce(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, `,"subscribe":true`)
		var wait sync.WaitGroup
		for range 6 {
			wait.Go(func() {
				answer := s.Do(t, s.Token, http.MethodPost, s.subscriptions(id, "/rotate_secret"), "")
				if answer.Status != http.StatusOK && answer.Status != http.StatusConflict {
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
			})
			wait.Go(func() { s.do(t, http.MethodPut, s.subscriptions(id, ""), "", http.StatusOK) })
		}
		wait.Wait()
		keyring, err := secret.Open(s.Config.KeyPath(), false)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := keyring.Unseal(s.row(t, id).WebhookSecret, fmt.Appendf(nil, "scm_configs/%d/%d/webhook_secret", s.DeploymentID, id))
		if hooks := h.Hooks(); err != nil || len(hooks) != 1 || string(stored) != hooks[0].Secret {
			t.Errorf("stored %q, %v; the host has %+v", stored, err, hooks)
		}
	})
}
