package automations

import (
	"fmt"
	"strings"

	v1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/policies/remediation"
)

// refuseSeveral refuses a condition that wants several values of a property of which a finding has one.
func refuseSeveral(field string, c *v1.AutomationCondition) error {
	if c.GetMode() != v1.Mode_MODE_ALL || len(c.GetValues()) < 2 || conditionKinds[c.GetType()].Several {
		return nil
	}
	return apierr.InvalidArgument(field+".mode",
		"%s.mode: no finding has all of the values of %s, because it has at most one: use MODE_ANY", field, c.GetType())
}

// refuseImpossible refuses conditions that no finding can meet together: they contradict each other, or one is on a
// property that no finding of the wanted products has.
func refuseImpossible(filters *v1.AutomationFilters) error {
	terms := make([]remediation.Term, len(filters.GetConditions()))
	for i, c := range filters.GetConditions() {
		kind := conditionKinds[c.GetType()].ConditionType
		kind.Type = c.GetType().String()
		terms[i] = remediation.Term{
			Type: kind, Values: c.GetValues(), All: c.GetMode() == v1.Mode_MODE_ALL, Exclude: c.GetMode() == v1.Mode_MODE_NONE,
		}
	}
	conflict := remediation.Impossible(filters.GetMode() == v1.Mode_MODE_ANY, filters.GetMode() == v1.Mode_MODE_NONE, terms)
	if conflict == nil {
		return nil
	}
	field, of := fmt.Sprintf("automation.filters.conditions[%d]", conflict.At), filters.GetConditions()[conflict.At].GetType()
	if len(conflict.Only) > 0 {
		return apierr.InvalidArgument(field+".type", "%s.type: only findings of %s have %s, and another condition leaves them out",
			field, strings.Join(conflict.Only, ", "), of)
	}
	return apierr.InvalidArgument(field, "%s: the conditions on %s leave no value, so no finding meets them", field, of)
}
