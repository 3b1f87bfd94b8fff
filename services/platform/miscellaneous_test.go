package platform_test

import (
	"net/http"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// TestMiscellaneous has the exact answers that probes and clients read.
func TestMiscellaneous(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for path, want := range map[string]string{
			"/api/v1/ping":         `{}`,
			"/api/agent/ping":      `{"message":"pong"}`,
			"/api/health-check":    `{"status":"ok","healthy":true}`,
			"/api/readiness-check": `{"status":"ok","ready":true}`,
			"/api/agent/tenant":    `{"tenant":"palisade.acme.test"}`,
		} {
			if got := s.Body(t, "", http.MethodGet, path, "", http.StatusOK); got != want {
				t.Errorf("%s answers %s, want %s", path, got, want)
			}
		}
		if got := s.Get(t, "/api/agent/ip"); got != `{"ip":"127.0.0.1","cf":""}` {
			t.Errorf("ip %s", got)
		}
		s.Body(t, "", http.MethodGet, "/api/agent/ip", "", http.StatusUnauthorized)
	})
}
