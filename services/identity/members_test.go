package identity_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/ent/user"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func memberPath(s *apitest.Server, userID int64, what string) string {
	return fmt.Sprintf("/api/members/v1/deployments/%d/users/%d/%s", s.DeploymentID, userID, what)
}

func (r requester) userID(t *testing.T, email string) int64 {
	t.Helper()
	return r.Store.Reader.User.Query().Where(user.Email(email)).OnlyIDX(r.System(t))
}

// tokenOf creates a token of a person through the API.
func (r requester) tokenOf(t *testing.T, jwt, name, role, scopes string) (value string, id int64) {
	t.Helper()
	value, _ = r.newToken(t, jwt, fmt.Sprintf(`{"name":%q,"scopes":[%s],"role":%q}`, name, scopes, role))
	return value, r.Store.Reader.Token.Query().Where(token.Name(name)).OnlyIDX(r.System(t))
}

// outcomes are the decisions of a response by token name, with the role that the token has now.
func outcomes(t *testing.T, body string) string {
	t.Helper()
	var response struct {
		Tokens []struct {
			Token    struct{ Name, EffectiveRole string }
			Decision string
		}
	}
	if err := json.Unmarshal([]byte(body), &response); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, one := range response.Tokens {
		list = append(list, strings.TrimSpace(one.Token.Name+" "+strings.TrimPrefix(one.Decision, "TOKEN_DECISION_")+" "+one.Token.EffectiveRole))
	}
	return strings.Join(list, ", ")
}

// TestTokensFollowADemotion: a demoted administrator's token does what the person may do, from the next request on and
// over both wires, whichever way the role was changed.
func TestTokensFollowADemotion(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		chief, ada := s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin), s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleAdmin)
		id := s.userID(t, "ada@acme.test")
		value, _ := s.tokenOf(t, ada, "hers", "ORG_ROLE_ADMIN", `"web-api"`)
		trail := fmt.Sprintf("/api/audit/v1/deployments/%d/entries", s.DeploymentID)
		tokens := tokensPath(s.DeploymentID)
		roles := fmt.Sprintf("/api/agent/deployments/%d/users/%d/roles", s.DeploymentID, id)
		use := func(want int) {
			t.Helper()
			for _, path := range []string{trail, tokens} {
				if got := s.Do(t, value, http.MethodGet, path, ""); got.Status != want && got.Status != http.StatusNotFound {
					t.Errorf("%s: %d %s, want %d", path, got.Status, got.Body, want)
				}
			}
			_, err := identityv1.NewTokensServiceClient(s.Conn).ListTokens(s.Context(t, value), &identityv1.ListTokensRequest{DeploymentId: s.DeploymentID})
			if got := status.Code(err); (got == codes.OK) != (want == http.StatusOK) {
				t.Errorf("gRPC: %v, want %d", err, want)
			}
		}
		use(http.StatusOK)
		s.Body(t, chief, http.MethodPatch, roles, `{"newRole":"ORG_ROLE_READONLY"}`, 200)
		use(http.StatusForbidden)
		has(t, s.Body(t, value, http.MethodGet, tokens, "", 403), "ORG_ROLE_READONLY", "no more than its creator")
		s.Body(t, value, http.MethodGet, projectList, "", 200) // what a reader may do
		s.Body(t, chief, http.MethodPost, memberPath(server, id, "role"), `{"role":"ORG_ROLE_ADMIN"}`, 200)
		use(http.StatusOK)
		s.Body(t, chief, http.MethodDelete, fmt.Sprintf("/api/agent/deployments/%d/users/%d", s.DeploymentID, id), "", 200)
		use(http.StatusForbidden)
		has(t, s.Body(t, value, http.MethodGet, projectList, "", 403), "no longer a member")
		list := s.Body(t, chief, http.MethodGet, fmt.Sprintf("%s?createdBy=%d", tokens, id), "", 200)
		if has(t, list, `"name":"hers"`); strings.Contains(list, "effectiveRole") || strings.Contains(list, "bootstrap") {
			t.Errorf("got %s", list)
		}
	})
}

