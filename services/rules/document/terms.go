package document

import (
	"slices"
	"strings"
)

// readTerms requires a term that finds something in each conjunction. A list of conditions and exclusions finds
// nothing, and scanners refuse it. What a negation or a condition on a metavariable contains needs none.
func (p *parser) readTerms(v *value) {
	if v.kind == array {
		for _, item := range v.items {
			p.readTerms(item)
		}
	}
	if v.kind != object {
		return
	}
	if v.get("all") != nil && v.get("any") != nil {
		p.problem(v.line, "all and any are alternatives: want one of them")
	}
	for i, key := range v.keys {
		item := v.items[i]
		switch {
		case key == "patterns" && item.kind == array && !slices.ContainsFunc(item.items, isPositive):
			p.problem(item.line, "patterns has no positive term: want at least one of pattern, patterns, pattern-either, pattern-regex and pattern-inside")
		case key == "all" && item.kind == array && !slices.ContainsFunc(item.items, isPositive),
			key == "match" && item.kind == object && !isPositive(item):
			p.problem(item.line, "%s has no positive term: want at least one that is not a negation", key)
		case !isNegative(key) && key != "where":
			p.readTerms(item)
		}
	}
}

// isPositive reports whether an item may find something. Items with unknown keys may.
func isPositive(item *value) bool {
	if item.kind != object {
		return true
	}
	return slices.ContainsFunc(item.keys, func(key string) bool { return !isNegative(key) && key != "where" })
}

func isNegative(key string) bool {
	return key == "not" || key == "focus-metavariable" || strings.HasPrefix(key, "pattern-not") || strings.HasPrefix(key, "metavariable-") ||
		key == "semgrep-internal-metavariable-name"
}
