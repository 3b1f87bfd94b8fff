//lint:file-ignore SA1019 deprecated operations are tested too

package policies_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func boardPath(of apitest.Tenant, more string) string {
	return fmt.Sprintf("/api/agent/deployments/%d/ruleboards%s", of.DeploymentID, more)
}

func (s caller) board(t testing.TB, status int, method, more, body string, holds ...string) string {
	t.Helper()
	return s.want(t, status, s.Token, method, boardPath(s.Tenant, more), body, "", holds...)
}

func TestRuleboards(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		s.found(t, "acme/web", "acme.eval", 3)
		s.found(t, "acme/api", "acme.exec", 1)
		client := policiesv1.NewRuleboardServiceClient(s.Conn)
		apitest.Golden(t, "boards_none", s.board(t, 200, "GET", "", ""))
		apitest.Golden(t, "board_default", s.board(t, 200, "GET", "/default", ""))
		apitest.Golden(t, "board_created", s.board(t, 201, "POST", "", `{"name":"Web team","assigned_repos":["acme/web"]}`))
		s.board(t, 201, "POST", "", `{"name":"Web secrets","type":"RULEBOARD_TYPE_SECRETS","assigned_repos":["acme/web","acme/api"]}`)
		boards := s.board(t, 200, "GET", "", "")
		apitest.Golden(t, "boards", boards)
		same[*policiesv1.ListRuleboardsResponse](t, boards)(client.ListRuleboards(s.context(t, ""), &policiesv1.ListRuleboardsRequest{DeploymentId: s.DeploymentID}))
		if got := s.board(t, 200, "GET", "?type=RULEBOARD_TYPE_SECRETS", ""); strings.Contains(got, "web-team") || !strings.Contains(got, "web-secrets") {
			t.Errorf("got %s", got)
		}

		// A new board changes nothing.
		const all = "eval[] exec[] key[] lodash[] token[]"
		if web := s.sent(t, "acme/web"); web != all {
			t.Errorf("got %s", web)
		}
		put := s.board(t, 200, "PUT", "/web-team", `{"changes":[
			{"item":{"id":"import","type":"ruleset"},"policy":"rule-board-pr-comments","update_type":"add"},
			{"item":{"id":"acme.eval"},"policy":"block"}]}`)
		apitest.Golden(t, "board_changed", put)
		if got := s.board(t, 200, "GET", "/web-team", ""); got != put {
			t.Errorf("get answers %s, put %s", got, put)
		}
		s.board(t, 200, "PUT", "/web-secrets", `{"changes":[{"item":{"id":"acme.token","type":"rule"},"policy":"rule-board-block"},
			{"item":{"id":"acme.key","type":"rule"},"update_type":"remove"}]}`)
		for project, want := range map[string]string{
			"acme/web": "eval[block] exec[comment] lodash[] token[block]", "acme/api": "eval[] exec[] lodash[] token[block]", "": all,
		} {
			if got := s.sent(t, project); got != want {
				t.Errorf("%q runs %s, want %s", project, got, want)
			}
		}
		s.board(t, 200, "PUT", "/web-team", `{"changes":[{"item":{"id":"acme.eval"},"update_type":"reset"}]}`)
		if got := s.sent(t, "acme/web"); got != "eval[comment] exec[comment] lodash[] token[block]" {
			t.Errorf("got %s", got)
		}

		counts := s.board(t, 200, "GET", "/web-team/finding_counts", "")
		apitest.Golden(t, "board_counts", counts)
		same[*policiesv1.GetRuleboardFindingCountsResponse](t, counts)(client.GetRuleboardFindingCounts(s.context(t, ""),
			&policiesv1.GetRuleboardFindingCountsRequest{DeploymentId: s.DeploymentID, RuleboardSlug: "web-team"}))
		if got := s.board(t, 200, "GET", "/default/finding_counts?since=2020-01-01T00:00:00Z", ""); strings.Contains(got, "eval") || !strings.Contains(got, "exec") {
			t.Errorf("got %s", got)
		}
		if got := s.board(t, 200, "GET", "/web-team/finding_counts?until=2020-01-01T00:00:00Z", ""); got != `{"items":[]}` {
			t.Errorf("got %s", got)
		}

		overview := s.board(t, 200, "PUT", "/web-team/overview", `{"name":"API team","assigned_repos":["acme/api"]}`)
		apitest.Golden(t, "board_overview_put", overview)
		full := s.board(t, 200, "GET", "/web-team/overview", "")
		apitest.Golden(t, "board_overview", full)
		same[*policiesv1.GetRuleboardOverviewResponse](t, full)(client.GetRuleboardOverview(s.context(t, ""),
			&policiesv1.GetRuleboardOverviewRequest{DeploymentId: s.DeploymentID, RuleboardSlug: "web-team"}))
		if got := s.sent(t, "acme/web"); got != "eval[] exec[] lodash[] token[block]" {
			t.Errorf("got %s", got)
		}
		// A project leaves its other board of the product.
		s.board(t, 201, "POST", "", `{"name":"Other","assigned_repos":["acme/api"]}`)
		if got := s.board(t, 200, "GET", "/web-team/overview", ""); !strings.Contains(got, `"assigned_repo_items":[]`) {
			t.Errorf("got %s", got)
		}
		if answer := s.Do(t, s.Token, http.MethodDelete, boardPath(s.Tenant, "/web-secrets"), ""); answer.Status != 204 || answer.Body != "" {
			t.Errorf("got %d %s", answer.Status, answer.Body)
		}
		if got := s.sent(t, "acme/web"); got != all {
			t.Errorf("got %s", got)
		}
		s.board(t, 200, "PUT", "/default", `{"changes":[{"item":{"id":"default","type":"ruleset"},"policy":"comment"},{"item":{"id":"acme.exec"},"policy":"disabled"}]}`)
		if got := s.sent(t, "acme/web"); got != "eval[comment] key[] lodash[] token[]" {
			t.Errorf("got %s", got)
		}
		apitest.Golden(t, "boards_audit", changesOf(t, s))
	})
}

