package issuefilter

import (
	"github.com/palisade/palisade/ent/finding"
)

// Use is how an index of lists by a column is used.
type Use int

const (
	// Selective columns have many values, or few findings have one: their index alone finds a page quickly.
	Selective Use = iota
	// Broad columns have few values that many findings share. Lists use their index if there is no better one.
	Broad
	// Ordering is the order of lists.
	Ordering
)

// Field is a field of filters with its column and the index of lists by the column. Fields without an index are not
// here: their conditions are checked on the findings that the others select.
type Field struct {
	// Names are the fields of IssuesFilter, in their JSON spelling.
	Names  []string
	Column string
	Index  string
	Use    Use
}

// Fields are all fields with an index, in the order in which a list prefers to merge the values of broad ones.
var Fields = []Field{
	{[]string{"scaRuleKind"}, finding.FieldMalicious, "findings_list_malicious", Selective},
	{[]string{"excludeHistorical"}, finding.FieldHistorical, "findings_list_historical", Selective},
	{[]string{"clickToFixPrStates"}, finding.FieldClickToFixState, "findings_list_click_to_fix_state", Selective},
	{[]string{"aiSensitivities"}, finding.FieldComponentTag, "findings_list_component_tag", Selective},
	{[]string{"dependencies"}, finding.FieldPackage, "findings_list_package", Selective},
	{[]string{"cves", "advisoryIds", "knownExploit"}, finding.FieldAdvisory, "findings_list_advisory", Selective},
	{[]string{"triageReasons"}, finding.FieldTriageReason, "findings_list_triage_reason", Selective},
	{[]string{"aiVerdicts"}, finding.FieldAutotriageVerdict, "findings_list_autotriage_verdict", Selective},
	{[]string{"actions", "policySlugs"}, finding.FieldPolicyMode, "findings_list_policy_mode", Selective},
	{[]string{"epssProbabilities"}, finding.FieldEpssProbability, "findings_list_epss_probability", Selective},
	{[]string{"transitivities"}, finding.FieldTransitivity, "findings_list_transitivity", Selective},
	{[]string{"exposures", "reachabilities"}, finding.FieldExposure, "findings_list_exposure", Selective},
	{[]string{"validationStates"}, finding.FieldValidationState, "findings_list_validation_state", Selective},
	{[]string{"rules", "ruleIds", "categories", "confidences", "secretTypes", "source"}, finding.FieldRuleID, "findings_list_rule_policy", Selective},
	{[]string{"repositoryNames", "repositoryIds", "repositoryTags", "teamNames", "repoVisibilities"}, finding.FieldProjectID, "findings_list_project", Selective},
	{[]string{"refs", "repositoryRefIds"}, finding.FieldRef, "findings_list_ref", Broad},
	{[]string{"severities"}, finding.FieldSeverity, "findings_list_severity", Broad},
	{[]string{"tab", "aggregateIssueStates"}, finding.FieldStatus, "findings_list_status", Broad},
	{[]string{"since", "until", "relativeSince"}, finding.FieldRelevantSince, "findings_list", Ordering},
}

// UseOf returns how the index by a column is used; ok is false without one.
func UseOf(column string) (use Use, ok bool) {
	for _, f := range Fields {
		if f.Column == column {
			return f.Use, true
		}
	}
	return 0, false
}

// BroadColumns are the broad columns, in their order.
func BroadColumns() (list []string) {
	for _, f := range Fields {
		if f.Use == Broad {
			list = append(list, f.Column)
		}
	}
	return list
}
