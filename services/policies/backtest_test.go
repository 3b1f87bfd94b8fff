package policies_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/policies"
)

// period are the texts of an answer that depend on the time of the test.
var period = regexp.MustCompile(`"(from|to|day)":"[^"]*"`)

func (s caller) backTest(t testing.TB, body string) string {
	t.Helper()
	return s.want(t, 200, s.Token, http.MethodPost, s.remediation()+":backTest", body, "")
}

// scanOf is a report with results: rule and level.
func reportOf(results ...string) []byte {
	var list []string
	for i, one := range results {
		rule, level, _ := strings.Cut(one, " ")
		list = append(list, fmt.Sprintf(`{"ruleId":%q,"level":%q,"message":{"text":"bad"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a%d.go"},"region":{"startLine":3}}}]}`, rule, level, i))
	}
	return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":[` + strings.Join(list, ",") + `]}]}`)
}

func TestBackTest(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		none := s.backTest(t, `{}`)
		apitest.Golden(t, "back_test_none", period.ReplaceAllString(none, `"$1":""`))
		s.Upload(t, "acme/web", "main", reportOf("sql error", "xss warning"))
		s.Upload(t, "acme/web", "main", reportOf("sql error", "xss warning", "log error"))
		s.Upload(t, "acme/api", "main", reportOf("log note"))
		s.put(t, `[{"name":"New errors","active":true,"actions":[{"type":"block"},{"type":"comment"}],"filters":{"mode":"all","conditions":[
			{"type":"severity","values":["high"]},{"type":"finding_state","values":["new"]}]}},
			{"name":"Notes","active":true,"actions":[{"type":"pr_comment"},{"type":"set_state","config":{"state":"reviewing"}}],"filters":{"mode":"all","conditions":[{"type":"severity","values":["low"]}]}}]`, 200)
		body := s.backTest(t, `{"days":30}`)
		apitest.Golden(t, "back_test", period.ReplaceAllString(body, `"$1":""`))
		days := int32(30)
		answer, err := s.client.BackTestRemediationPolicies(s.context(t, ""), &policiesv1.BackTestRemediationPoliciesRequest{DeploymentId: s.DeploymentID, Days: &days})
		if err != nil {
			t.Fatal(err)
		}
		same := &policiesv1.BackTestRemediationPoliciesResponse{}
		if err := protojson.Unmarshal([]byte(body), same); err != nil {
			t.Fatal(err)
		}
		answer.From, answer.To = same.GetFrom(), same.GetTo() // these differ
		apitest.Same(t, answer, body)

		// The given policies count, not the stored ones.
		everything := `{"name":"All","active":true,"filters":{"mode":"all"},"actions":[{"type":"block"}]}`
		body = s.backTest(t, `{"bundle":{"policies":[`+everything+`]}}`)
		for _, text := range []string{`"actions":[{"action":"block","scans":3,"findings":4}]`, `"warnings":[{"code":"BLOCKS_EVERYTHING"`, `"policy_slug":"all"`} {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not say %s", body, text)
			}
		}
		off := s.backTest(t, `{"bundle":{"policies":[`+strings.Replace(everything, "true", "false", 1)+`]}}`)
		if strings.Contains(off, "warnings") || !strings.Contains(off, `"actions":[]`) || !strings.Contains(off, `"scans":3`) {
			t.Errorf("an inactive policy: %s", off)
		}
		web := s.Store.Reader.Project.Query().Where(project.Name("acme/web")).OnlyIDX(tenant.NewContext(t.Context(), s.DeploymentID))
		if body = s.backTest(t, fmt.Sprintf(`{"project_ids":["%d"]}`, web)); !strings.Contains(body, `"scans":2,"findings":3`) || strings.Contains(body, "acme/api") {
			t.Errorf("one project: %s", body)
		}
	})
}

