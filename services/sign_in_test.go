package services_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// idProvider is an OpenID Connect issuer on this machine. It returns its URL and a function that issues ID tokens.
func idProvider(t *testing.T) (issuer string, idToken func(claims map[string]any) string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	idp := httptest.NewServer(mux)
	t.Cleanup(idp.Close)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": idp.URL, "jwks_uri": idp.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k", Use: "sig", Algorithm: "ES256"}}})
	})
	return idp.URL, func(changes map[string]any) string {
		now := time.Now()
		claims := jwt.MapClaims{"iss": idp.URL, "aud": "palisade", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "email_verified": true}
		maps.Copy(claims, changes)
		token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
		token.Header["kid"] = "k"
		raw, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
}

// Users of an identity provider are admitted only as configured, over both transports, and cannot take over accounts.
func TestSignIn(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		issuer, idToken := idProvider(t)
		s := apitest.Start(t, func(c *config.Config) {
			on(c)
			c.OIDCIssuer, c.OIDCAudience = issuer, "palisade"
		})
		list := "/api/v1/deployments"
		alice := idToken(map[string]any{"sub": "alice-1", "email": "Alice@acme.test"})
		body := s.Body(t, alice, http.MethodGet, list, "", http.StatusForbidden)
		if !strings.Contains(body, "ask an administrator to invite alice@acme.test") {
			t.Errorf("an unknown user reads %s", body)
		}
		_, err := deploymentsv1.NewDeploymentServiceClient(s.Conn).GetDeployment(s.Context(t, alice), &deploymentsv1.GetDeploymentRequest{DeploymentId: s.DeploymentID})
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("over gRPC: %v", err)
		}
		admin, err := services.MintJWT(t.Context(), s.Config, "admin@localhost", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		invite := fmt.Sprintf("/api/onboarding/deployments/%d/invite_members", s.DeploymentID)
		s.Body(t, admin, http.MethodPost, invite, `{"emails":["alice@acme.test"]}`, http.StatusOK)
		if got := s.Body(t, alice, http.MethodGet, list, "", http.StatusOK); !strings.Contains(got, s.Slug) {
			t.Errorf("an invited person sees %s", got)
		}
		if got := s.Get(t, fmt.Sprintf("/api/agent/deployments/%d/users?search=alice", s.DeploymentID)); !strings.Contains(got, `"orgRole":"ORG_ROLE_MEMBER"`) {
			t.Errorf("the members: %s", got)
		}
		s.Body(t, alice, http.MethodPost, invite, `{"emails":["eve@acme.test"]}`, http.StatusForbidden)

		thief := idToken(map[string]any{"sub": "thief", "email": "admin@localhost"})
		s.Body(t, thief, http.MethodGet, list, "", http.StatusForbidden)
		second := idToken(map[string]any{"sub": "alice-2", "email": "alice@acme.test"})
		if body := s.Body(t, second, http.MethodGet, list, "", http.StatusForbidden); !strings.Contains(body, "an administrator removes that member first") || strings.Contains(body, "user link") {
			t.Errorf("the second identity of an address reads %s", body)
		}
		checkLinking(t, s, alice, second)
	})
}

