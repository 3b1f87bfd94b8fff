package rules_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// names returns the sorted names of the rules in a configuration.
func (c caller) names(t *testing.T, target string) string {
	t.Helper()
	answer := c.Get(t, target)
	if !strings.HasPrefix(answer, `{"rule_config":{"rules":[`) {
		t.Fatalf("%s: %.200s", target, answer)
	}
	var got struct {
		Config struct{ Rules []struct{ ID string } } `json:"rule_config"`
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, rule := range got.Config.Rules {
		out = append(out, rule.ID)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestScannerConfigurations(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		more := "rules:\n" + python("acme.python.flask.debug", "app.run(debug=True)") + python("acme.pythonic", "x")
		c.mustDo(t, "POST", path(s.Tenant, "rules"), importBody("", "few.yaml", few, "more.yaml", more))
		c.mustDo(t, "PATCH", path(s.Tenant, "rules"), `{"names":["acme.python.eval"],"mode":"comment"}`)
		c.mustDo(t, "PATCH", path(s.Tenant, "rules"), `{"names":["acme.token"],"mode":"block"}`)
		c.mustDo(t, "PATCH", path(s.Tenant, "rules"), `{"names":["acme.pythonic"],"mode":"off"}`)
		config := c.Get(t, "/p/default")
		apitest.Golden(t, "pack_default", config)
		const all = "acme.python.eval acme.python.flask.debug acme.token acme/web/lodash"
		for target, want := range map[string]string{
			"/p/default": all, "/p/all": all, "/p/auto": all, "/p/import": all, "/c/auto": all, "/c/p/default": all, "/p/Default": all,
			"/p/starter": "", "/p/publish": "", "/p/go": "", "/p/python": "acme.python.eval acme.python.flask.debug", "/c/p/py": "acme.python.eval acme.python.flask.debug",
			"/p/typescript": "acme/web/lodash", "/p/secrets": "acme.token", "/p/supply-chain": "acme/web/lodash", "/p/sca": "acme/web/lodash", "/p/sast": "acme.python.eval acme.python.flask.debug",
			"/r/acme.python.eval": "acme.python.eval", "/r/acme/web/lodash": "acme/web/lodash", "/c/r/acme%2Fweb%2Flodash": "acme/web/lodash",
			"/r/acme.python": "acme.python.eval acme.python.flask.debug", "/r/acme/web": "acme/web/lodash", "/r/acme.pythonic": "acme.pythonic",
			"/s/1": "acme.python.eval", "/c/s/2": "acme/web/lodash",
		} {
			if got := c.names(t, target); got != want {
				t.Errorf("%s: got %q, want %q", target, got, want)
			}
		}
		for _, target := range []string{"/p/nothing", "/p/owasp-top-ten", "/r/acme.p", "/r/nothing", "/r/acme.python.", "/s/x", "/s/99", "/s/dana:snippet", "/s/a/b", "/c/r/nothing"} {
			answer := c.Body(t, s.Token, "GET", target, "", 404)
			var body map[string]string
			if err := json.Unmarshal([]byte(answer), &body); err != nil || len(body) != 1 || body["error"] == "" {
				t.Errorf("%s: %s", target, answer)
			}
		}
		client := rulesv1.NewScannerRulesServiceClient(s.Conn)
		check := same(t, config)
		check(client.GetRulePack(s.Context(t, s.Token), &rulesv1.GetRulePackRequest{Pack: "default"}))
		check(client.GetAutoRules(s.Context(t, s.Token), &rulesv1.GetAutoRulesRequest{}))

		agent := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "ci", Scopes: []access.Scope{access.ScopeAgent}, Role: access.RoleMember})
		if got := c.Body(t, agent, "GET", "/p/default", "", 200); got != config {
			t.Errorf("an agent gets %s", got)
		}
		if answer := s.Do(t, "", "GET", "/p/default", ""); answer.Status != http.StatusUnauthorized || answer.Body != "Not authorized" && !strings.Contains(answer.Body, "Not authorized") {
			t.Errorf("without a token: %d %s", answer.Status, answer.Body)
		}
		rival := s.AddTenant(t, "rival")
		for _, target := range []string{"/r/acme.python.eval", "/s/1"} {
			c.Body(t, rival.Token, "GET", target, "", 404)
		}
		if strings.Contains(c.Body(t, rival.Token, "GET", "/c/auto", "", 200), "acme.python.eval") {
			t.Error("another tenant gets the rule")
		}
	})
}

// published is a request that publishes a rule.
func published(name, visibility, more string) string {
	return fmt.Sprintf(`{"definition":{"rules":[{"id":%q,"languages":["python"],"severity":"ERROR","message":"A <b>.","pattern":"eval($X)","metadata":{"n":5}}]},
		"visibility":%q,"language":"python","deployment_id":null,"test_target":"eval(x)","registry_check_id":null%s}`, name, visibility, more)
}

