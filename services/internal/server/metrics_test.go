package server_test

import (
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// Profiles show memory contents, so callers of the API must not reach them.
func TestProfilesAreNotOnTheAPIPort(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	cfg.Pprof = true
	s, out := apitest.StartConfigured(t, cfg)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile"} {
		if response, body := send(t, "GET", "http://"+s.Addresses().HTTP+path, out.Token(), ""); response.StatusCode != 404 {
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
}
