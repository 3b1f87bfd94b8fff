package identity_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// lastUse is written some seconds after a use.
var lastUse = regexp.MustCompile(`,"lastUsedAt":"[^"]+"`)

const projectList = "/api/v1/deployments/acme/projects"

func TestTokens(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		path := tokensPath(s.DeploymentID)
		full := s.Body(t, s.Token, http.MethodPost, path, `{"name":"nightly","scopes":["web-api","agent"],"limitedScopes":["sms"],
			"role":"ORG_ROLE_MEMBER","expiresAt":"2999-01-02T03:04:05Z"}`, 200)
		golden(t, "token_create", full)
		value, own := s.newToken(t, s.Token, `{"name":"日本 CI","scopes":["web-api"],"role":"ORG_ROLE_READONLY"}`)
		s.Body(t, value, http.MethodGet, projectList, "", 200)

		list := s.Get(t, path)
		list = lastUse.ReplaceAllString(list, "")
		golden(t, "tokens", list)
		has(t, list, `"hint":"`+value[len(value)-4:]+`"`)
		if strings.Contains(list, value) || strings.Contains(list, "hash") || strings.Contains(list, "value") {
			t.Errorf("the list shows too much: %s", list)
		}
		client, ctx := identityv1.NewTokensServiceClient(s.Conn), s.Context(t, s.Token)
		response, err := client.ListTokens(ctx, &identityv1.ListTokensRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range response.GetTokens() {
			token.LastUsedAt = nil
		}
		apitest.Same(t, response, list)

		s.Body(t, s.Token, http.MethodDelete, own, "", 200)
		s.Body(t, value, http.MethodGet, projectList, "", 401)
		golden(t, "token_delete_again", s.Body(t, s.Token, http.MethodDelete, own, "", 404))
		created, err := client.CreateToken(ctx, &identityv1.CreateTokenRequest{
			DeploymentId: s.DeploymentID, Name: "grpc", Scopes: []string{"web-api"}, Role: "ORG_ROLE_ADMIN", ExpiresAt: timestamppb.New(time.Now().Add(time.Hour)),
		})
		if err != nil {
			t.Fatal(err)
		}
		id := created.GetToken().GetId()
		deleted, err := client.DeleteToken(s.Context(t, created.GetValue()), &identityv1.DeleteTokenRequest{DeploymentId: s.DeploymentID, TokenId: id})
		if err != nil {
			t.Fatalf("a token that deletes itself: %v", err)
		}
		apitest.Same(t, deleted, fmt.Sprintf(`{"tokenId":%d}`, id))
		_, err = client.ListTokens(s.Context(t, created.GetValue()), &identityv1.ListTokensRequest{DeploymentId: s.DeploymentID})
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("a deleted token: %v", err)
		}
		for _, row := range s.Store.Reader.Token.Query().AllX(s.System(t)) {
			if strings.Contains(string(row.Hash)+row.Name+row.Hint, value) {
				t.Error("the value is stored")
			}
		}
	})
}

func TestTokensByPage(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		at := store.Now()
		err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			for i := range 7 { // created at the same time: only the ids differ
				err := tx.Token.Create().SetUserID(1).SetName(fmt.Sprint("t", i)).SetHash([]byte{byte(i)}).SetHint("xxxx").
					SetScopes([]string{"agent"}).SetRole("ORG_ROLE_ADMIN").SetCreatedAt(at).SetLastUsedAt(at + int64(i)).Exec(ctx)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		client, ctx := identityv1.NewTokensServiceClient(s.Conn), s.Context(t, s.Token)
		var names []string
		request := &identityv1.ListTokensRequest{DeploymentId: s.DeploymentID, Limit: proto.Int64(2)}
		for pages := 0; pages == 0 || request.GetCursor() != ""; pages++ {
			response, err := client.ListTokens(ctx, request)
			if err != nil || len(response.GetTokens()) > 2 || pages > 4 {
				t.Fatalf("page %d: %v, %v", pages, response, err)
			}
			for _, token := range response.GetTokens() {
				names = append(names, token.GetName())
				if used := token.GetLastUsedAt(); token.GetName() == "t6" && (used == nil || store.Micros(used.AsTime()) != at+6) {
					t.Errorf("t6 was last used at %v", used)
				}
			}
			request.Cursor = response.GetCursor()
		}
		if got := strings.Join(names, " "); got != "t6 t5 t4 t3 t2 t1 t0 bootstrap" {
			t.Errorf("got %s", got)
		}
		path := tokensPath(s.DeploymentID)
		for query, code := range map[string]string{
			"?limit=501": "PAGE_SIZE_OUT_OF_RANGE", "?limit=-1": "PAGE_SIZE_OUT_OF_RANGE", "?limit=x": "INVALID_ARGUMENT", "?cursor=nonsense": "INVALID_CURSOR",
		} {
			has(t, s.Body(t, s.Token, http.MethodGet, path+query, "", 400), `"code":"`+code+`"`)
		}
	})
}

