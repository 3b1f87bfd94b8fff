package services

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
)

// failures are the names of the failed checks. Each must have a fix.
func failures(t *testing.T, checks []Check) []string {
	t.Helper()
	var names []string
	for _, c := range checks {
		if c.Name == "" || c.Detail == "" || c.OK != (c.Fix == "") {
			t.Errorf("incomplete: %+v", c)
		}
		if !c.OK && (c.Name != "planner" || os.Getenv("MAKELEVEL") != "") { // a plain go test uses another SQLite build than make
			names = append(names, c.Name)
		}
	}
	return names
}

func TestDoctorOfAHealthyServer(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	if bad := failures(t, Doctor(t.Context(), cfg)); len(bad) != 0 {
		t.Errorf("before the first start: %v", bad)
	}
	if entries, err := os.ReadDir(cfg.Data); err != nil || len(entries) != 0 {
		t.Errorf("the doctor left something behind: %v, %v", entries, err)
	}
	s, _ := apitest.StartConfigured(t, cfg)
	cfg.HTTP, cfg.GRPC, cfg.Metrics = s.Addresses().HTTP, s.Addresses().GRPC, s.Addresses().Metrics
	checks := Doctor(t.Context(), cfg)
	if bad := failures(t, checks); len(bad) != 0 {
		t.Errorf("while it runs: %v", bad)
	}
	if !slices.ContainsFunc(checks, func(c Check) bool { return strings.Contains(c.Detail, "the server runs") }) {
		t.Errorf("it does not see the server: %v", checks)
	}
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	s, _ := apitest.StartConfigured(t, cfg)
	s.Stop()
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	cfg.GRPC = other.Addr().String()
	if err := os.Chmod(cfg.KeyPath(), 0o644); err != nil {
		t.Fatal(err)
	}
	tls := apitest.TLSConfig(t)
	cfg.TLSCert, cfg.TLSKey = tls.TLSCert, tls.TLSKey
	apitest.WriteCertificate(t, cfg, 1, time.Now().Add(48*time.Hour))
	cfg.OIDCIssuer, cfg.OIDCAudience = "http://127.0.0.1:1", "palisade"
	want := []string{"key", "TLS certificate", "grpc address", "OIDC issuer"}
	if got := failures(t, Doctor(t.Context(), cfg)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := os.Remove(cfg.KeyPath()); err != nil {
		t.Fatal(err)
	}
	if got := failures(t, Doctor(t.Context(), cfg)); !slices.Contains(got, "key") {
		t.Errorf("a lost key: %v", got)
	}
	if err := os.WriteFile(cfg.SQLitePath(), []byte(strings.Repeat("no database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := failures(t, Doctor(t.Context(), cfg)); !slices.Contains(got, "database") {
		t.Errorf("a broken database: %v", got)
	}
	cfg.Database = "postgres://nobody@127.0.0.1:1/none?connect_timeout=1"
	if got := failures(t, Doctor(t.Context(), cfg)); !slices.Contains(got, "database") {
		t.Errorf("no PostgreSQL: %v", got)
	}
}

func TestDoctorChecksTheIssuer(t *testing.T) {
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": issuer.URL, "jwks_uri": issuer.URL + "/keys", "keys": []any{map[string]string{
			"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", // of RFC 8037
		}}})
	}))
	defer issuer.Close()
	cfg := apitest.EmptyConfig(t)
	cfg.OIDCIssuer, cfg.OIDCAudience = issuer.URL, "palisade"
	if bad := failures(t, Doctor(t.Context(), cfg)); len(bad) != 0 {
		t.Errorf("got %v", bad)
	}
}

func TestDoctorOfPendingMigrations(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	if _, err := Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	checks := Doctor(t.Context(), cfg)
	if bad := failures(t, checks); len(bad) != 0 {
		t.Errorf("a migrated store that no server has seen: %v", bad)
	}
}