// TestSourcingPolicy: a finding names the rule board of its project, at once after a change.
func TestSourcingPolicy(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		s.found(t, "acme/web", "acme.eval", 2)
		s.found(t, "acme/api", "acme.exec", 1)
		want := func(policies ...string) {
			t.Helper()
			body := s.Get(t, "/api/v1/deployments/acme/findings?issue_type=sast&page_size=100")
			var page struct {
				Findings []struct {
					Policy json.RawMessage `json:"sourcing_policy"`
				}
			}
			if err := json.Unmarshal([]byte(body), &page); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range page.Findings {
				got = append(got, string(f.Policy))
			}
			slices.Sort(got)
			if !slices.Equal(got, policies) {
				t.Errorf("got %v, want %v", got, policies)
			}
		}
		const monitor = `{"id":1,"name":"Monitor","slug":"rule-board-audit"}`
		want(monitor, monitor, monitor)
		s.board(t, 201, "POST", "", `{"name":"Web team","assigned_repos":["acme/web"]}`)
		s.board(t, 201, "POST", "", `{"name":"Secrets","type":"RULEBOARD_TYPE_SECRETS","assigned_repos":["acme/api"]}`)
		want(monitor, `{"id":101,"name":"Web team","slug":"web-team"}`, `{"id":101,"name":"Web team","slug":"web-team"}`)
		s.board(t, 200, "PUT", "/web-team/overview", `{"name":"API team","assigned_repos":["acme/api"]}`)
		want(monitor, monitor, `{"id":101,"name":"API team","slug":"web-team"}`)
		s.board(t, 204, "DELETE", "/web-team", "")
		want(monitor, monitor, monitor)
	})
}

