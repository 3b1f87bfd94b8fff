package issuefilter

import (
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// Monitored is the policy mode of findings without a policy.
const Monitored = "rule-board-audit"

// modes maps actions to policies. Findings of disabled rules are not stored.
var modes = map[findingsv1.Mode]string{
	findingsv1.Mode_MODE_MONITOR: Monitored,
	findingsv1.Mode_MODE_COMMENT: "rule-board-pr-comments",
	findingsv1.Mode_MODE_BLOCK:   "rule-board-block",
}

// states adds the conditions on the state from scans and the decisions of people.
func (c *Conditions) states(f *findingsv1.IssuesFilter) {
	c.in(finding.FieldState, words(f.GetStatus(), "ISSUE_STATUS_"))
	switch tab := f.GetTab(); tab {
	case findingsv1.IssueTab_ISSUE_TAB_UNSPECIFIED:
	case findingsv1.IssueTab_ISSUE_TAB_CLOSED:
		c.in(finding.FieldStatus, []string{lifecycle.Fixed})
	default:
		c.in(finding.FieldStatus, words([]findingsv1.IssueTab{tab}, "ISSUE_TAB_"))
	}
	var options []term
	for _, state := range set(f.GetAggregateIssueStates()) {
		options = append(options, aggregate(state))
	}
	c.either(options...)
	reasons := words(f.GetTriageReasons(), "FINDING_TRIAGE_REASON_")
	if slices.Contains(reasons, lifecycle.NoTriageReason) { // also of findings that are ignored in code
		c.either(term{column: finding.FieldTriageReason, words: reasons}, term{all: []term{status(lifecycle.Ignored), {column: finding.FieldTriageReason, null: true}}})
	} else {
		c.in(finding.FieldTriageReason, reasons)
	}
}

// status is the term of findings with a status.
func status(words ...string) term { return term{column: finding.FieldStatus, words: words} }

// aggregate selects findings in an aggregate state.
func aggregate(state findingsv1.AggregateIssueState) term {
	byPeople := term{column: finding.FieldTriageState, words: []string{lifecycle.Ignored}}
	switch state {
	case findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_UNKNOWN:
		return term{column: finding.FieldStatus}
	case findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_APP:
		return term{all: []term{status(lifecycle.Ignored), byPeople}}
	case findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_CODE:
		byPeople.not = true
		return term{all: []term{status(lifecycle.Ignored), byPeople}}
	case findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_PROVISIONALLY_IGNORED_APP:
		return status(lifecycle.ProvisionallyIgnored)
	}
	return status(words([]findingsv1.AggregateIssueState{state}, "AGGREGATE_ISSUE_STATE_")...)
}

// AggregateState is the aggregate state of a finding with these facts.
func AggregateState(facts columns.Facts) findingsv1.AggregateIssueState {
	word := facts.Status()
	switch word {
	case lifecycle.Ignored:
		if triage, _, _ := facts.Word(finding.FieldTriageState); triage == lifecycle.Ignored {
			return findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_APP
		}
		return findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_CODE
	case lifecycle.ProvisionallyIgnored:
		return findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_PROVISIONALLY_IGNORED_APP
	}
	return findingsv1.AggregateIssueState(findingsv1.AggregateIssueState_value["AGGREGATE_ISSUE_STATE_"+strings.ToUpper(word)])
}

// rules adds the conditions on the rule of a finding, and on its severity.
func (c *Conditions) rules(f *findingsv1.IssuesFilter) {
	c.in(finding.FieldSeverity, words(f.GetSeverities(), "SEVERITY_"))
	c.ids(finding.FieldRuleID, f.GetRuleIds())
	names := RuleNames{
		Names: given(f.GetRules()), Categories: given(f.GetCategories()), Confidences: words(f.GetConfidences(), "CONFIDENCE_"),
	}
	for _, source := range set(f.GetSource()) {
		names.Origins = append(names.Origins, origins[source])
	}
	c.ofRules(names)
}

// origins maps sources to origins of rules. Rules whose scanner did not say have none.
var origins = map[findingsv1.Source]string{
	findingsv1.Source_SOURCE_PRO: "pro_rules", findingsv1.Source_SOURCE_COMMUNITY: "community", findingsv1.Source_SOURCE_CUSTOM: "custom",
}

// ofRules adds the condition on the rule of a finding, if there is one.
func (c *Conditions) ofRules(names RuleNames) {
	if rest := names.text(); len(rest) > 0 {
		c.add(term{column: finding.FieldRuleID, rows: rest})
	}
}

// policies adds the conditions on what policies do with a finding.
func (c *Conditions) policies(f *findingsv1.IssuesFilter) {
	if actions := set(f.GetActions()); len(actions) > 0 {
		slugs := make([]string, 0, len(actions))
		for _, action := range actions {
			if slug, known := modes[action]; known {
				slugs = append(slugs, slug)
			}
		}
		c.List = append(c.List, Policies(c.DeploymentID, slugs))
	}
	if slugs := given(f.GetPolicySlugs()); len(slugs) > 0 {
		c.List = append(c.List, Policies(c.DeploymentID, slugs))
	}
}

// exposures maps exposures of the filter to values of the column.
var exposures = map[string][]string{
	"UNKNOWN_EXPOSURE": {"unknown"},
	"UNREACHABLE":      {"unreachable"},
	"REACHABLE":        {"reachable", "always_reachable", "conditionally_reachable"},
}

// supplyChain adds the conditions that only supply-chain findings satisfy.
func (c *Conditions) supplyChain(f *findingsv1.IssuesFilter) {
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
	if f != nil && f.KnownExploit != nil {
		if !f.GetKnownExploit() {
			c.in(finding.FieldIssueType, []string{"sca"})
		}
		c.List = append(c.List, KnownExploit(c.DeploymentID, f.GetKnownExploit()))
	}
	var options []term
	for _, kind := range set(f.GetScaRuleKind()) {
		options = append(options, ruleKind(kind))
	}
	c.either(options...)
}

// analyzed are the exposures that scanners know from an analysis of the code. The others are known from the version.
var analyzed = []string{"reachable", "unreachable"}

// ruleKind selects findings by the kind of their rule, as issues show it.
func ruleKind(kind findingsv1.ScaRuleKind) term {
	ofPackage, exposure := term{column: finding.FieldIssueType, words: []string{"sca"}}, term{column: finding.FieldExposure, words: analyzed}
	harmless := term{column: finding.FieldMalicious, null: true}
	switch kind {
	case findingsv1.ScaRuleKind_SCA_RULE_KIND_MALICIOUS_DEPENDENCY:
		return term{column: finding.FieldMalicious, words: []string{"true"}}
	case findingsv1.ScaRuleKind_SCA_RULE_KIND_REACHABLE:
		return term{all: []term{ofPackage, harmless, exposure}}
	case findingsv1.ScaRuleKind_SCA_RULE_KIND_UPGRADE_ONLY:
		exposure.not = true
		other := term{any: []term{{column: finding.FieldExposure, null: true}, exposure}}
		return term{all: []term{ofPackage, harmless, other}}
	}
	return term{column: finding.FieldIssueType}
}

// IsMalicious compares with a parameter. ent writes a boolean column without a comparison, for which SQLite uses no
// index.
func IsMalicious(s *entsql.Selector) {
	s.Where(text(s.C(finding.FieldMalicious), " = ", arg{true}))
}

// KnownExploit selects the supply-chain findings whose vulnerability is in the catalogue of known exploits, or the
// others; the caller limits these to supply-chain findings. The catalogue has about a thousand entries.
func KnownExploit(deploymentID int64, known bool) Condition {
	listed := func(s *entsql.Selector) []any {
		return []any{s.C(finding.FieldAdvisory), " IN (SELECT cve FROM exploits WHERE deployment_id = ", arg{deploymentID}, " AND listed_at IS NOT NULL)"}
	}
	is := func(s *entsql.Selector) { s.Where(text(listed(s)...)) }
	if known {
		return Condition{Column: finding.FieldAdvisory, Where: is}
	}
	return Condition{Column: finding.FieldAdvisory, except: is, Where: func(s *entsql.Selector) {
		s.Where(text(append(append([]any{"(", s.C(finding.FieldAdvisory), " IS NULL OR NOT "}, listed(s)...), ")")...))
	}}
}

// secrets adds the conditions that only secrets satisfy.
func (c *Conditions) secrets(f *findingsv1.IssuesFilter) {
	c.in(finding.FieldValidationState, words(f.GetValidationStates(), "VALIDATION_STATE_"))
	if types := given(f.GetSecretTypes()); len(types) > 0 {
		c.in(finding.FieldIssueType, []string{"secrets"})
		c.ofRules(RuleNames{SecretTypes: types})
	}
	if f.GetExcludeHistorical() {
		c.List = append(c.List, NotHistorical(c.DeploymentID))
	}
}

// assistance adds the conditions on AI verdicts and fixes.
func (c *Conditions) assistance(f *findingsv1.IssuesFilter) {
	c.orNone(finding.FieldAutotriageVerdict, words(f.GetAiVerdicts(), "VERDICT_"), "no_verdict")
	c.sensitivities(given(f.GetAiSensitivities()))
	c.orNone(finding.FieldClickToFixState, words(f.GetClickToFixPrStates(), "CLICK_TO_FIX_PR_STATE_"), "no_pr")
	if f.GetHasInFlightAutofixPr() {
		const minutes = 10 // contract facts 3.12
		c.raw(func(s *entsql.Selector) []any {
			return []any{
				s.C(finding.FieldID), " IN (SELECT x.finding_id FROM ai_fixes x WHERE x.deployment_id = ", arg{c.DeploymentID},
				" AND x.status = 'requested' AND x.requested_at >= ", arg{store.Micros(c.now) - minutes*60*1_000_000},
				" AND NOT EXISTS (SELECT 1 FROM ai_fixes later WHERE later.deployment_id = x.deployment_id",
				" AND later.finding_id = x.finding_id AND later.id > x.id))",
			}
		})
	}
}

// orNone adds the condition that a column has one of some values. The value none stands for null.
func (c *Conditions) orNone(column string, values []string, none string) {
	named := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == none })
	if len(named) == len(values) {
		c.in(column, named)
		return
	}
	c.add(term{column: column, words: distinct(named), null: true})
}

func upper(values []string) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = strings.ToUpper(strings.TrimSpace(v))
	}
	return list
}
