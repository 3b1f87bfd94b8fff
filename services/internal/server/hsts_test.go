package server_test

import (
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
)

// TestStrictTransport: callers that use TLS, of the server or a proxy, get Strict-Transport-Security with every
// response. Plain HTTP on loopback does not send it.
func TestStrictTransport(t *testing.T) {
	ask := func(t *testing.T, client *http.Client, url, want string) {
		t.Helper()
		for _, path := range []string{"/api/v1/ping", "/login", "/healthz", "/nowhere", "/api/v1/deployments"} {
			response, err := client.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if got := response.Header.Values("Strict-Transport-Security"); len(got) > 1 || response.Header.Get("Strict-Transport-Security") != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
	}
	t.Run("own TLS", func(t *testing.T) {
		cfg := apitest.TLSConfig(t)
		pool := apitest.WriteCertificate(t, cfg, 1, time.Now().Add(time.Hour))
		s, _ := apitest.StartConfigured(t, cfg)
		ask(t, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}, "https://"+s.Addresses().HTTP, "max-age=31536000")
	})
	t.Run("behind a proxy", func(t *testing.T) {
		cfg := apitest.EmptyConfig(t)
		cfg.BehindProxy = true
		s, _ := apitest.StartConfigured(t, cfg)
		ask(t, http.DefaultClient, "http://"+s.Addresses().HTTP, "max-age=31536000")
	})
	t.Run("plain", func(t *testing.T) {
		s, _ := apitest.StartConfigured(t, apitest.EmptyConfig(t))
		ask(t, http.DefaultClient, "http://"+s.Addresses().HTTP, "")
	})
}