func TestRuleboardProblems(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		s.board(t, 201, "POST", "", `{"name":"Web team","assigned_repos":["acme/web"]}`)
		s.board(t, 200, "PUT", "/web-team", `{"changes":[{"item":{"id":"acme.eval"},"policy":"block"}]}`)
		before := s.board(t, 200, "GET", "/web-team", "") + s.board(t, 200, "GET", "", "")
		s.board(t, 409, "POST", "", `{"name":"web TEAM"}`, "ALREADY_EXISTS")
		s.board(t, 409, "POST", "", `{"name":"Rule board: block"}`, "RESERVED_SLUG")
		s.board(t, 409, "POST", "", `{"name":"Default"}`, "RESERVED_SLUG")
		s.board(t, 400, "POST", "", `{"name":"привет"}`, "INVALID_ARGUMENT")
		s.board(t, 400, "POST", "", `{}`, "name must not be empty")
		s.board(t, 400, "POST", "", `{"name":"x","assigned_repos":["acme/gone"]}`, "there is no project")
		s.board(t, 400, "POST", "", `{"name":"x","assigned_repos":["globex/web"]}`, "there is no project")
		s.board(t, 400, "PUT", "/web-team/overview", `{"name":"x","assigned_repos":["acme/api","acme/gone"]}`, "there is no project")
		s.board(t, 400, "PUT", "/default/overview", `{"name":"x"}`, "default board")
		s.board(t, 400, "DELETE", "/default", "", "default board")
		s.board(t, 400, "DELETE", "/default-secrets", "", "default board")
		for _, more := range []string{"/gone", "/gone/overview", "/gone/finding_counts"} {
			s.board(t, 404, "GET", more, "", "NOT_FOUND")
		}
		for change, text := range map[string]string{
			`{}`: "item is required",
			`{"item":{"id":"acme.gone"},"policy":"block"}`:                      "has no rule",
			`{"item":{"id":"acme.token"},"policy":"block"}`:                     "has no rule",
			`{"item":{"id":"p/ci","type":"ruleset"},"policy":"block"}`:          "there is no ruleset",
			`{"item":{"id":"acme.eval","type":"pack"},"policy":"block"}`:        "must be rule or ruleset",
			`{"item":{"id":"acme.eval"},"policy":"maybe"}`:                      "policy must be one of",
			`{"item":{"id":"acme.eval"}}`:                                       "policy must be one of",
			`{"item":{"id":"acme.eval"},"policy":"block","update_type":"drop"}`: "update_type must be one of",
		} {
			s.board(t, 400, "PUT", "/web-team", `{"changes":[{"item":{"id":"acme.exec"},"policy":"block"},`+change+`]}`, text)
		}
		s.board(t, 400, "PUT", "/default", `{"changes":[{"item":{"id":"acme.eval"},"update_type":"reset"}]}`, "must not be reset")
		if got := s.board(t, 200, "GET", "/web-team", "") + s.board(t, 200, "GET", "", ""); got != before {
			t.Errorf("something refused was stored: %s", got)
		}
		globex := s.AddTenant(t, "globex")
		s.want(t, 404, globex.Token, "GET", boardPath(s.Tenant, "/web-team"), "", "", "deployment not found")
		s.want(t, 404, globex.Token, "GET", boardPath(globex, "/web-team"), "", "", "not found")
		token := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly})
		s.want(t, 200, token, "GET", boardPath(s.Tenant, "/web-team"), "", "")
		s.want(t, 403, token, "PUT", boardPath(s.Tenant, "/web-team"), `{"changes":[{"item":{"id":"acme.exec"},"policy":"block"}]}`, "")
		user := s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleAdmin)
		s.want(t, 200, user, "GET", boardPath(s.Tenant, "/web-team"), "", "")
	})
}

