package scm_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// TestConfigOfAnApplication checks a configuration without a token and with an application installed at the host.
func TestConfigOfAnApplication(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	eachConfig(t, func(t *testing.T, s configCaller) {
		h := hosttest.NewGitHub(t)
		h.AppKey, h.Scopes = &key.PublicKey, nil
		id, _ := s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "acme", "", "")
		if body := s.Get(t, s.path("/%d/check", id)); !strings.Contains(body, "set accessToken") {
			t.Error(body)
		}
		s.installApp(t, h, key, id)
		if err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return errors.Join(tx.ScmConfig.UpdateOneID(id).SetInstalled(false).Exec(ctx), tx.ScmApp.Update().SetCodeAccess(false).Exec(ctx))
		}); err != nil {
			t.Fatal(err)
		}
		body := s.Get(t, s.path("/%d/check", id))
		if !strings.Contains(body, `"ok":true`) || !strings.Contains(body, `"manageWebhooks":true`) {
			t.Error(body)
		}
		got := s.read(t, id)
		if got.HasAccessToken || got.ScmID != "7001" {
			t.Errorf("%+v", got)
		}
		// The check has seen that the application is installed and reads code.
		goldenBody(t, "list_scm_config_with_app", h.URL, s.Get(t, s.path("")))
		second, _ := s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "globex", "", fmt.Sprintf(`,"scmConfigId":"%d"`, id))
		if body := s.Get(t, s.path("/%d/check", second)); !strings.Contains(body, "the application is not installed in this namespace") {
			t.Error(body)
		}
		if row := s.row(t, second); row.Installed {
			t.Error("the application is installed in another namespace only")
		}
		s.byScmID(t, id)
		s.followsInstallation(t, h, id)
		s.movesWithApp(t, id)
	})
}

// movesWithApp: the state of the application does not follow a configuration into another namespace.
func (c configCaller) movesWithApp(t *testing.T, id int64) {
	t.Helper()
	if err := c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return errors.Join(tx.ScmConfig.UpdateOneID(id).SetInstalled(true).SetSuspended(true).Exec(ctx), tx.ScmApp.Update().SetSuspended(true).Exec(ctx))
	}); err != nil {
		t.Fatal(err)
	}
	for namespace, want := range map[string]string{"initech": `"installed":false,"suspended":false`, "Acme": `"installed":true,"suspended":true`} {
		if body := c.do(t, http.MethodPatch, c.path("/%d", id), fmt.Sprintf(`{"namespace":%q}`, namespace), 200); !strings.Contains(body, want) {
			t.Errorf("in %s: %s", namespace, body)
		}
		c.do(t, http.MethodPatch, c.path("/%d", id), `{"namespace":"hooli"}`, 200)
	}
}

// followsInstallation: synchronisations follow what the host says about the application.
func (c configCaller) followsInstallation(t *testing.T, h *hosttest.GitHub, id int64) {
	t.Helper()
	for _, step := range []struct {
		answer                           string
		status                           int
		installed, suspended, codeAccess bool
	}{
		{`{"message":"Not Found"}`, 404, false, false, false},
		{`{"id":8801,"permissions":{"metadata":"read"},"suspended_at":"2026-05-04T10:20:30Z"}`, 200, true, true, false},
		{`{"id":8801,"permissions":{"contents":"write"}}`, 200, true, false, true},
		{`{"message":"Server Error"}`, 500, true, false, true},
	} {
		h.Answer(hosttest.Status(step.status, step.answer))
		client := scmv1.NewScmServiceClient(c.Conn)
		if _, err := client.CheckScmConfig(c.Context(t, c.Token), &scmv1.CheckScmConfigRequest{DeploymentId: c.DeploymentID, ConfigId: id}); err != nil {
			t.Errorf("%s: %v", step.answer, err)
		}
		body := c.Get(t, c.path(""))
		var list struct {
			Configs []struct {
				Installed, Suspended bool
				App                  *struct{ CodeAccess bool }
			}
		}
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
		if got := list.Configs[0]; got.Installed != step.installed || got.Suspended != step.suspended || got.App.CodeAccess != step.codeAccess {
			t.Errorf("after %s: %+v %+v", step.answer, got, got.App)
		}
	}
	h.Answer(nil)
}

// byScmID: the host's id of the namespace, which answers show, names the configuration, except for a deletion.
func (c configCaller) byScmID(t *testing.T, id int64) {
	t.Helper()
	scmID := c.read(t, id).ScmID
	if body := c.do(t, http.MethodPatch, c.path("/%s", scmID), `{"autoScan":true}`, 200); configOf(t, body).ID != id || !configOf(t, body).AutoScan {
		t.Error(body)
	}
	c.do(t, http.MethodPatch, c.path("/%s", scmID), `{"autoScan":false}`, 200)
	c.Get(t, c.path("/%s/check", scmID))
	number, err := strconv.ParseInt(scmID, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.hooks.ListScmWebhookSubscription(c.Context(t, c.Token), &scmv1.ListScmWebhookSubscriptionRequest{DeploymentId: c.DeploymentID, ConfigId: number})
	if err != nil || list.GetConfigId() != id {
		t.Errorf("got %v, %v", list, err)
	}
	if body := c.do(t, http.MethodDelete, c.path("/%s", scmID), "", 404); !strings.Contains(body, "SCM config "+scmID+" not found") {
		t.Error(body)
	}
	globex := c.AddTenant(t, "umbrella")
	c.Body(t, globex.Token, http.MethodGet, fmt.Sprintf("/api/scm/deployments/%d/configs/%s/check", globex.DeploymentID, scmID), "", 404)
}

// installApp stores an application for a configuration, as its registration does.
func (c configCaller) installApp(t testing.TB, h *hosttest.GitHub, key *rsa.PrivateKey, configID int64) {
	t.Helper()
	keyring, err := secret.Open(c.Config.KeyPath(), false)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	err = c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		app, err := tx.ScmApp.Create().SetDeploymentID(c.DeploymentID).SetRequestID("req-1").SetState("complete").SetScmType("SCM_TYPE_GITHUB_ENTERPRISE").
			SetBaseURL(h.URL).SetNamespace("acme").SetCreatedBy(1).SetSlug("palisade-acme").SetAppID("4711").SetName("Palisade of Acme").SetCodeAccess(true).
			SetCreatedAt(store.Now()).SetExpiresAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		sealed, err := keyring.Seal(text, fmt.Appendf(nil, "scm_apps/%d/%d/private_key", c.DeploymentID, app.ID))
		if err != nil {
			return err
		}
		if err := app.Update().SetPrivateKey(sealed).Exec(ctx); err != nil {
			return err
		}
		return tx.ScmConfig.UpdateOneID(configID).SetScmAppID(app.ID).SetInstalled(true).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}