// The settings of the two other admission policies reach the sign-in.
func TestSignInByClaimAndDomain(t *testing.T) {
	issuer, idToken := idProvider(t)
	for name, c := range map[string]struct {
		adjust       func(*config.Config)
		good, bad    map[string]any
		role, change string
	}{
		"claim": {func(c *config.Config) {
			c.OIDCMembership, c.OIDCClaim, c.OIDCClaimMap = "claim", "https://acme.test/groups", "CN=Sec,OU=Groups=admin:web-team;dev=member"
		}, map[string]any{"https://acme.test/groups": []string{"x", "CN=Sec,OU=Groups"}}, map[string]any{"https://acme.test/groups": "CN=Sec"}, "ORG_ROLE_ADMIN", "team_members"},
		"domain": {func(c *config.Config) {
			c.OIDCMembership, c.OIDCDomains = "domain", "Acme.Test"
		}, map[string]any{"email": "a@acme.test"}, map[string]any{"email": "a@acme.test", "email_verified": false}, "ORG_ROLE_MEMBER", "deployment_user"},
	} {
		t.Run(name, func(t *testing.T) {
			s := apitest.Start(t, func(cfg *config.Config) {
				cfg.OIDCIssuer, cfg.OIDCAudience = issuer, "palisade"
				c.adjust(cfg)
			})
			s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/permissions/v2/deployments/%d/teams", s.DeploymentID), `{"team":{"name":"Web Team"}}`, http.StatusOK)
			c.bad["sub"], c.good["sub"] = "unknown", "member"
			s.Body(t, idToken(c.bad), http.MethodGet, "/api/v1/deployments", "", http.StatusForbidden)
			s.Body(t, idToken(c.good), http.MethodGet, "/api/v1/deployments", "", http.StatusOK)
			users, err := services.ListUsers(t.Context(), s.Config, s.Slug)
			if err != nil || len(users) != 2 || users[1].Subject != "member" || users[1].Role != c.role {
				t.Errorf("got %+v, %v", users, err)
			}
			entries := s.Get(t, fmt.Sprintf("/api/audit/v1/deployments/%d/entries?method=sign-in", s.DeploymentID))
			if !strings.Contains(entries, `"kind":"`+c.change+`"`) {
				t.Errorf("the audit trail: %s", entries)
			}
		})
	}
}

// checkLinking moves alice from one identity to another, as the operator.
func checkLinking(t *testing.T, s *apitest.Server, first, second string) {
	t.Helper()
	ctx, cfg := t.Context(), s.Config
	link := func(email, subject, want string) {
		t.Helper()
		if _, err := services.LinkUser(ctx, cfg, email, subject); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("link %s to %s: %v, want %q", email, subject, err, want)
		}
	}
	link("admin@localhost", "alice-1", "cannot be linked")
	link("alice@acme.test", "alice-2", "unlink that first")
	link("nobody@acme.test", "alice-2", "not found")
	link("alice@acme.test", "", "subject must have")
	s.AddUser(t, s.Tenant, "local@acme.test", "ORG_ROLE_READONLY")
	link("local@acme.test", "alice-1", "belongs to user alice@acme.test")
	if _, err := services.UnlinkUser(ctx, cfg, "alice@acme.test"); err != nil {
		t.Fatal(err)
	}
	s.Body(t, first, http.MethodGet, "/api/v1/deployments", "", http.StatusForbidden)
	if u, err := services.LinkUser(ctx, cfg, " Alice@acme.test", "alice-2"); err != nil || u.Subject != "alice-2" {
		t.Fatalf("got %+v, %v", u, err)
	}
	s.Body(t, second, http.MethodGet, "/api/v1/deployments", "", http.StatusOK)
	s.Body(t, first, http.MethodGet, "/api/v1/deployments", "", http.StatusForbidden)

	entries := s.Get(t, fmt.Sprintf("/api/audit/v1/deployments/%d/entries", s.DeploymentID))
	for _, want := range []string{`"method":"oidc/sign-in"`, `"method":"user.link"`, `"method":"user.unlink"`, `"kind":"operator"`, "alice-2", `"kind":"deployment_user"`} {
		if !strings.Contains(entries, want) {
			t.Errorf("the audit trail does not have %s: %s", want, entries)
		}
	}
	err := services.VerifyAudit(ctx, cfg, s.Slug, services.KnownAudit{}, func(string, int64) {}, func(r services.AuditReport) error {
		if len(r.Broken) > 0 {
			t.Errorf("the audit trail is broken: %s", r.Broken)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if users, err := services.ListUsers(ctx, cfg, s.Slug); err != nil || len(users) != 3 || users[1].Subject != "alice-2" || users[1].Role != "ORG_ROLE_MEMBER" {
		t.Errorf("got %+v, %v", users, err)
	}
}
