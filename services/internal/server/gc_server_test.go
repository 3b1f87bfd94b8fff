package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/storetest"
)

func TestServerServesAfterReleasingMemory(t *testing.T) {
	for _, database := range []string{"sqlite", "postgres"} {
		t.Run(database, func(t *testing.T) {
			cfg := apitest.EmptyConfig(t)
			cfg.LogLevel = "debug"
			if database == "postgres" {
				cfg.Database = storetest.Postgres(t)
			}
			s, out := apitest.StartConfigured(t, cfg)
			for range 3 {
				s.ReleaseMemory(t.Context())
				if code, body := apitest.Get(t, http.DefaultClient, "http://"+s.Addresses().HTTP+"/api/v1/deployments", out.Token()); code != http.StatusOK {
					t.Errorf("%d %s", code, body)
				}
			}
			if strings.Contains(out.String(), "not all memory") {
				t.Errorf("in the log:\n%s", out)
			}
		})
	}
}
