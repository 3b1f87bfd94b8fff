package remediation

import (
	"slices"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
)

// Slug returns the slug of the policy.
func (p *Policy) Slug() string { return p.slug }

// Name returns the name of the policy.
func (p *Policy) Name() string { return p.name }

// Actions returns the types of the policy's actions.
func (p *Policy) Actions() []string { return p.actions }

// CompileActive compiles the active policies of a bundle, whose policies have slugs, in their order.
func CompileActive(bundle []*policiesv1.RemediationPolicy) ([]Policy, error) {
	var active []Policy
	for _, from := range bundle {
		if !from.GetActive() {
			continue
		}
		policy, err := Compile(Canonical(from))
		if err != nil {
			return nil, err
		}
		policy.slug = from.GetSlug()
		active = append(active, policy)
	}
	return active, nil
}

// Applying returns the positions of the policies that apply to a finding: none if it needs no action.
func Applying(policies []Policy, finding Facts) []int {
	f := finding.Canonical()
	return applying(policies, &f)
}

// applying is Applying for a finding in canonical words.
func applying(policies []Policy, f *Facts) (list []int) {
	for i := range policies {
		if policies[i].Applies(f) {
			list = append(list, i)
		}
	}
	return list
}

// NeedsAction reports whether a finding of a status needs action.
func NeedsAction(status string) bool { return !resolved[status] }

// Applies reports whether the policy applies to a finding in canonical words.
func (p *Policy) Applies(f *Facts) bool { return !resolved[f.Status] && p.filter.Matches(f) }

// BlocksEverything reports whether an active policy blocks each scan with a finding: it has no condition, or none that
// leaves a finding out.
func BlocksEverything(from *policiesv1.RemediationPolicy) bool {
	policy := Canonical(from)
	blocks := slices.ContainsFunc(policy.GetActions(), func(a *policiesv1.RemediationPolicyAction) bool { return a.GetType() == ActionBlock })
	if !policy.GetActive() || !blocks {
		return false
	}
	return everyFindingMeets(policy.GetFilters())
}