func TestDeprecatedPolicies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		s.board(t, 201, "POST", "", `{"name":"Web team","assigned_repos":["acme/web"]}`)
		v1, v2 := fmt.Sprintf("/api/v1/deployments/%d/policies", s.DeploymentID), fmt.Sprintf("/api/policies/v1/deployments/%d", s.DeploymentID)
		client := policiesv1.NewPoliciesServiceClient(s.Conn)
		list := s.Get(t, v1)
		apitest.Golden(t, "policies", list)
		if got := s.Get(t, v2); got != list {
			t.Errorf("got %s", got)
		}
		same[*policiesv1.ListPoliciesResponse](t, list)(client.ListPolicies(s.context(t, ""), &policiesv1.ListPoliciesRequest{DeploymentId: s.DeploymentID}))
		rules := s.Get(t, v1+"/4")
		apitest.Golden(t, "policy_rules", rules)
		if got := s.Get(t, v2+"/4/rules"); got != rules {
			t.Errorf("got %s", got)
		}
		same[*policiesv1.ListPolicyRulesResponse](t, rules)(client.ListPolicyRules(s.context(t, ""), &policiesv1.ListPolicyRulesRequest{DeploymentId: s.DeploymentID, PolicyId: 4}))
		apitest.Golden(t, "policy_secret_rules", s.Get(t, v2+"/5/rules"))

		first, err := client.ListPolicyRules(s.context(t, ""), &policiesv1.ListPolicyRulesRequest{DeploymentId: s.DeploymentID, PolicyId: 4, Limit: 1})
		if err != nil || len(first.GetRules()) != 1 || first.GetCursor() == "" {
			t.Fatalf("%v %v", first, err)
		}
		if got := s.Get(t, v1+"/4?limit=1&cursor="+url.QueryEscape(first.GetCursor())); !strings.HasPrefix(got, `{"cursor":"",`) || !strings.Contains(got, `"path":"acme.exec"`) {
			t.Errorf("got %s", got)
		}
		s.want(t, 400, s.Token, "GET", v1+"/5?limit=1&cursor="+url.QueryEscape(first.GetCursor()), "", "", "INVALID_CURSOR")
		s.want(t, 400, s.Token, "GET", v1+"/4?limit=2001", "", "")
		s.want(t, 404, s.Token, "GET", v1+"/99", "", "", "policy 99 not found")

		// One rule, in one policy.
		put := s.want(t, 200, s.Token, "PUT", v1+"/101", fmt.Sprintf(`{"deploymentId":"%d","policyId":"101","policyMode":"MODE_BLOCK","rulePath":"acme.eval"}`, s.DeploymentID), "")
		apitest.Golden(t, "policy_put", put)
		s.want(t, 200, s.Token, "PUT", v2+"/4/rules/acme.exec", `{"policyMode":"MODE_DISABLED"}`, "", `"policyMode":"MODE_DISABLED"`)
		for project, want := range map[string]string{"acme/web": "eval[block] key[] lodash[] token[]", "acme/api": "eval[] key[] lodash[] token[]"} {
			if got := s.sent(t, project); got != want {
				t.Errorf("%q runs %s, want %s", project, got, want)
			}
		}
		if got := s.Get(t, v2+"/101/rules"); strings.Count(got, "MODE_BLOCK") != 1 || strings.Count(got, "MODE_DISABLED") != 1 {
			t.Errorf("got %s", got)
		}
		s.want(t, 404, s.Token, "PUT", v2+"/5/rules/acme.exec", `{"policyMode":"MODE_BLOCK"}`, "", "has no rule")
		s.want(t, 404, s.Token, "PUT", v2+"/6/rules/acme.exec", `{"policyMode":"MODE_BLOCK"}`, "", "policy 6 not found")
		s.want(t, 400, s.Token, "PUT", v2+"/4/rules/acme.exec", `{}`, "", "policyMode is required")
		s.want(t, 400, s.Token, "PUT", v1+"/4", `{"policyMode":"MODE_BLOCK"}`, "", "rulePath")
	})
}

// TestDeletedProjectsAndTags take their assignments to boards and their exceptions with them.
func TestDeletedProjectsAndTags(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		s.found(t, "acme/api", "acme.exec", 1)
		s.board(t, 201, "POST", "", `{"name":"Web team","assigned_repos":["acme/web","acme/api"]}`)
		s.apply(t, "code", `{"rulesets":["default"],"exceptions":[
			{"exception_type":"exclude","project":"acme/web","rule":"acme.eval","rule_type":"rule"},
			{"exception_type":"exclude","project_tag_name":"acme-pci","rule":"acme.exec","rule_type":"rule"}]}`, 200)
		s.want(t, 200, s.Token, "DELETE", "/api/v1/deployments/"+s.Slug+"/projects/acme/web", "", "")
		s.want(t, 200, s.Token, "DELETE", fmt.Sprintf("/api/agent/deployments/%d/tags/acme-pci", s.DeploymentID), "", "")
		if got := s.Get(t, s.detectionPath("code")); !strings.Contains(got, `"exceptions":[]`) {
			t.Errorf("the exceptions are left: %s", got)
		}
		if got := s.board(t, 200, "GET", "/web-team/overview", ""); strings.Contains(got, "acme/web") || !strings.Contains(got, "acme/api") {
			t.Errorf("the board is %s", got)
		}
		links, exceptions := s.Store.Reader.RuleboardProject.Query().CountX(s.System(t)), s.Store.Reader.DetectionException.Query().CountX(s.System(t))
		if links != 1 || exceptions != 0 {
			t.Errorf("%d assignments and %d exceptions are left", links, exceptions)
		}
	})
}
