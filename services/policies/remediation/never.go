package remediation

import (
	"context"
	"fmt"
	"slices"

	"github.com/palisade/palisade/ent"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/projects/existing"
)

// existingNames has the names of policies that exist, by their kind.
type existingNames map[Reference]map[string]bool

// namesOf looks up what the conditions of policies name.
func namesOf(ctx context.Context, reader *ent.Client, policies []*policiesv1.RemediationPolicy) (existingNames, error) {
	named := map[Reference][]string{}
	for _, policy := range policies {
		for _, condition := range policy.GetFilters().GetConditions() {
			kind, _ := ConditionTypeOf(condition.GetType())
			named[kind.Reference] = append(named[kind.Reference], condition.GetValues()...)
		}
	}
	projects, err := existing.Projects(ctx, reader, named[RefProject])
	if err != nil {
		return nil, err
	}
	exist := existingNames{RefProject: map[string]bool{}}
	for name, own := range projects {
		exist[RefProject][name] = name == own // conditions compare exactly
	}
	if exist[RefTag], err = existing.Tags(ctx, reader, named[RefTag]); err != nil {
		return nil, err
	}
	exist[RefRule], err = existing.Rules(ctx, reader, named[RefRule])
	return exist, err
}

// never says why no finding meets canonical conditions; empty if some may.
func (e existingNames) never(filters *policiesv1.RemediationPolicyFilters) string {
	var reasons []string
	for _, condition := range filters.GetConditions() {
		if reason := e.gone(condition); reason != "" {
			reasons = append(reasons, reason)
		}
	}
	switch {
	case filters.GetMode() == ModeAny && len(reasons) < len(filters.GetConditions()):
		return ""
	case len(reasons) > 0:
		return reasons[0]
	}
	if conflict := ImpossibleFilters(filters); conflict != nil {
		return fmt.Sprintf("its conditions %s contradict each other", filters.GetConditions()[conflict.At].GetType())
	}
	return ""
}

// gone says that everything that a condition includes does not exist any more; empty if something does.
func (e existingNames) gone(condition *policiesv1.RemediationPolicyCondition) string {
	kind, _ := ConditionTypeOf(condition.GetType())
	exists := func(value string) bool { return e[kind.Reference][value] }
	if kind.Reference == RefNone || condition.GetMode() == ModeExclude || slices.ContainsFunc(condition.GetValues(), exists) {
		return ""
	}
	return fmt.Sprintf("there is no %s %q", kind.Reference, condition.GetValues()[0])
}
