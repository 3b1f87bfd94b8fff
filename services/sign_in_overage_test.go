package services_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// Regression: an identity provider leaves the groups out of a token if they are too many, and the membership ended.
func TestSignInWithTooManyGroups(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		issuer, idToken := idProvider(t)
		cfg := apitest.EmptyConfig(t)
		on(&cfg)
		cfg.OIDCIssuer, cfg.OIDCAudience = issuer, "palisade"
		cfg.OIDCMembership, cfg.OIDCClaim, cfg.OIDCClaimMap = "claim", "groups", "sec=admin"
		running, out := apitest.StartConfigured(t, cfg)
		issued := time.Now().Add(-time.Hour)
		send := func(claims map[string]any, want int) string {
			t.Helper()
			issued = issued.Add(time.Minute)
			claims["iat"] = issued.Unix()
			raw := idToken(claims)
			code, body := 0, ""
			for range 2 {
				code, body = apitest.Get(t, http.DefaultClient, "http://"+running.Addresses().HTTP+"/api/v1/deployments", raw)
			}
			if code != want || strings.Contains(out.String(), raw) {
				t.Errorf("%v: %d %s", claims, code, body)
			}
			return body
		}
		roles := func() string {
			t.Helper()
			users, err := services.ListUsers(t.Context(), cfg, "default")
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, u := range users {
				if u.Subject != "" {
					list = append(list, u.Subject+" "+u.Role)
				}
			}
			return strings.Join(list, ", ")
		}
		overage := map[string]any{
			"_claim_names":   map[string]any{"groups": "src1"},
			"_claim_sources": map[string]any{"src1": map[string]any{"endpoint": "https://graph.example/groups"}},
		}
		with := func(subject string, claims map[string]any) map[string]any {
			made := map[string]any{"sub": subject}
			for name, value := range claims {
				made[name] = value
			}
			return made
		}
		send(with("ada", map[string]any{"groups": []string{"sec"}}), http.StatusOK)
		send(with("ada", overage), http.StatusOK)
		send(with("ada", map[string]any{"hasgroups": true}), http.StatusOK)
		if got := roles(); got != "ada ORG_ROLE_ADMIN" {
			t.Errorf("after tokens without the groups: %s", got)
		}
		if n := strings.Count(out.String(), "the member keeps role and teams"); n != 2 {
			t.Errorf("%d lines for two tokens, each used twice: %s", n, out)
		}
		body := send(with("new", overage), http.StatusForbidden)
		if !strings.Contains(body, "overage") || !strings.Contains(body, "assign fewer groups") {
			t.Errorf("a new user reads %s", body)
		}
		send(with("ada", map[string]any{"groups": []string{}}), http.StatusOK)
		warned := strings.Contains(out.String(), "the last administrator lost the role")
		if got := roles(); strings.Contains(got, "ADMIN") || !warned {
			t.Errorf("after an empty list: %s, %s", got, out)
		}
	})
}