func TestDeleteTokens(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		path := tokensPath(s.DeploymentID)
		other := s.AddTenant(t, "umbrella")
		for _, role := range access.Roles {
			for _, scopes := range [][]access.Scope{{access.ScopeAgent}, {access.ScopeWebAPI}, {access.ScopeWebAPI, access.ScopeAgent}} {
				s.AddToken(t, s.Tenant, access.TokenSpec{Name: fmt.Sprint(role, scopes), Role: role, Scopes: scopes})
				s.AddToken(t, other, access.TokenSpec{Name: fmt.Sprint(role, scopes), Role: role, Scopes: scopes})
			}
		}
		for query, want := range map[string]string{
			"":                                   "purpose must be TOKEN_PURPOSE_CLI or TOKEN_PURPOSE_API, got none",
			"?purpose=TOKEN_PURPOSE_SMS":         "purpose must be TOKEN_PURPOSE_CLI or TOKEN_PURPOSE_API, got TOKEN_PURPOSE_SMS",
			"?purpose=TOKEN_PURPOSE_X":           "purpose must be one of TOKEN_PURPOSE_NONE",
			"?purpose=TOKEN_PURPOSE_UNSPECIFIED": "purpose must be TOKEN_PURPOSE_CLI or TOKEN_PURPOSE_API, got none",
			"?purpose=TOKEN_PURPOSE_API":         "roleFilter is required for TOKEN_PURPOSE_API: one of TOKEN_ROLE_AGENT_CLI, TOKEN_ROLE_WEBAPI",
			"?roleFilter=TOKEN_ROLE_MEMBER":      "purpose must be",
			"?purpose=CLI&roleFilter=AGENT_CLI":  "roleFilter must be left out for TOKEN_PURPOSE_CLI, got TOKEN_ROLE_AGENT_CLI",
			"?purpose=TOKEN_PURPOSE_API&roleFilter=TOKEN_ROLE_ADMIN": "roleFilter must be one of",
		} {
			has(t, s.Body(t, s.Token, http.MethodDelete, path+query, "", 400), want)
		}
		count := func(deploymentID int64) int {
			return s.Store.Reader.Token.Query().Where(token.DeploymentID(deploymentID), token.RevokedAtIsNil()).CountX(s.System(t))
		}
		before := count(other.DeploymentID)
		for _, call := range []struct {
			query string
			want  int
		}{
			{"?purpose=TOKEN_PURPOSE_API&roleFilter=TOKEN_ROLE_AGENT_CLI", 0},
			{"?purpose=TOKEN_PURPOSE_CLI", 4},
			{"?purpose=TOKEN_PURPOSE_CLI", 0},
			{"?purpose=TOKEN_PURPOSE_API&roleFilter=TOKEN_ROLE_READ_ONLY", 2},
			{"?purpose=TOKEN_PURPOSE_API&roleFilter=TOKEN_ROLE_MEMBER", 4}, // members and impersonators
			{"?purpose=TOKEN_PURPOSE_API&roleFilter=TOKEN_ROLE_WEBAPI", 3}, // including the caller's own
		} {
			if got := s.Body(t, s.Token, http.MethodDelete, path+call.query, "", 200); got != fmt.Sprintf(`{"deletedCount":%d}`, call.want) {
				t.Errorf("%s: %s, want %d", call.query, got, call.want)
			}
		}
		s.Body(t, s.Token, http.MethodGet, path, "", 401)
		if count(s.DeploymentID) != 0 || count(other.DeploymentID) != before {
			t.Errorf("%d tokens are left; another tenant has %d of %d", count(s.DeploymentID), count(other.DeploymentID), before)
		}
	})
}

