package remediation_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/policies/remediation"
)

func condition(of, mode string, values ...string) *policiesv1.RemediationPolicyCondition {
	return &policiesv1.RemediationPolicyCondition{Type: of, Mode: mode, Values: values}
}

func TestImpossibleFilters(t *testing.T) {
	for _, c := range []struct {
		mode       string
		conditions []*policiesv1.RemediationPolicyCondition
		want       string // position and products of the conflict
	}{
		{"all", nil, ""},
		{"all", []*policiesv1.RemediationPolicyCondition{condition("severity", "include", "high"), condition("severity", "include", "low")}, "1 []"},
		{"any", []*policiesv1.RemediationPolicyCondition{condition("severity", "include", "high"), condition("severity", "include", "low")}, ""},
		{"all", []*policiesv1.RemediationPolicyCondition{condition("severity", "exclude", "high", "low", "medium", "critical")}, "0 []"},
		{"any", []*policiesv1.RemediationPolicyCondition{condition("severity", "exclude", "high", "low", "medium", "critical")}, "0 []"},
		{"all", []*policiesv1.RemediationPolicyCondition{condition("finding_state", "include", "new"), condition("finding_state", "exclude", "new")}, "1 []"},
		{"all", []*policiesv1.RemediationPolicyCondition{condition("rule", "exclude", "a"), condition("rule", "include", "a", "b")}, ""},
		{"all", []*policiesv1.RemediationPolicyCondition{condition("rule", "include", "a"), condition("rule", "exclude", "a", "b")}, "1 []"},
		{"all", []*policiesv1.RemediationPolicyCondition{condition("project_tag", "include", "a"), condition("project_tag", "include", "b")}, ""},
		{"all", []*policiesv1.RemediationPolicyCondition{condition("project_tag", "include", "a"), condition("project_tag", "exclude", "b", "a")}, "0 []"},
		{"all", []*policiesv1.RemediationPolicyCondition{condition("product", "include", "code"), condition("reachability", "include", "reachable")}, "1 [supply_chain]"},
		{"all", []*policiesv1.RemediationPolicyCondition{condition("product", "exclude", "code"), condition("reachability", "include", "reachable")}, ""},
		{"all", []*policiesv1.RemediationPolicyCondition{condition("validation_state", "include", "confirmed_valid"), condition("reachability", "include", "reachable")}, "1 [supply_chain]"},
		{"all", []*policiesv1.RemediationPolicyCondition{condition("product", "include", "code"), condition("reachability", "exclude", "reachable")}, ""},
		{"all", []*policiesv1.RemediationPolicyCondition{condition("rule", "include"), condition("rule", "include", "a")}, ""},
	} {
		got := ""
		if found := remediation.ImpossibleFilters(&policiesv1.RemediationPolicyFilters{Mode: c.mode, Conditions: c.conditions}); found != nil {
			got = fmt.Sprint(found.At, " ", found.Only)
		}
		if got != c.want {
			t.Errorf("%s of %v: %q, want %q", c.mode, c.conditions, got, c.want)
		}
	}
}

// TestBlocksEverything: a policy is warned about if no finding escapes it, however that is written.
func TestBlocksEverything(t *testing.T) {
	blocks := func(mode string, conditions ...*policiesv1.RemediationPolicyCondition) bool {
		return remediation.BlocksEverything(&policiesv1.RemediationPolicy{
			Active: true, Filters: &policiesv1.RemediationPolicyFilters{Mode: mode, Conditions: conditions},
			Actions: []*policiesv1.RemediationPolicyAction{{Type: "block"}},
		})
	}
	for what, got := range map[string]bool{
		"no condition":                   blocks("all"),
		"all severities":                 blocks("all", condition("severity", "", "critical", "high", "medium", "low")),
		"a severity or not":              blocks("any", condition("severity", "", "low"), condition("severity", "none", "low")),
		"a rule or not":                  blocks("any", condition("rule", "", "a"), condition("rule", "exclude", "a")),
		"a tag or not":                   blocks("any", condition("project_tag", "", "a"), condition("repository_tag", "exclude", "a", "a")),
		"new or existing":                blocks("any", condition("finding_state", "", "new"), condition("finding_state", "", "existing")),
		"some of two overlapping ones":   blocks("any", condition("severity", "exclude", "low"), condition("severity", "exclude", "high")),
		"not a dependency, or reachable": !blocks("any", condition("product", "exclude", "sca"), condition("reachability", "", "reachable")),
		"a severity":                     !blocks("all", condition("severity", "", "low")),
		"one rule or not another one":    !blocks("any", condition("rule", "", "a"), condition("rule", "exclude", "a", "b")),
		"any of nothing":                 !blocks("any"),
	} {
		if !got {
			t.Error(what)
		}
	}
}

// TestImpossibleAgreesWithEvaluation: no finding matches filters that are impossible, and every finding matches those
// that are said to block everything.
func TestImpossibleAgreesWithEvaluation(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		kinds := map[string][]string{
			"severity": {"critical", "high", "medium", "low"}, "product": {"code", "supply_chain", "secrets"}, "rule": {"a", "b", "c"},
			"project_tag": {"a", "b"}, "reachability": {"reachable", "unreachable"}, "finding_state": {"new", "existing"},
		}
		policy := &policiesv1.RemediationPolicy{
			Name: "x", Active: true, Filters: &policiesv1.RemediationPolicyFilters{Mode: rapid.SampledFrom([]string{"all", "any"}).Draw(r, "mode")},
			Actions: []*policiesv1.RemediationPolicyAction{{Type: "block"}},
		}
		for range rapid.IntRange(1, 4).Draw(r, "conditions") {
			of := rapid.SampledFrom([]string{"severity", "product", "rule", "project_tag", "reachability", "finding_state"}).Draw(r, "type")
			values := rapid.SliceOfNDistinct(rapid.SampledFrom(kinds[of]), 1, len(kinds[of]), rapid.ID).Draw(r, "values")
			policy.Filters.Conditions = append(policy.Filters.Conditions, condition(of, rapid.SampledFrom([]string{"include", "exclude"}).Draw(r, "how"), values...))
		}
		compiled, err := remediation.CompileActive([]*policiesv1.RemediationPolicy{policy})
		if err != nil {
			r.Fatal(err)
		}
		impossible, everything := remediation.ImpossibleFilters(policy.GetFilters()) != nil, remediation.BlocksEverything(policy)
		f := remediation.Facts{
			Severity: rapid.SampledFrom(kinds["severity"]).Draw(r, "severity"), Product: rapid.SampledFrom(kinds["product"]).Draw(r, "product"),
			RuleName: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "rule"), Tags: rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "z"}), rapid.ID).Draw(r, "tags"),
			New: rapid.Bool().Draw(r, "new"), Status: "open",
		}
		if f.Product == "supply_chain" {
			f.Reachability = rapid.SampledFrom([]string{"reachable", "unreachable", ""}).Draw(r, "reachability")
		}
		if matches := compiled[0].Applies(&f); matches && impossible || !matches && everything {
			r.Fatalf("impossible %v, everything %v: %+v %v", impossible, everything, f, policy)
		}
	})
}
