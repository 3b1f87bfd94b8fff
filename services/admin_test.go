package services

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/server"
)

func TestTokensOfTheCommandLine(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	ctx := t.Context()
	s, _ := apitest.StartConfigured(t, cfg)
	url := "http://" + s.Addresses().HTTP + "/api/v1/deployments"
	made, value, err := CreateToken(ctx, cfg, CreateTokenRequest{
		Name: "ci", Scopes: []string{"web-api"}, Role: "readonly", ExpiresIn: time.Hour, Deployment: "default",
	})
	if err != nil {
		t.Fatal(err)
	}
	if made.Name != "ci" || made.Role != "ORG_ROLE_READONLY" || !strings.HasSuffix(value, made.Hint) || made.ExpiresAt.Before(time.Now()) {
		t.Errorf("got %+v", made)
	}
	if code, body := apitest.Get(t, http.DefaultClient, url, value); code != http.StatusOK {
		t.Errorf("with the new token: %d %s", code, body)
	}
	// Another process changes a running server: the change holds from the next request on.
	if err := RevokeToken(ctx, cfg, "default", made.ID); err != nil {
		t.Fatal(err)
	}
	if code, _ := apitest.Get(t, http.DefaultClient, url, value); code != http.StatusUnauthorized {
		t.Errorf("with the revoked token: %d", code)
	}
	list, err := ListTokens(ctx, cfg, "default")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(t Token) bool { return t.ID == made.ID })
	if len(list) != 2 || i < 0 || list[i].RevokedAt.IsZero() {
		t.Errorf("got %+v", list)
	}
}

func TestTokenErrorsArePlain(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	ctx := t.Context()
	apitest.StartConfigured(t, cfg)
	scopes := []string{"web-api"}
	for want, req := range map[string]CreateTokenRequest{
		`deployment "nowhere" not found`: {Name: "x", Scopes: scopes, Deployment: "nowhere"},
		"role must be one of":            {Name: "x", Scopes: scopes, Role: "king", Deployment: "default"},
		"scopes may contain":             {Name: "x", Scopes: []string{"all"}, Deployment: "default"},
		"name must have":                 {Scopes: scopes, Deployment: "default"},
	} {
		_, value, err := CreateToken(ctx, cfg, req)
		if err == nil || !strings.HasPrefix(err.Error(), want) || value != "" {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := RevokeToken(ctx, cfg, "default", 99); err == nil || err.Error() != "token 99 not found" {
		t.Errorf("got %v", err)
	}
	_, value, err := CreateToken(ctx, cfg, CreateTokenRequest{Name: "x", Scopes: []string{"agent"}, Role: "admin", Deployment: "default"})
	if err == nil || !strings.HasPrefix(err.Error(), "role must be at most ORG_ROLE_MEMBER") || value != "" {
		t.Errorf("an agent that is administrator: %v", err)
	}
}

// Without a role a token gets the least useful role for its scopes, regardless of the role of new members.
func TestTokenWithoutRole(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	ctx := t.Context()
	apitest.StartConfigured(t, cfg)
	st, err := server.OpenStore(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	err = st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Deployment.Update().SetDefaultRole("ORG_ROLE_ADMIN").Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	for scopes, want := range map[string]string{"web-api": "ORG_ROLE_READONLY", "agent": "ORG_ROLE_MEMBER", "web-api,agent": "ORG_ROLE_MEMBER"} {
		made, _, err := CreateToken(ctx, cfg, CreateTokenRequest{Name: "x", Scopes: strings.Split(scopes, ","), Deployment: "default"})
		if err != nil || made.Role != want {
			t.Errorf("%s: got %+v, %v", scopes, made, err)
		}
	}
}

// A server accepts a token that the command minted, regardless of the address it listens on, also after a move.
func TestUserTokensOfTheCommandLine(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	ctx := t.Context()
	s, _ := apitest.StartConfigured(t, cfg)
	works := func(s *server.Server, token string) bool {
		code, _ := apitest.Get(t, http.DefaultClient, "http://"+s.Addresses().HTTP+"/api/v1/deployments", token)
		return code == http.StatusOK
	}
	before, err := MintJWT(ctx, cfg, "admin@localhost", time.Hour)
	if err != nil || !works(s, before) {
		t.Fatalf("a minted token does not work: %v", err)
	}
	kid, err := RotateJWTKey(ctx, cfg, false)
	if err != nil || kid == "" {
		t.Fatal(err)
	}
	after, err := MintJWT(ctx, cfg, "admin@localhost", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the new key is known", func() bool { return works(s, after) }) // the server reloads keys at most once a second
	if !works(s, before) {
		t.Error("rotation ends the tokens of the old key")
	}
	s.Stop()
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	moved, _ := apitest.StartConfigured(t, cfg) // on another port
	if !works(moved, before) || !works(moved, after) {
		t.Error("a token ends when the server moves to another port")
	}
	if _, err := RotateJWTKey(ctx, cfg, true); err != nil {
		t.Fatal(err)
	}
	if works(moved, before) || works(moved, after) {
		t.Error("a rotation that revokes leaves older tokens")
	}
	if _, err := MintJWT(ctx, cfg, "nobody@example.com", time.Hour); err == nil || !strings.HasPrefix(err.Error(), "user ") {
		t.Errorf("got %v", err)
	}
	if _, err := MintJWT(ctx, cfg, "admin@localhost", 48*time.Hour); err == nil || !strings.Contains(err.Error(), "24h") {
		t.Errorf("got %v", err)
	}
}

func TestMigrateCommands(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	ctx := t.Context()
	if _, err := MigrationStatuses(ctx, cfg); err == nil || !strings.Contains(err.Error(), "there is no database") {
		t.Errorf("got %v", err)
	}
	if _, err := ListTokens(ctx, cfg, "default"); err == nil || !strings.Contains(err.Error(), "palisade serve") {
		t.Errorf("got %v", err)
	}
	applied, err := Migrate(ctx, cfg)
	if err != nil || len(applied) == 0 {
		t.Fatalf("got %v, %v", applied, err)
	}
	again, err := Migrate(ctx, cfg)
	if err != nil || len(again) != 0 {
		t.Errorf("the second time: %v, %v", again, err)
	}
	statuses, err := MigrationStatuses(ctx, cfg)
	if err != nil || len(statuses) != len(applied) || statuses[0].AppliedAt.IsZero() {
		t.Errorf("got %v, %v", statuses, err)
	}
}