// TestTokensCannotEscalate: a caller cannot create a token with more permissions than their own.
func TestTokensCannotEscalate(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		path := tokensPath(s.DeploymentID)
		narrow := s.AddToken(t, s.Tenant, access.TokenSpec{Scopes: []access.Scope{access.ScopeWebAPI}, ExpiresAt: time.Now().Add(time.Hour)})
		soon := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
		for body, want := range map[string]string{
			`{"name":"x","role":"ORG_ROLE_ADMIN"}`:                                       "expiresAt must not be after the expiry of the calling token",
			`{"name":"x","role":"ORG_ROLE_READONLY","expiresAt":"2999-01-01T00:00:00Z"}`: "expiresAt must not be after the expiry of the calling token",
		} {
			has(t, s.Body(t, narrow, http.MethodPost, path, body, 403), want)
		}
		// The scope web-api includes all other scopes.
		s.newToken(t, narrow, `{"name":"scanner","role":"ORG_ROLE_MEMBER","scopes":["agent","workflow-tasks","install-checks"],"expiresAt":"`+soon+`"}`)
		s.newToken(t, narrow, `{"name":"short","scopes":["web-api"],"role":"ORG_ROLE_ADMIN","expiresAt":"`+soon+`"}`)
		jwt := s.AddUser(t, s.Tenant, "dana@acme.test", access.RoleAdmin)
		value, _ := s.newToken(t, jwt, `{"name":"of dana","role":"ORG_ROLE_ADMIN","scopes":["web-api","agent"]}`)
		mine, _ := s.newToken(t, value, `{"name":"of the token of dana","scopes":["web-api"],"role":"ORG_ROLE_MEMBER"}`)
		dana := s.Store.Reader.Token.Query().Where(token.Name("of dana")).OnlyX(s.System(t)).UserID
		if again := s.Store.Reader.Token.Query().Where(token.Name("of the token of dana")).OnlyX(s.System(t)).UserID; again != dana || dana == 1 {
			t.Errorf("created by %d and %d", dana, again)
		}
		limited := s.AddToken(t, s.Tenant, access.TokenSpec{LimitedScopes: []string{"sms"}})
		agent := s.AddToken(t, s.Tenant, access.TokenSpec{Scopes: []access.Scope{access.ScopeAgent}})
		other := s.AddTenant(t, "umbrella")
		for credential, want := range map[string]int{
			mine: 403, s.AddUser(t, s.Tenant, "lee@acme.test", access.RoleMember): 403, limited: 404, agent: 404, other.Token: 404, "": 401,
		} {
			s.Body(t, credential, http.MethodPost, path, `{"name":"x","role":"ORG_ROLE_READONLY"}`, want)
			s.Body(t, credential, http.MethodGet, path, "", want)
			s.Body(t, credential, http.MethodDelete, path+"/1", "", want)
			s.Body(t, credential, http.MethodDelete, path+"?purpose=TOKEN_PURPOSE_CLI", "", want)
		}
		// In this deployment the other's token is not found, and the path sets the deployment of a new token.
		s.Body(t, other.Token, http.MethodDelete, tokensPath(other.DeploymentID)+"/1", "", 404)
		s.Body(t, other.Token, http.MethodPost, tokensPath(other.DeploymentID), fmt.Sprintf(`{"deploymentId":%d,"name":"theirs","scopes":["web-api"],"role":"ORG_ROLE_ADMIN"}`, s.DeploymentID), 200)
		if row := s.Store.Reader.Token.Query().Where(token.Name("theirs")).OnlyX(s.System(t)); row.DeploymentID != other.DeploymentID {
			t.Errorf("a token of deployment %d", row.DeploymentID)
		}
		s.Body(t, s.Token, http.MethodGet, projectList, "", 200)
	})
}

