package automations

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
)

// severalValued are the properties of which a finding can have several values. It has one of the others, or none.
var severalValued = []v1.ConditionType{
	v1.ConditionType_CONDITION_TYPE_REPOSITORY_TAG_ID, v1.ConditionType_CONDITION_TYPE_PATH,
	v1.ConditionType_CONDITION_TYPE_REF, v1.ConditionType_CONDITION_TYPE_POLICY,
	v1.ConditionType_CONDITION_TYPE_VULNERABILITY_CLASS, v1.ConditionType_CONDITION_TYPE_CWE,
	v1.ConditionType_CONDITION_TYPE_OWASP,
}

// everyFindingHas are the properties with fixed values, one of which each finding has.
var everyFindingHas = []v1.ConditionType{
	v1.ConditionType_CONDITION_TYPE_PRIMARY_REF, v1.ConditionType_CONDITION_TYPE_SEVERITY,
	v1.ConditionType_CONDITION_TYPE_PRODUCT,
	v1.ConditionType_CONDITION_TYPE_FULL_SCAN, v1.ConditionType_CONDITION_TYPE_MALICIOUS_DEPENDENCY,
	v1.ConditionType_CONDITION_TYPE_TRIAGE_STATE,
}

// refuseSeveral refuses a condition that wants several values of a property of which a finding has one.
func refuseSeveral(field string, c *v1.AutomationCondition) error {
	if c.GetMode() != v1.Mode_MODE_ALL || len(c.GetValues()) < 2 || slices.Contains(severalValued, c.GetType()) {
		return nil
	}
	return apierr.InvalidArgument(field+".mode",
		"%s.mode: no finding has all of the values of %s, because it has at most one: use MODE_ANY", field, c.GetType())
}

// refuseContradiction refuses conditions on one property that leave no value, where all conditions must hold.
func refuseContradiction(conditions []*v1.AutomationCondition, of v1.ConditionType) error {
	if slices.Contains(severalValued, of) {
		return nil
	}
	var left []string
	limited := slices.Contains(everyFindingHas, of)
	if limited {
		left = slices.Clone(conditionKinds[of].Values)
	}
	for _, excluding := range []bool{false, true} {
		for i, c := range conditions {
			if c.GetType() != of || excluding != (c.GetMode() == v1.Mode_MODE_NONE) {
				continue
			}
			if !limited && !excluding {
				left, limited = slices.Clone(c.GetValues()), true
			}
			left = slices.DeleteFunc(left, func(value string) bool {
				return slices.Contains(c.GetValues(), value) == excluding
			})
			if limited && len(left) == 0 {
				field := fmt.Sprintf("automation.filters.conditions[%d]", i)
				return apierr.InvalidArgument(field,
					"%s: the conditions on %s leave no value, so no finding meets all of them", field, of)
			}
		}
	}
	return nil
}

// refuseImpossible refuses conditions that no finding can meet together: they contradict each other, or one is on a
// property that no finding of the wanted products has.
func refuseImpossible(filters *v1.AutomationFilters) error {
	if filters.GetMode() != v1.Mode_MODE_ALL {
		return nil
	}
	for _, c := range filters.GetConditions() {
		if err := refuseContradiction(filters.GetConditions(), c.GetType()); err != nil {
			return err
		}
	}
	wanted := slices.Clone(vocabulary.Products)
	for _, c := range filters.GetConditions() {
		if c.GetType() == v1.ConditionType_CONDITION_TYPE_PRODUCT {
			wanted = slices.DeleteFunc(wanted, func(p string) bool { return slices.Contains(c.GetValues(), p) == (c.GetMode() == v1.Mode_MODE_NONE) })
		}
	}
	for i, c := range filters.GetConditions() {
		only := conditionKinds[c.GetType()].only
		if c.GetMode() == v1.Mode_MODE_NONE || len(only) == 0 || slices.ContainsFunc(wanted, func(p string) bool { return slices.Contains(only, p) }) {
			continue
		}
		field := fmt.Sprintf("automation.filters.conditions[%d].type", i)
		return apierr.InvalidArgument(field, "%s: only findings of %s have %s, and another condition leaves them out", field, strings.Join(only, ", "), c.GetType())
	}
	return nil
}
