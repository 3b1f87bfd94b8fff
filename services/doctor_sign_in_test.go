package services

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/server"
)

// signInFailures are the doctor's failed sign-in checks, for a server that ran with the configuration before.
func signInFailures(t *testing.T, cfg config.Config) string {
	t.Helper()
	var found []string
	for _, c := range Doctor(t.Context(), cfg) {
		if !c.OK && slices.Contains([]string{"role of new members", "teams of oidc-claim-map"}, c.Name) {
			found = append(found, c.Name+": "+c.Detail)
		}
	}
	return strings.Join(found, "; ")
}

// A store of an earlier version has an unsafe default role. The server warns about it at start, and so does the doctor.
func TestDefaultRoleOfAnOldDeployment(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	run := func(want bool) {
		t.Helper()
		s, out := apitest.StartConfigured(t, cfg)
		s.Stop()
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "becomes an administrator"); got != want {
			t.Errorf("warned: %v, want %v: %s", got, want, out.String())
		}
	}
	cfg.OIDCAudience, cfg.OIDCMembership, cfg.OIDCIssuer = "palisade", "invited", "http://127.0.0.1:1"
	run(false)
	if got := signInFailures(t, cfg); got != "" {
		t.Errorf("of a new deployment: %s", got)
	}
	st, err := server.OpenStore(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = st.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Deployment.Update().SetDefaultRole("ORG_ROLE_ADMIN").Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	run(true)
	if got := signInFailures(t, cfg); !strings.Contains(got, "administrator of default") {
		t.Errorf("got %q", got)
	}
	cfg.OIDCMembership, cfg.OIDCClaim, cfg.OIDCClaimMap = "claim", "groups", "a=member:web:api"
	if got := signInFailures(t, cfg); !strings.Contains(got, "no team api, web") {
		t.Errorf("got %q", got)
	}
	explained := slices.ContainsFunc(Doctor(t.Context(), cfg), func(c Check) bool {
		return c.OK && c.Name == "claim of members" && strings.Contains(c.Detail, "groups decides") && strings.Contains(c.Detail, "too many")
	})
	if !explained {
		t.Error("the doctor does not explain tokens without the claim")
	}
	cfg.OIDCIssuer, cfg.OIDCAudience, cfg.OIDCMembership, cfg.OIDCClaim, cfg.OIDCClaimMap = "", "", "invited", "", ""
	run(false)
	if got := signInFailures(t, cfg); got != "" {
		t.Errorf("without an issuer: %s", got)
	}
}