func TestBackTestRefuses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		at := s.remediation() + ":backTest"
		for body, text := range map[string]string{
			`{"days":-1}`:  "days must be",
			`{"days":366}`: "days must be",
			`{"days":"x"}`: "days",
			`{"project_ids":[` + strings.TrimSuffix(strings.Repeat("1,", 101), ",") + `]}`: "project_ids",
		} {
			s.want(t, 400, s.Token, http.MethodPost, at, body, "", text)
		}
		// Over HTTP, 0 is an absent number.
		zero := int32(0)
		_, err := s.client.BackTestRemediationPolicies(s.context(t, ""), &policiesv1.BackTestRemediationPoliciesRequest{DeploymentId: s.DeploymentID, Days: &zero})
		wantReason(t, err, "INVALID_ARGUMENT", nil)
		globex := s.AddTenant(t, "globex")
		s.seed(t, globex)
		theirs := s.Store.Reader.Project.Query().Where(project.Name("globex/web")).OnlyIDX(tenant.NewContext(t.Context(), globex.DeploymentID))
		s.want(t, 404, s.Token, http.MethodPost, at, fmt.Sprintf(`{"project_ids":["%d"]}`, theirs), "", "there is no project")
		s.want(t, 404, globex.Token, http.MethodPost, at, `{}`, "", "deployment not found")

		bad := `{"bundle":{"policies":[{"name":"x","filters":{"mode":"all","conditions":[{"type":"size","values":["a"]},{"type":"project","values":["globex/web"]}]},"actions":[{"type":"shout"}]},
			{"name":"Rule board","slug":"rule-board-x","filters":{"mode":"all"},"actions":[{"type":"block"}]}]}}`
		dry := s.want(t, 200, s.Token, http.MethodPost, s.remediation()+":dryRun", bad, "", "UNSUPPORTED_CONDITION_TYPE", "UNKNOWN_REFERENCE", "RESERVED_SLUG")
		_, problems, _ := strings.Cut(dry, `"validation_errors":`)
		if body := s.backTest(t, bad); !strings.HasSuffix(body, `"validation_errors":`+problems) || !strings.Contains(body, `"limits":[]`) {
			t.Errorf("got %s\nwant the problems of %s", body, dry)
		}

		late, cancel := context.WithDeadline(tenant.NewContext(t.Context(), s.DeploymentID), time.Now().Add(-time.Second))
		defer cancel()
		_, err = policies.NewPoliciesV2(s.Store).BackTestRemediationPolicies(late, &policiesv1.BackTestRemediationPoliciesRequest{})
		if err == nil || !strings.Contains(err.Error(), "name projects or fewer days") {
			t.Errorf("after the deadline: %v", err)
		}

		agent := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleAdmin, Scopes: []access.Scope{access.ScopeAgent}})
		s.want(t, 404, agent, http.MethodPost, at, `{}`, "", "SCOPE_MISSING")
		reader := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly})
		s.want(t, 200, reader, http.MethodPost, at, `{}`, "")
	})
}

// TestDryRunWarns: a dry run names active policies that block every scan with a finding.
func TestDryRunWarns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		for filters, warned := range map[string]bool{
			`{"mode":"all"}`: true,
			`{"mode":"all","conditions":[{"type":"severity","values":["Low","medium","high","critical"]},{"type":"product","values":["sast","sca","secrets"]}]}`: true,
			`{"mode":"any","conditions":[{"type":"severity","values":["low"]},{"type":"finding_state","values":["new","existing"]}]}`:                            true,
			`{"mode":"any","conditions":[{"type":"severity","values":["low"]},{"type":"severity","values":["low"],"mode":"exclude"}]}`:                           true,
			`{"mode":"all","conditions":[{"type":"severity","values":["low","medium","high"]}]}`:                                                                 false,
			`{"mode":"all","conditions":[{"type":"severity","values":["low","medium","high","critical"],"mode":"exclude"}]}`:                                     false,
			`{"mode":"all","conditions":[{"type":"validation_state","values":["confirmed_valid","confirmed_invalid","validation_error","no_validator"]}]}`:       false,
			`{"mode":"all","conditions":[{"type":"severity","values":["low","medium","high","critical"]},{"type":"finding_state","values":["new"]}]}`:            false,
			`{"mode":"any","conditions":[{"type":"severity","values":["low"]},{"type":"finding_state","values":["new"]}]}`:                                       false,
		} {
			policy := `{"name":"P","active":true,"filters":` + filters + `,"actions":[{"type":"block"}]}`
			if body := s.dry(t, "["+policy+"]"); strings.Contains(body, `"warnings":[{"code":"BLOCKS_EVERYTHING"`) != warned || strings.Contains(body, "warnings") != warned {
				t.Errorf("%s: %s", filters, body)
			}
			for _, harmless := range []string{strings.Replace(policy, "true", "false", 1), strings.Replace(policy, "block", "comment", 1)} {
				if body := s.dry(t, "["+harmless+"]"); strings.Contains(body, "warnings") {
					t.Errorf("%s: %s", harmless, body)
				}
			}
		}
	})
}