func TestPublish(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		const target = "/api/registry/rules"
		private := c.mustDo(t, "POST", target, published("acme.mine", "org_private", ""))
		apitest.Golden(t, "publish_org_private", private)
		unlisted := c.mustDo(t, "POST", target, strings.Replace(published("acme.draft", "unlisted", ""), `"deployment_id":null`, fmt.Sprintf(`"deployment_id":%d`, s.DeploymentID), 1))
		apitest.Golden(t, "publish_unlisted", unlisted)
		if got := c.names(t, "/c/auto"); got != "acme.mine" {
			t.Errorf("scans run %s", got)
		}
		if got := c.names(t, "/s/2") + " " + c.names(t, "/r/acme.draft"); got != "acme.draft acme.draft" {
			t.Errorf("%s", got)
		}
		mustContain(t, c.Get(t, path(s.Tenant, "rules/acme.mine")), `"RULE_ORIGIN_PUBLISH"`, `"RULE_MODE_MONITOR"`, `"message":"A <b>."`, `"metadata":{"n":5}`)
		mustContain(t, c.Get(t, path(s.Tenant, "rules/acme.draft")), `"RULE_VISIBILITY_UNLISTED"`)
		// Publishing the same rule again is a no-op. A rule that scans run cannot become unlisted; the reverse is allowed.
		if again := c.mustDo(t, "POST", target, published("acme.draft", "unlisted", "")); again != unlisted {
			t.Errorf("again: %s", again)
		}
		mustContain(t, c.Body(t, s.Token, "POST", target, published("acme.mine", "unlisted", ""), 409), "is one that scans of the organization run")
		c.mustDo(t, "POST", target, published("acme.draft", "org_private", ""))
		if got := c.names(t, "/c/auto"); got != "acme.draft acme.mine" {
			t.Errorf("scans run %s", got)
		}
		client := rulesv1.NewScannerRulesServiceClient(s.Conn)
		definition, err := structpb.NewStruct(map[string]any{"rules": []any{map[string]any{
			"id": "acme.mine", "languages": []any{"python"}, "severity": "ERROR", "message": "A <b>.", "pattern": "eval($X)", "metadata": map[string]any{"n": 5},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		check := same(t, private)
		check(client.PublishRule(s.Context(t, s.Token), &rulesv1.PublishRuleRequest{Definition: definition, Visibility: "org_private"}))
		mustContain(t, c.Get(t, path(s.Tenant, "rules/acme.mine")), `"version":1,`)
	})
}

func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		const target = "/api/registry/rules"
		rival := s.AddTenant(t, "rival")
		good := published("acme.mine", "org_private", "")
		for _, test := range []struct {
			name, token, body string
			status            int
			want              string
		}{
			{"public", s.Token, published("acme.mine", "public", ""), 400, "there is no public registry here"},
			{"visibility", s.Token, published("acme.mine", "secret", ""), 400, "visibility must be one of"},
			{"other deployment", s.Token, strings.Replace(good, `"deployment_id":null`, fmt.Sprintf(`"deployment_id":%d`, rival.DeploymentID), 1), 404, "deployment not found"},
			{"bad rule", s.Token, strings.Replace(good, `"ERROR"`, `"WORSE"`, 1), 400, `definition: line 1: rule acme.mine: severity must be one of`},
			{"no definition", s.Token, `{"visibility":"org_private"}`, 400, "definition is required"},
			{"no rules", s.Token, `{"visibility":"org_private","definition":{"rules":[]}}`, 400, "rules is an empty list"},
			{"two rules", s.Token, strings.Replace(good, `{"rules":[`, `{"rules":[{"id":"a","languages":["go"],"severity":"LOW","message":"m","pattern":"x"},`, 1), 400, "definition must have one rule, got 2"},
			{"member", s.AddToken(t, s.Tenant, access.TokenSpec{Name: "member", Role: access.RoleMember}), good, 403, "ORG_ROLE_MEMBER may not do this"},
			{"agent of an administrator", s.AddToken(t, s.Tenant, access.TokenSpec{Name: "ci", Scopes: []access.Scope{access.ScopeAgent}}), good, 404, "not found"},
			{"agent", s.AddToken(t, s.Tenant, access.TokenSpec{Name: "ci2", Role: access.RoleMember, Scopes: []access.Scope{access.ScopeAgent}}), good, 404, "not found"},
			{"read-only", s.AddToken(t, s.Tenant, access.TokenSpec{Name: "reader", Role: access.RoleReadOnly}), good, 403, "ORG_ROLE_READONLY may not do this"},
		} {
			answer := c.Body(t, test.token, "POST", target, test.body, test.status)
			mustContain(t, answer, test.want)
			if !strings.HasPrefix(answer, `{"error":`) || strings.Contains(answer, `"code"`) != strings.Contains(answer, "SCOPE_MISSING") {
				t.Errorf("%s: %s", test.name, answer)
			}
		}
		if n := s.Store.Reader.RuleDocument.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d refused rules are stored", n)
		}
	})
}