// TestRemoveMember removes a person, ends some tokens, and hands others over to the deployment.
func TestRemoveMember(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		chief, ada := s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin), s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleAdmin)
		id, self := s.userID(t, "ada@acme.test"), s.userID(t, "chief@acme.test")
		ci, ciID := s.tokenOf(t, ada, "ci", "ORG_ROLE_MEMBER", `"web-api","agent"`)
		own, ownID := s.tokenOf(t, ada, "own", "ORG_ROLE_ADMIN", `"web-api"`)
		rest, _ := s.tokenOf(t, ada, "rest", "ORG_ROLE_ADMIN", `"web-api"`)
		_, chiefID := s.tokenOf(t, chief, "chief's", "ORG_ROLE_ADMIN", `"web-api"`)
		other := s.AddTenant(t, "umbrella")
		otherJWT := s.AddUser(t, other, "zoe@umbrella.test", access.RoleAdmin)
		path := memberPath(server, id, "remove")

		for name, c := range map[string]struct {
			credential, path, body string
			want                   int
			text                   string
		}{
			"a token":                 {s.Token, path, `{}`, 403, "JSON Web Token"},
			"another tenant":          {otherJWT, path, `{}`, 404, "deployment not found"},
			"a stranger":              {chief, memberPath(server, s.userID(t, "zoe@umbrella.test"), "remove"), `{}`, 404, "not found"},
			"nobody":                  {chief, memberPath(server, 999999, "remove"), `{}`, 404, "user 999999 not found"},
			"a token of another":      {chief, path, fmt.Sprintf(`{"tokens":{"keep":["%d"]}}`, chiefID), 404, fmt.Sprintf("token %d not found", chiefID)},
			"a contradiction":         {chief, path, fmt.Sprintf(`{"tokens":{"keep":["%d"],"end":["%[1]d"]}}`, ciID), 400, "both end and be kept"},
			"an unknown decision":     {chief, path, `{"tokens":{"others":"TOKEN_DECISION_X"}}`, 400, "TOKEN_DECISION_X"},
			"one's own, kept":         {chief, memberPath(server, self, "remove"), `{"tokens":{"others":"TOKEN_DECISION_KEEP"}}`, 403, "caller's own"},
			"one's own, handed over":  {chief, tokensPath(s.DeploymentID) + "/hand-over", fmt.Sprintf(`{"tokenIds":["%d"]}`, chiefID), 403, "caller's own"},
			"handed over by a token":  {s.Token, tokensPath(s.DeploymentID) + "/hand-over", fmt.Sprintf(`{"tokenIds":["%d"]}`, chiefID), 403, "JSON Web Token"},
			"a token that is missing": {chief, tokensPath(s.DeploymentID) + "/hand-over", `{"tokenIds":["999999"]}`, 404, "token 999999 not found"},
			"no token":                {chief, tokensPath(s.DeploymentID) + "/hand-over", `{}`, 400, "tokenIds"},
		} {
			if got := s.Do(t, c.credential, http.MethodPost, c.path, c.body); got.Status != c.want || !strings.Contains(got.Body, c.text) {
				t.Errorf("%s: %d %s, want %d %s", name, got.Status, got.Body, c.want, c.text)
			}
		}
		s.Body(t, ada, http.MethodGet, projectList, "", 200)

		body := s.Body(t, chief, http.MethodPost, path, fmt.Sprintf(`{"tokens":{"keep":["%d"],"end":["%d"]}}`, ciID, ownID), 200)
		if got, want := outcomes(t, body), "ci KEEP ORG_ROLE_MEMBER, own END, rest"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		s.Body(t, ada, http.MethodGet, projectList, "", 404)
		s.Body(t, ci, http.MethodGet, projectList, "", 200)
		s.Body(t, own, http.MethodGet, projectList, "", 401)
		s.Body(t, rest, http.MethodGet, projectList, "", 403)
		entry := s.Store.Reader.AuditEntry.Query().Where(auditentry.Method(identityv1.MembersService_RemoveMember_FullMethodName), auditentry.Code("OK")).
			OnlyX(tenant.NewContext(t.Context(), s.DeploymentID))
		var kinds []string
		for _, c := range entry.Changes {
			kinds = append(kinds, c.Kind+" "+c.ID)
		}
		if want := fmt.Sprintf("deployment_user %d, token %d, token %d", id, ownID, ciID); strings.Join(kinds, ", ") != want {
			t.Errorf("the entry has %v, want %s", kinds, want)
		}

		client := identityv1.NewTokensServiceClient(s.Conn)
		left := s.Store.Reader.Token.Query().Where(token.Name("rest")).OnlyIDX(s.System(t))
		handed, err := client.HandOverTokens(s.Context(t, chief), &identityv1.HandOverTokensRequest{DeploymentId: s.DeploymentID, TokenIds: []int64{left, ciID}})
		if err != nil || len(handed.GetTokens()) != 2 || handed.GetTokens()[1].GetEffectiveRole() != "ORG_ROLE_ADMIN" || handed.GetTokens()[1].GetHandedOverAt() == nil {
			t.Errorf("got %v, %v", handed, err)
		}
		s.Body(t, rest, http.MethodGet, projectList, "", 200)
	})
}

