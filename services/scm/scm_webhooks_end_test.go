package scm_test

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"testing"

	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

const noWebhook = "there is no webhook with this key and signature"

// TestUnsubscribedReceiver: unsubscribing deletes the key and both secrets; a new subscription gets new ones.
func TestUnsubscribedReceiver(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, first := s.hooked(t)
		id := s.Store.Reader.ScmConfig.Query().OnlyIDX(s.System(t))
		s.do(t, http.MethodPost, s.subscriptions(id, "/rotate_secret"), "{}", 200)
		second := s.receiverOf(t, h.Hooks()[0])
		body := event(t, "github_pull_request")
		second.gitHub(t, "ping", `{}`, 200, `{"status":"ignored"}`)
		first.gitHub(t, "ping", `{}`, 200, `{"status":"ignored"}`)

		h.Answer(hosttest.Status(http.StatusBadGateway, "<html>"))
		s.do(t, http.MethodDelete, s.subscriptions(id, ""), "", http.StatusServiceUnavailable)
		h.Answer(nil)
		second.gitHub(t, "ping", `{}`, 200, `{"status":"ignored"}`) // it failed, so nothing has changed

		s.do(t, http.MethodDelete, s.subscriptions(id, ""), "", http.StatusOK)
		first.gitHub(t, "pull_request", body, 404, noWebhook)
		second.gitHub(t, "pull_request", body, 404, noWebhook)
		row := s.row(t, id)
		if row.WebhookKey != "" || row.WebhookSecret != nil || row.PreviousWebhookSecret != nil || row.WebhookRotatedAt != nil {
			t.Errorf("the row still has %+v", row)
		}
		s.do(t, http.MethodPost, s.subscriptions(id, "/rotate_secret"), "{}", http.StatusBadRequest)

		s.do(t, http.MethodPut, s.subscriptions(id, ""), "", http.StatusOK)
		third := s.receiverOf(t, h.Hooks()[0])
		if third.path == second.path || third.secret == second.secret || third.secret == first.secret {
			t.Error("the new subscription has the key or the secret of the old one")
		}
		mixed := third
		mixed.secret = second.secret
		mixed.gitHub(t, "pull_request", body, 404, noWebhook)
		second.gitHub(t, "pull_request", body, 404, noWebhook)
		third.gitHub(t, "pull_request", body, 200, `{"status":"accepted"}`)
		s.settle(t)

		s.do(t, http.MethodPatch, s.path("/%d", id), `{"subscribe":false}`, http.StatusOK)
		third.gitHub(t, "pull_request", body+" ", 404, noWebhook)
	})
}

// TestDeletedReceivers: deleted configurations and applications accept no webhooks.
func TestDeletedReceivers(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, ofConfig := s.hooked(t)
		id := s.Store.Reader.ScmConfig.Query().OnlyIDX(s.System(t))
		h.AppKey = &key.PublicKey
		s.installApp(t, h, key, id)
		ofApp := s.appReceiver(t)
		ofApp.gitHub(t, "ping", `{}`, 200, `{"status":"ignored"}`)
		app := s.Store.Reader.ScmApp.Query().OnlyIDX(s.System(t))
		s.do(t, http.MethodDelete, s.apps(fmt.Sprintf("/%d", app)), "", http.StatusOK)
		ofApp.gitHub(t, "ping", `{}`, 404, noWebhook)
		ofConfig.gitHub(t, "ping", `{}`, 200, `{"status":"ignored"}`)
		s.do(t, http.MethodDelete, s.path("/%d", id), "", http.StatusNoContent)
		ofConfig.gitHub(t, "ping", `{}`, 404, noWebhook)
		if n := s.Store.Reader.AuditEntry.Query().Where(auditentry.ActorKind("host")).CountX(s.System(t)); n != 0 {
			t.Errorf("%d entries", n)
		}
	})
}
