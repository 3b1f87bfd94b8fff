package server

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/store"
)

// TestCorruptPageEndsReadiness: overwritten pages make the node not ready.
func TestCorruptPageEndsReadiness(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Data = filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	st := openCheckedStore(t, cfg, true)
	if got := Corruption(t.Context(), st); got != "" {
		t.Fatalf("a good database: %s", got)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = openCheckedStore(t, cfg, false)
	defer func() { _ = st.Close() }()
	raw, err := os.ReadFile(cfg.SQLitePath())
	if err != nil {
		t.Fatal(err)
	}
	for at := len(raw) / 2; at < len(raw); at++ {
		raw[at] = 0xa5
	}
	if err := os.WriteFile(cfg.SQLitePath(), raw, 0o600); err != nil { // in place, under the open database
		t.Fatal(err)
	}
	p := newProbes(func(context.Context) error { return nil }, func() (string, bool) { return "", false })
	p.serving(nil)
	var told bytes.Buffer
	p.checkPages(t.Context(), st, slog.New(slog.NewTextHandler(&told, nil)))
	answer := httptest.NewRecorder()
	p.readiness(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "corrupt") || !strings.Contains(told.String(), "corrupt") {
		t.Errorf("%d %s, log %q", answer.Code, answer.Body, told.String())
	}
	health, err := p.health.Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || health.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health over gRPC: %v, %v", health, err)
	}
	if Corruption(t.Context(), st) == "" {
		t.Error("it was not found again")
	}
}

func openCheckedStore(t *testing.T, cfg config.Config, migrate bool) *store.Store {
	t.Helper()
	st, err := OpenStore(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if migrate {
		if _, err := st.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return st
}
