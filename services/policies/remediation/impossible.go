package remediation

import (
	"slices"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
)

// Term is a condition, in canonical words, for the question whether a finding can meet it together with others.
type Term struct {
	Type ConditionType
	// Values are the compared values. The question ignores a term without any.
	Values []string
	// All wants all values instead of one of them. Exclude inverts the term.
	All, Exclude bool
}

// Conflict says why no finding meets some terms together.
type Conflict struct {
	// At is the position of a term that takes part.
	At int
	// Only are the products whose findings alone have the property of that term, if other terms leave these out. If it is
	// empty, terms on the same property contradict each other.
	Only []string
}

// Impossible returns why no finding meets terms that are combined as in a Filter; nil if some finding may.
func Impossible(anyOf, noneOf bool, terms []Term) *Conflict {
	switch {
	case anyOf:
		for i := range terms {
			if together(terms[i:i+1]) == nil {
				return nil
			}
		}
		if len(terms) == 0 {
			return nil
		}
		return together(terms[:1])
	case noneOf:
		return together(negated(terms))
	}
	return together(terms)
}

// negated returns the terms that hold if none of the terms does.
func negated(terms []Term) []Term {
	inverted := slices.Clone(terms)
	for i := range inverted {
		inverted[i].Exclude = !inverted[i].Exclude
	}
	return inverted
}

// together returns why no finding meets all terms.
func together(terms []Term) *Conflict {
	for i := range terms {
		first := slices.IndexFunc(terms, func(t Term) bool { return t.Type.Type == terms[i].Type.Type })
		if first == i {
			if at := contradiction(terms, i); at >= 0 {
				return &Conflict{At: at}
			}
		}
	}
	return otherProducts(terms)
}

// contradiction returns the position of the term on the property of terms[first] that leaves no value; -1 if some
// value is left.
func contradiction(terms []Term, first int) int {
	of := terms[first].Type
	if of.Several {
		return contradictionOfSeveral(terms, of)
	}
	left, limited := slices.Clone(of.Values), of.Always
	for _, excluding := range []bool{false, true} {
		for i, t := range terms {
			// A finding has one value, so it always lacks one of several.
			if t.Type.Type != of.Type || t.Exclude != excluding || len(t.Values) == 0 || t.Exclude && t.All && len(t.Values) > 1 {
				continue
			}
			if !limited && !excluding {
				left, limited = slices.Clone(t.Values), true
			}
			left = slices.DeleteFunc(left, func(value string) bool {
				return slices.Contains(t.Values, value) == excluding || t.All && len(t.Values) > 1
			})
			if limited && len(left) == 0 {
				return i
			}
		}
	}
	return -1
}

// contradictionOfSeveral is contradiction for a property of which a finding can have several values.
func contradictionOfSeveral(terms []Term, of ConditionType) int {
	var excluded []string
	for _, t := range terms {
		if t.Type.Type == of.Type && t.Exclude && (!t.All || len(t.Values) == 1) {
			excluded = append(excluded, t.Values...)
		}
	}
	isExcluded := func(value string) bool { return slices.Contains(excluded, value) }
	for i, t := range terms {
		if t.Type.Type != of.Type || t.Exclude || len(t.Values) == 0 {
			continue
		}
		isLeft := func(value string) bool { return !isExcluded(value) }
		if t.All && slices.ContainsFunc(t.Values, isExcluded) || !slices.ContainsFunc(t.Values, isLeft) {
			return i
		}
	}
	return -1
}

// otherProducts finds a term on a property that no finding of the wanted products has.
func otherProducts(terms []Term) *Conflict {
	var wanted []string
	limited := false
	for _, t := range terms {
		if !t.Type.Product || len(t.Values) == 0 {
			continue
		}
		if !limited {
			wanted, limited = slices.Clone(t.Type.Values), true
		}
		wanted = slices.DeleteFunc(wanted, func(product string) bool { return slices.Contains(t.Values, product) == t.Exclude })
	}
	for i, t := range terms {
		if len(t.Type.Only) == 0 || t.Exclude || len(t.Values) == 0 {
			continue
		}
		if !limited {
			wanted, limited = slices.Clone(t.Type.Only), true
		}
		wanted = slices.DeleteFunc(wanted, func(product string) bool { return !slices.Contains(t.Type.Only, product) })
		if len(wanted) == 0 {
			return &Conflict{At: i, Only: t.Type.Only}
		}
	}
	return nil
}

// termsOf returns the conditions of a canonical policy. Conditions of unknown types have no values.
func termsOf(filters *policiesv1.RemediationPolicyFilters) []Term {
	terms := make([]Term, len(filters.GetConditions()))
	for i, c := range filters.GetConditions() {
		if kind, known := ConditionTypeOf(c.GetType()); known {
			terms[i] = Term{Type: kind, Values: c.GetValues(), Exclude: c.GetMode() == ModeExclude}
		}
	}
	return terms
}

// ImpossibleFilters is Impossible for the filters of a canonical policy.
func ImpossibleFilters(filters *policiesv1.RemediationPolicyFilters) *Conflict {
	return Impossible(filters.GetMode() == ModeAny, false, termsOf(filters))
}

// everyFindingMeets reports whether no finding fails to meet the filters of a canonical policy.
func everyFindingMeets(filters *policiesv1.RemediationPolicyFilters) bool {
	terms := negated(termsOf(filters))
	if filters.GetMode() == ModeAny {
		return len(terms) > 0 && together(terms) != nil
	}
	return !slices.ContainsFunc(terms, func(t Term) bool { return together([]Term{t}) == nil })
}
