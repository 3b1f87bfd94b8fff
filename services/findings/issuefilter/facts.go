package issuefilter

import (
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// monitored is the policy mode of findings without a policy.
const monitored = "rule-board-audit"

// modes maps actions to policies. Findings of disabled rules are not stored.
var modes = map[findingsv1.Mode]string{
	findingsv1.Mode_MODE_MONITOR: monitored,
	findingsv1.Mode_MODE_COMMENT: "rule-board-pr-comments",
	findingsv1.Mode_MODE_BLOCK:   "rule-board-block",
}

// states adds the conditions on the state from scans and the decisions of people.
func (c *conditions) states(f *findingsv1.IssuesFilter) {
	c.in(finding.FieldState, words(f.GetStatus(), "ISSUE_STATUS_"))
	switch tab := f.GetTab(); tab {
	case findingsv1.IssueTab_ISSUE_TAB_UNSPECIFIED:
	case findingsv1.IssueTab_ISSUE_TAB_CLOSED:
		c.in(finding.FieldStatus, []string{lifecycle.Fixed, lifecycle.Removed})
	default:
		c.in(finding.FieldStatus, words([]findingsv1.IssueTab{tab}, "ISSUE_TAB_"))
	}
	var options []predicate.Finding
	for _, state := range set(f.GetAggregateIssueStates()) {
		options = append(options, aggregate(state))
	}
	c.either(options)
	if reasons := words(f.GetTriageReasons(), "FINDING_TRIAGE_REASON_"); len(reasons) > 0 {
		c.in(finding.FieldTriageReason, reasons)
	}
}

// aggregate selects findings in an aggregate state.
func aggregate(state findingsv1.AggregateIssueState) predicate.Finding {
	switch state {
	case findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_UNKNOWN:
		return nothing
	case findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_APP:
		return finding.And(finding.Status(lifecycle.Ignored), finding.TriageState(lifecycle.Ignored))
	case findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_CODE:
		return finding.And(finding.Status(lifecycle.Ignored), finding.TriageStateNEQ(lifecycle.Ignored))
	case findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_PROVISIONALLY_IGNORED_APP:
		return finding.Status(lifecycle.ProvisionallyIgnored)
	}
	return finding.Status(words([]findingsv1.AggregateIssueState{state}, "AGGREGATE_ISSUE_STATE_")[0])
}

// rules adds the conditions on the rule of a finding, and on its severity.
func (c *conditions) rules(f *findingsv1.IssuesFilter) {
	c.in(finding.FieldSeverity, words(f.GetSeverities(), "SEVERITY_"))
	c.ids(finding.FieldRuleID, f.GetRuleIds())
	var rest []any
	for _, condition := range []struct {
		column string
		values []string
	}{
		{"name", given(f.GetRules())},
		{"category", given(f.GetCategories())},
		{"confidence", words(f.GetConfidences(), "CONFIDENCE_")},
	} {
		if len(condition.values) > 0 {
			rest = append(rest, " AND "+condition.column+" IN ", anyOf(condition.values))
		}
	}
	if len(rest) > 0 {
		c.ofRules(rest...)
	}
}

func (c *conditions) ofRules(rest ...any) {
	c.raw(func(s *entsql.Selector) []any {
		parts := append([]any{s.C(finding.FieldRuleID), " IN (SELECT id FROM rules WHERE deployment_id = ", arg{c.deploymentID}}, rest...)
		return append(parts, ")")
	})
}

// policies adds the conditions on what policies do with a finding.
func (c *conditions) policies(f *findingsv1.IssuesFilter) {
	if actions := set(f.GetActions()); len(actions) > 0 {
		slugs := make([]string, 0, len(actions))
		for _, action := range actions {
			if slug, known := modes[action]; known {
				slugs = append(slugs, slug)
			}
		}
		c.policyModes(slugs)
	}
	if slugs := given(f.GetPolicySlugs()); len(slugs) > 0 {
		c.policyModes(slugs)
	}
}

// policyModes treats findings without a policy as monitored.
func (c *conditions) policyModes(slugs []string) {
	options := make([]predicate.Finding, 0, 2)
	if len(slugs) > 0 {
		options = append(options, store.OneOf(finding.FieldPolicyMode, slugs))
	}
	for _, slug := range slugs {
		if slug == monitored {
			options = append(options, finding.PolicyModeIsNil())
			break
		}
	}
	if len(options) == 0 {
		options = append(options, nothing)
	}
	c.either(options)
}

// exposures maps exposures of the filter to values of the column.
var exposures = map[string][]string{
	"UNKNOWN_EXPOSURE": {"unknown"},
	"UNREACHABLE":      {"unreachable"},
	"REACHABLE":        {"reachable", "always_reachable", "conditionally_reachable"},
}

// supplyChain adds the conditions that only supply-chain findings satisfy.
func (c *conditions) supplyChain(f *findingsv1.IssuesFilter) {
	var transitivities, reachable []string
	for _, word := range f.GetTransitivities() {
		transitivities = append(transitivities, strings.ToLower(strings.TrimSuffix(word, "_TRANSITIVITY")))
	}
	for _, word := range f.GetExposures() {
		reachable = append(reachable, exposures[word]...)
	}
	c.in(finding.FieldTransitivity, transitivities)
	c.in(finding.FieldExposure, reachable)
	c.in(finding.FieldExposure, words(f.GetReachabilities(), "REACHABILITY_"))
	c.in(finding.FieldPackage, f.GetDependencies())
	c.in(finding.FieldAdvisory, upper(f.GetCves()))
	c.in(finding.FieldAdvisory, upper(f.GetAdvisoryIds()))
	c.in(finding.FieldEpssProbability, words(f.GetEpssProbabilities(), "EPSS_PROBABILITY_"))
	var options []predicate.Finding
	for _, kind := range set(f.GetScaRuleKind()) {
		options = append(options, ruleKind(kind))
	}
	c.either(options)
}

func ruleKind(kind findingsv1.ScaRuleKind) predicate.Finding {
	switch kind {
	case findingsv1.ScaRuleKind_SCA_RULE_KIND_MALICIOUS_DEPENDENCY:
		return IsMalicious
	case findingsv1.ScaRuleKind_SCA_RULE_KIND_REACHABLE:
		return finding.And(finding.IssueType("sca"), finding.MaliciousIsNil(), finding.ExposureNEQ("unknown"))
	case findingsv1.ScaRuleKind_SCA_RULE_KIND_UPGRADE_ONLY:
		return finding.And(finding.IssueType("sca"), finding.MaliciousIsNil(), finding.Or(finding.ExposureIsNil(), finding.Exposure("unknown")))
	}
	return nothing
}

// IsMalicious compares with a parameter. ent writes a boolean column without a comparison, for which SQLite uses no
// index.
func IsMalicious(s *entsql.Selector) {
	s.Where(text(s.C(finding.FieldMalicious), " = ", arg{true}))
}

// secrets adds the conditions that only secrets satisfy.
func (c *conditions) secrets(f *findingsv1.IssuesFilter) {
	c.in(finding.FieldValidationState, words(f.GetValidationStates(), "VALIDATION_STATE_"))
	if types := given(f.GetSecretTypes()); len(types) > 0 {
		c.add(finding.IssueType("secrets"))
		c.ofRules(" AND name IN ", anyOf(types))
	}
	if f.GetExcludeHistorical() {
		c.add(finding.HistoricalIsNil())
	}
}

// assistance adds the conditions on AI verdicts and fixes.
func (c *conditions) assistance(f *findingsv1.IssuesFilter) {
	c.orNone(finding.FieldAutotriageVerdict, words(f.GetAiVerdicts(), "VERDICT_"), "no_verdict")
	c.sensitivities(given(f.GetAiSensitivities()))
	c.orNone(finding.FieldClickToFixState, words(f.GetClickToFixPrStates(), "CLICK_TO_FIX_PR_STATE_"), "no_pr")
	if f.GetHasInFlightAutofixPr() {
		const minutes = 10 // contract facts 3.12
		c.raw(func(s *entsql.Selector) []any {
			return []any{
				s.C(finding.FieldID), " IN (SELECT x.finding_id FROM ai_fixes x WHERE x.deployment_id = ", arg{c.deploymentID},
				" AND x.status = 'requested' AND x.requested_at >= ", arg{store.Micros(c.now) - minutes*60*1_000_000},
				" AND NOT EXISTS (SELECT 1 FROM ai_fixes later WHERE later.deployment_id = x.deployment_id",
				" AND later.finding_id = x.finding_id AND later.id > x.id))",
			}
		})
	}
}

// orNone adds the condition that a column has one of some values. The value none stands for null.
func (c *conditions) orNone(column string, values []string, none string) {
	var options []predicate.Finding
	for _, v := range values {
		if v == none {
			options = append(options, entsql.FieldIsNull(column))
		} else {
			options = append(options, entsql.FieldEQ(column, v))
		}
	}
	c.either(options)
}

func upper(values []string) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = strings.ToUpper(strings.TrimSpace(v))
	}
	return list
}