// TestChangeMemberRole demotes a person together with a decision about the tokens.
func TestChangeMemberRole(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		chief, ada := s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin), s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleAdmin)
		id := s.userID(t, "ada@acme.test")
		ci, ciID := s.tokenOf(t, ada, "ci", "ORG_ROLE_MEMBER", `"web-api","agent"`)
		rest, _ := s.tokenOf(t, ada, "rest", "ORG_ROLE_ADMIN", `"web-api"`)
		client := identityv1.NewMembersServiceClient(s.Conn)
		request := &identityv1.ChangeMemberRoleRequest{DeploymentId: s.DeploymentID, UserId: id, Role: "ORG_ROLE_KING"}
		if _, err := client.ChangeMemberRole(s.Context(t, chief), request); status.Code(err) != codes.InvalidArgument {
			t.Errorf("got %v", err)
		}
		request.Role, request.Tokens = "ORG_ROLE_READONLY", &identityv1.TokenDecisions{Keep: []int64{ciID}}
		response, err := client.ChangeMemberRole(s.Context(t, chief), request)
		if err != nil {
			t.Fatal(err)
		}
		if list := response.GetTokens(); len(list) != 2 || list[0].GetDecision() != identityv1.TokenDecision_TOKEN_DECISION_KEEP ||
			list[0].GetToken().GetEffectiveRole() != "ORG_ROLE_MEMBER" || list[1].GetToken().GetEffectiveRole() != "ORG_ROLE_READONLY" {
			t.Errorf("got %v", list)
		}
		s.Body(t, ci, http.MethodGet, projectList, "", 200)
		s.Body(t, rest, http.MethodGet, tokensPath(s.DeploymentID), "", 403)
		body := s.Body(t, chief, http.MethodPost, memberPath(server, id, "role"), `{"role":"ORG_ROLE_MEMBER","tokens":{"others":"TOKEN_DECISION_END"}}`, 200)
		if got := outcomes(t, body); got != "rest END" {
			t.Errorf("got %s", got)
		}
		s.Body(t, rest, http.MethodGet, projectList, "", 401)
		root := s.userID(t, access.AdminEmail)
		for _, who := range []int64{root, s.userID(t, "chief@acme.test")} { // the second is the last administrator
			answer := s.Do(t, chief, http.MethodPost, memberPath(server, who, "role"), `{"role":"ORG_ROLE_MEMBER"}`)
			if (answer.Status == 200) != (who == root) || who != root && !strings.Contains(answer.Body, "last administrator") {
				t.Errorf("got %d %s", answer.Status, answer.Body)
			}
		}
	})
}
