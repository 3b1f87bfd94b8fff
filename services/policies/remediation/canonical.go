package remediation

import (
	"maps"
	"slices"
	"strings"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
)

// Canonical returns a policy in the vocabulary's own words, as it is stored and evaluated: without the blanks around
// its texts, and without duplicate values. Unknown words stay as they are.
func Canonical(from *policiesv1.RemediationPolicy) *policiesv1.RemediationPolicy {
	to := &policiesv1.RemediationPolicy{
		Slug: from.GetSlug(), Name: strings.TrimSpace(from.GetName()), Description: strings.TrimSpace(from.GetDescription()), Active: from.GetActive(),
		Filters: &policiesv1.RemediationPolicyFilters{Mode: from.GetFilters().GetMode()},
	}
	for _, condition := range from.GetFilters().GetConditions() {
		to.Filters.Conditions = append(to.Filters.Conditions, canonicalCondition(condition))
	}
	for _, action := range from.GetActions() {
		to.Actions = append(to.Actions, canonicalAction(action))
	}
	return to
}

func canonicalAction(from *policiesv1.RemediationPolicyAction) *policiesv1.RemediationPolicyAction {
	kind, ok := ActionTypeOf(from.GetType())
	if !ok {
		return &policiesv1.RemediationPolicyAction{Type: from.GetType(), Config: from.GetConfig()}
	}
	to := &policiesv1.RemediationPolicyAction{Type: kind.Type, Config: maps.Clone(from.GetConfig())}
	for key := range kind.Values {
		if value, ok := to.GetConfig()[key]; ok {
			to.Config[key] = strings.ToLower(value)
		}
	}
	return to
}

func canonicalCondition(from *policiesv1.RemediationPolicyCondition) *policiesv1.RemediationPolicyCondition {
	to := &policiesv1.RemediationPolicyCondition{Type: from.GetType(), Mode: from.GetMode()}
	if mode, ok := otherModes[from.GetMode()]; ok {
		to.Mode = mode
	}
	kind, known := ConditionTypeOf(from.GetType())
	if known {
		to.Type = kind.Type
	}
	for _, value := range from.GetValues() {
		if value = kind.Canonical(strings.TrimSpace(value)); !slices.Contains(to.Values, value) {
			to.Values = append(to.Values, value)
		}
	}
	return to
}
