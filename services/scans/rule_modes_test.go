package scans_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestModesOfRulesInUploads: an uploaded report of the tool that runs the deployment's rules obeys their modes, as the
// results of a scanner do: block fails the upload, findings of monitored rules count in no policy, and findings name
// the mode. Rules that the deployment does not have, and rules of other tools, have no mode.
func TestModesOfRulesInUploads(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		rules := fmt.Sprintf("/api/rules/v1/deployments/%d/rules", s.DeploymentID)
		for _, mode := range []string{"monitor", "comment", "block"} {
			rule := fmt.Sprintf("rules: [{id: acme.%s, languages: [python], severity: ERROR, message: No, pattern: %s(...)}]", mode, mode)
			s.Body(t, s.Token, http.MethodPost, rules, written(t, object{
				"files": []any{object{"name": "a.yaml", "text": rule}}, "mode": "RULE_MODE_" + strings.ToUpper(mode),
			}), 200)
		}
		report := func(tool string) []byte {
			r := run{Tool: tool, Version: "1"}
			for i, rule := range []string{"acme.monitor", "acme.comment", "acme.block", "other.rule"} {
				r.Results = append(r.Results, result{Rule: rule, File: "a.py", Line: 3 + i, Code: "bad " + rule, Level: "error"})
			}
			return sarifOf(t, r)
		}
		want := func(what, reason string) {
			t.Helper()
			got := upload(t, s, "refs/pull/7/merge", report("Semgrep OSS"))
			if got.GetBlockReason() != reason || got.GetBlocked() != (reason != "") {
				t.Errorf("%s: the upload says %v %q, want %q", what, got.GetBlocked(), got.GetBlockReason(), reason)
			}
			view := pullRequestOf(t, s, &scansv1.GetPullRequestRequest{Project: got.GetProject(), Number: 7})
			var blockers []string
			for _, b := range view.GetBlockers() {
				name := b.GetName()
				if b.GetPolicySlug() != "" {
					name = "policy " + name
				}
				plural := "s"
				if b.GetFindings() == 1 {
					plural = ""
				}
				blockers = append(blockers, fmt.Sprintf("%s: %d finding%s", name, b.GetFindings(), plural))
			}
			if strings.Join(blockers, "; ") != reason {
				t.Errorf("%s: the pull request is blocked by %q, want %q", what, blockers, reason)
			}
			for _, f := range view.GetFindings() {
				if f.GetMonitored() != (f.GetRuleName() == "acme.monitor") {
					t.Errorf("%s: %s is monitored: %v", what, f.GetRuleName(), f.GetMonitored())
				}
			}
		}
		const byMode = "rules in mode block: 1 finding"
		want("without a policy", byMode)
		list := s.Get(t, "/api/v1/deployments/acme/findings")
		for rule, slug := range map[string]string{
			"acme.monitor": "rule-board-audit", "acme.comment": "rule-board-pr-comments", "acme.block": "rule-board-block", "other.rule": "rule-board-audit",
		} {
			found, _ := at(parsed(t, list), "findings").([]any)
			for _, f := range found {
				if at(f, "rule_name") == rule && at(f, "sourcing_policy", "slug") != slug {
					t.Errorf("%s has the policy %v, want %s", rule, at(f, "sourcing_policy"), slug)
				}
			}
		}
		newScanner(s).block(t, &policiesv1.RemediationPolicy{
			Slug: "high", Name: "High", Active: true,
			Filters: &policiesv1.RemediationPolicyFilters{Mode: "all", Conditions: []*policiesv1.RemediationPolicyCondition{{Type: "severity", Values: []string{"high"}, Mode: "include"}}},
			Actions: []*policiesv1.RemediationPolicyAction{{Type: "block"}},
		})
		want("with a policy", "policy High: 3 findings; "+byMode)

		mode := func(rule, mode string) {
			t.Helper()
			s.Body(t, s.Token, http.MethodPatch, rules, written(t, object{"names": []any{rule}, "mode": "RULE_MODE_" + mode}), 200)
		}
		mode("acme.block", "COMMENT")
		want("no rule blocks", "policy High: 3 findings")
		mode("acme.block", "BLOCK")
		want("blocks again", "policy High: 3 findings; "+byMode)
		s.Body(t, s.Token, http.MethodDelete, rules+"/acme.block", "", 200)
		want("the rule is deleted", "policy High: 3 findings")
		if got := upload(t, s, "main", report("lint")).GetBlockReason(); got != "policy High: 4 findings" {
			t.Errorf("another tool: %q", got)
		}
	})
}

// TestBoardsOfUploads: a rule board and a detection policy give rules another mode in a project, also for uploads.
func TestBoardsOfUploads(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		rule := "rules: [{id: acme.one, languages: [python], severity: ERROR, message: No, pattern: one(...)}]"
		s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/rules/v1/deployments/%d/rules", s.DeploymentID),
			written(t, object{"files": []any{object{"name": "a.yaml", "text": rule}}, "mode": "RULE_MODE_COMMENT"}), 200)
		send := func() string {
			t.Helper()
			report := sarifOf(t, run{Tool: "semgrep", Version: "1", Results: []result{{Rule: "acme.one", File: "a.py", Line: 3, Code: "one", Level: "error"}}})
			return upload(t, s, "main", report).GetBlockReason()
		}
		if got := send(); got != "" {
			t.Errorf("mode comment: %q", got)
		}
		project := s.Store.Reader.Project.Query().OnlyX(s.System(t)).Name
		boards := fmt.Sprintf("/api/agent/deployments/%d/ruleboards", s.DeploymentID)
		s.Body(t, s.Token, http.MethodPost, boards, written(t, object{"name": "Strict", "assigned_repos": []any{project}}), 201)
		s.Body(t, s.Token, http.MethodPut, boards+"/strict", `{"changes":[{"item":{"id":"acme.one"},"policy":"block","update_type":"update"}]}`, 200)
		if got := send(); got != "rules in mode block: 1 finding" {
			t.Errorf("mode block on the board of the project: %q", got)
		}
		policy := fmt.Sprintf("/api/policies/v2/deployments/%d/detection-policy/code", s.DeploymentID)
		s.Body(t, s.Token, http.MethodPut, policy, written(t, object{"bundle": object{"rulesets": []any{"default"}, "exceptions": []any{
			object{"exception_type": "exclude", "project": project, "rule": "acme.one", "rule_type": "rule"},
		}}}), 200, "If-Match", "*")
		if got := send(); got != "" {
			t.Errorf("the rule does not run in the project: %q", got)
		}
	})
}
