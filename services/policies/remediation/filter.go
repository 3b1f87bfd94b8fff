package remediation

import "slices"

// Place is where a finding is and what its rule says. Automations compare it; policies do not.
type Place struct {
	// ProjectID and TagIDs are decimal. Ref has the full ref and the short name of the branch.
	ProjectID string
	TagIDs    []string
	Ref       []string
	// Primary and FullScan are true or false; FullScan is empty if no scan is the cause.
	Primary, FullScan string
	// Product is the type of the finding: sast, ai_sast, sca, secrets.
	Product string
	// Paths has the path of the finding and its directories.
	Paths []string
	// Visibility is the project's: public, private, unknown.
	Visibility string
	// CWE, OWASP, Classes and SecretType are of the rule.
	CWE, OWASP, Classes []string
	SecretType          string
	// Advisory, Transitivity, EPSS and Malicious are of dependencies. Malicious is true or false.
	Advisory, Transitivity, EPSS, Malicious string
	// ComponentTag is of automatic analysis; TriageState of package lifecycle.
	ComponentTag, TriageState string
	// Policies are the slugs of the active policies whose conditions match.
	Policies []string
}

// ConditionTypeFor returns a condition type on a property of its own. Without values, it has any.
func ConditionTypeFor(words func(*Facts) []string, values ...string) ConditionType {
	return ConditionType{Values: values, words: words}
}

// Filter combines conditions. Without conditions, Any matches no finding and the others every finding.
type Filter struct {
	// Any: one condition is enough. None: no condition may hold. Otherwise all must hold.
	Any, None  bool
	Conditions []Condition
}

// Condition holds for findings that have one of the values, or all of them. Exclude inverts it.
type Condition struct {
	words        func(*Facts) []string
	values       map[string]bool
	all, exclude bool
}

// Condition compiles a condition on the type.
func (t ConditionType) Condition(values []string, all, exclude bool) Condition {
	c := Condition{words: t.words, values: make(map[string]bool, len(values)), all: all, exclude: exclude}
	for _, value := range values {
		c.values[t.Canonical(value)] = true
	}
	return c
}

// Matches reports whether the filter selects the finding. The words of f are canonical.
func (m *Filter) Matches(f *Facts) bool {
	if m.None {
		return !slices.ContainsFunc(m.Conditions, func(c Condition) bool { return c.holds(f) })
	}
	for i := range m.Conditions {
		if m.Conditions[i].holds(f) == m.Any {
			return m.Any
		}
	}
	return !m.Any
}

func (c *Condition) holds(f *Facts) bool {
	found := 0
	for _, word := range c.words(f) {
		if word == "" || !c.values[word] {
			continue
		}
		if found++; !c.all {
			break
		}
	}
	return (found > 0 && (!c.all || found == len(c.values))) != c.exclude
}

// Matching returns the slugs of the policies whose conditions match the finding, in their order. The words of f are
// canonical.
func Matching(policies []Policy, f *Facts) (slugs []string) {
	for i := range policies {
		if policies[i].filter.Matches(f) {
			slugs = append(slugs, policies[i].slug)
		}
	}
	return slugs
}