func TestBadTokens(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		path := tokensPath(s.DeploymentID)
		for body, want := range map[string]string{
			`{}`:                                    "name must not be empty",
			`{"name":"  ","role":"ORG_ROLE_ADMIN"}`: "name must have 1 to 255 characters, and not only spaces",
			`{"name":"` + strings.Repeat("日", 256) + `"}`: "name must have at most 255 characters, got 256",
			`{"name":"x"}`:                "role must be one of ORG_ROLE_ADMIN",
			`{"name":"x","role":"owner"}`: "role must be one of ORG_ROLE_ADMIN",
			`{"name":"x","role":"ORG_ROLE_ADMIN","scopes":["root"]}`:                         "scopes[0] must be one of web-api, agent, workflow-tasks, install-checks",
			`{"name":"x","role":"ORG_ROLE_ADMIN","scopes":["agent"]}`:                        "role must be at most ORG_ROLE_MEMBER for a token without the scope web-api, got ORG_ROLE_ADMIN",
			`{"name":"x","role":"ORG_ROLE_ADMIN","scopes":["agent","agent"]}`:                "scopes",
			`{"name":"x","role":"ORG_ROLE_ADMIN","limitedScopes":[""]}`:                      "limitedScopes[0] must be one of sms, scrat, click-to-fix, ai-scan",
			`{"name":"x","role":"ORG_ROLE_ADMIN","limitedScopes":["sms","moon"]}`:            "limitedScopes[1] must be one of sms, scrat, click-to-fix, ai-scan",
			`{"name":"x","role":"ORG_ROLE_ADMIN"}`:                                           "role must be at most ORG_ROLE_MEMBER for a token without the scope web-api",
			`{"name":"x","role":"ORG_ROLE_ADMIN","expiresAt":"2020-01-01T00:00:00Z"}`:        "expiresAt must be in the future, got 2020-01-01T00:00:00Z",
			`{"name":"x","role":"ORG_ROLE_ADMIN","expiresAt":"tomorrow"}`:                    "expiresAt must be",
			`{"name":"x","role":"ORG_ROLE_ADMIN","expiresAt":"1969-12-31T23:59:59.999999Z"}`: "expiresAt must be in the future",
		} {
			has(t, s.Body(t, s.Token, http.MethodPost, path, body, 400), want)
		}
		_, err := identityv1.NewTokensServiceClient(s.Conn).CreateToken(s.Context(t, s.Token), &identityv1.CreateTokenRequest{
			DeploymentId: s.DeploymentID, Name: "x", Role: "ORG_ROLE_ADMIN", ExpiresAt: &timestamppb.Timestamp{Seconds: 1 << 60},
		})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("a time beyond all: %v", err)
		}
		s.Body(t, s.Token, http.MethodDelete, path+"/999", "", 404)
		s.Body(t, s.Token, http.MethodDelete, path+"/x", "", 404)
		if n := s.Store.Reader.Token.Query().CountX(s.System(t)); n != 1 {
			t.Errorf("%d tokens, want the first one", n)
		}
	})
}

// TestRevocationOnEveryNode: a token deleted on one node is rejected by the others at once.
func TestRevocationOnEveryNode(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		if !server.Store.Postgres() {
			t.Skip("SQLite has one node")
		}
		s := requester{server}
		second := requester{apitest.Start(t, func(c *config.Config) {
			c.Database, c.KeyFile = s.Config.Database, filepath.Join(s.Config.Data, "palisade.key")
		})}
		value, path := s.newToken(t, s.Token, `{"name":"shared","scopes":["web-api"],"role":"ORG_ROLE_ADMIN"}`)
		for range 3 {
			second.Body(t, value, http.MethodGet, projectList, "", 200)
		}
		s.Body(t, s.Token, http.MethodDelete, path, "", 200)
		second.Body(t, value, http.MethodGet, projectList, "", 401)
	})
}

// TestDescendantsOnEveryNode: deleting a token also revokes the tokens created with it, and the tokens created with
// those, on all nodes. Tokens created by a user stay.
func TestDescendantsOnEveryNode(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		nodes := []requester{s}
		if s.Store.Postgres() {
			nodes = append(nodes, requester{apitest.Start(t, func(c *config.Config) {
				c.Database, c.KeyFile = s.Config.Database, filepath.Join(s.Config.Data, "palisade.key")
			})})
		}
		const admin = `{"name":"%s","scopes":["web-api"],"role":"ORG_ROLE_ADMIN"}`
		jwt := s.AddUser(t, s.Tenant, "dana@acme.test", access.RoleAdmin)
		first, path := s.newToken(t, jwt, fmt.Sprintf(admin, "first"))
		second, secondPath := s.newToken(t, first, fmt.Sprintf(admin, "second"))
		third, _ := s.newToken(t, second, fmt.Sprintf(admin, "third"))
		apart, _ := s.newToken(t, jwt, fmt.Sprintf(admin, "apart"))
		id := strings.TrimPrefix(secondPath, tokensPath(s.DeploymentID)+"/")
		has(t, s.Get(t, tokensPath(s.DeploymentID)), `"parentId":`+id+`,`)
		s.Body(t, jwt, http.MethodDelete, path, "", 200)
		for _, node := range nodes {
			for _, value := range []string{first, second, third} {
				node.Body(t, value, http.MethodGet, projectList, "", 401)
			}
			node.Body(t, apart, http.MethodGet, projectList, "", 200)
		}
		trail := s.Body(t, s.Token, http.MethodGet, fmt.Sprintf("/api/audit/v1/deployments/%d/entries", s.DeploymentID), "", 200)
		if n := strings.Count(trail, `\"name\":\"third\"`) + strings.Count(trail, `"name":"third"`); n < 2 {
			t.Errorf("the audit trail shows the creation and the end of a descendant %d times: %s", n, trail)
		}
		// Deletion by purpose includes them too.
		parent, _ := s.newToken(t, jwt, `{"name":"parent","scopes":["web-api"],"role":"ORG_ROLE_READONLY"}`)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			id := tx.Token.Query().Where(token.Name("parent")).OnlyIDX(ctx)
			return tx.Token.Create().SetDeploymentID(s.DeploymentID).SetUserID(1).SetName("child").SetHash([]byte("x")).SetHint("xxxx").
				SetParentID(id).SetScopes([]string{"agent"}).SetRole("ORG_ROLE_MEMBER").SetCreatedAt(store.Now()).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		got := s.Body(t, jwt, http.MethodDelete, tokensPath(s.DeploymentID)+"?purpose=TOKEN_PURPOSE_API&roleFilter=TOKEN_ROLE_READ_ONLY", "", 200)
		if got != `{"deletedCount":2}` {
			t.Errorf("by purpose: %s", got)
		}
		s.Body(t, parent, http.MethodGet, projectList, "", 401)
	})
}

