package scm_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
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
		body := s.Get(t, s.path("/%d/check", id))
		if !strings.Contains(body, `"ok":true`) || !strings.Contains(body, `"manageWebhooks":true`) {
			t.Error(body)
		}
		got := s.read(t, id)
		if got.HasAccessToken || got.ScmID != "7001" {
			t.Errorf("%+v", got)
		}
		goldenBody(t, "list_scm_config_with_app", h.URL, s.Get(t, s.path("")))
		second, _ := s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "globex", "", fmt.Sprintf(`,"scmConfigId":"%d"`, id))
		if body := s.Get(t, s.path("/%d/check", second)); !strings.Contains(body, "the application is not installed in this namespace") {
			t.Error(body)
		}
	})
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
