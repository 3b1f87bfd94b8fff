package server

import "testing"

// Profiles show what is in memory: whoever reaches the API must not see them.
func TestProfilesAreNotOnTheAPIPort(t *testing.T) {
	cfg := testConfig(t)
	cfg.Pprof = true
	s, out := startServer(t, cfg, domains)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile"} {
		if response, body := send(t, "GET", "http://"+s.Addresses().HTTP+path, out.token(), ""); response.StatusCode != 404 {
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
}
