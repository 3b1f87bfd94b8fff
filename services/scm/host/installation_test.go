package host_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

func TestInstallations(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	s := hosttest.NewGitHub(t)
	s.AppKey, s.Scopes = &key.PublicKey, nil
	s.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/web", DefaultBranch: "main", Visibility: "private"}}
	c := client(t, egress.Limits{Timeout: time.Minute})
	app := host.OpenApp(enterprise, s.URL, "4711", text, c)
	h, err := app.InstallationIn(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	account, err := h.Check(t.Context(), "acme")
	if err != nil || account.ID != "7001" || !account.Scopes.GetReadContents() || !account.Scopes.GetManageWebhooks() {
		t.Errorf("%+v, %v", account, err)
	}
	if _, err := app.InstallationIn(t.Context(), "globex"); !host.Is(err, host.NotFound) || err.Error() != "the application is not installed in this namespace: install it there, or set accessToken" {
		t.Errorf("elsewhere: %v", err)
	}
	if _, err := host.OpenApp(enterprise, s.URL, "4712", text, c).InstallationIn(t.Context(), "acme"); !host.Is(err, host.Unauthorized) {
		t.Errorf("another application: %v", err)
	}
	if _, err := host.OpenApp(enterprise, s.URL, "4711", "no key", http.DefaultClient).InstallationIn(t.Context(), "acme"); !host.Is(err, host.Unauthorized) {
		t.Errorf("no key: %v", err)
	}
	s.Answer(hosttest.Status(200, `{"id":8801,"permissions":{"contents":"read"},"suspended_at":"2026-01-01T00:00:00Z"}`))
	if _, err := app.InstallationIn(t.Context(), "acme"); !host.Is(err, host.Forbidden) {
		t.Errorf("suspended: %v", err)
	}
}