// TestTokensAreAudited: creation and deletion record the token without its value.
func TestTokensAreAudited(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		value, path := s.newToken(t, s.Token, `{"name":"audited","scopes":["web-api"],"role":"ORG_ROLE_ADMIN"}`)
		s.Body(t, s.Token, http.MethodDelete, path, "", 200)
		s.AddToken(t, s.Tenant, access.TokenSpec{Scopes: []access.Scope{access.ScopeAgent}})
		s.Body(t, s.Token, http.MethodDelete, tokensPath(s.DeploymentID)+"?purpose=TOKEN_PURPOSE_CLI", "", 200)
		var got []string
		for _, entry := range s.Store.Reader.AuditEntry.Query().Order(ent.Asc(auditentry.FieldID)).AllX(s.System(t)) {
			for _, change := range entry.Changes {
				got = append(got, fmt.Sprintf("%s %s %t %t", change.Kind, change.ID, change.Before != nil, change.After != nil))
				if text := string(change.Before) + string(change.After); strings.Contains(text, value) || !strings.Contains(text, `"role":"ORG_ROLE_ADMIN"`) {
					t.Errorf("%s", text)
				}
			}
		}
		if want := "token 2 false true\ntoken 2 true false\ntoken 3 true false"; strings.Join(got, "\n") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestTokenWithoutScopes: the Web API permission is enabled explicitly (contract, authentication). A token without
// scopes has none of them. Stored tokens keep what they have, also a restriction by a word that is not accepted now.
func TestTokenWithoutScopes(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		client := identityv1.NewTokensServiceClient(s.Conn)
		created, err := client.CreateToken(s.Context(t, s.Token), &identityv1.CreateTokenRequest{DeploymentId: s.DeploymentID, Name: "grpc", Role: "ORG_ROLE_MEMBER"})
		if err != nil || len(created.GetToken().GetScopes()) > 0 {
			t.Fatalf("%v, %v", created.GetToken(), err)
		}
		value, _ := s.newToken(t, s.Token, `{"name":"http","scopes":[],"role":"ORG_ROLE_MEMBER"}`)
		for _, token := range []string{value, created.GetValue()} {
			has(t, s.Body(t, token, http.MethodGet, projectList, "", 404), `"code":"SCOPE_MISSING"`, "this token has no scope")
			s.Body(t, token, http.MethodPost, "/api/cli/scans", "{}", 404)
		}
		has(t, s.Get(t, tokensPath(s.DeploymentID)), `"name":"http","hint":"`+value[len(value)-4:]+`","scopes":[],`)

		stored := s.AddToken(t, s.Tenant, access.TokenSpec{Scopes: []access.Scope{access.ScopeWebAPI}})
		s.Body(t, stored, http.MethodGet, projectList, "", 200)
		restricted := s.AddToken(t, s.Tenant, access.TokenSpec{Scopes: []access.Scope{access.ScopeWebAPI}, LimitedScopes: []string{"a word of old"}})
		has(t, s.Body(t, restricted, http.MethodGet, projectList, "", 404), "limited to a word of old")
	})
}
