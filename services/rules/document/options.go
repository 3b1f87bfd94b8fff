package document

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Options of scanners by the type of their value. Scanners know more, which pass.
var (
	booleanOptions = []string{
		"ac_matching", "arrow_is_function", "attr_expr", "commutative_boolop", "commutative_compop", "constant_propagation",
		"decorators_order_matters", "flddef_assign", "generic_caseless", "generic_multiline", "go_deeper_expr", "go_deeper_stmt",
		"implicit_deep_exprstmt", "implicit_ellipsis", "implicit_return", "interfile", "let_is_var", "symbolic_propagation",
		"symmetric_eq", "taint_assume_safe_booleans", "taint_assume_safe_comparisons", "taint_assume_safe_functions",
		"taint_assume_safe_indexes", "taint_assume_safe_numbers", "taint_intrafile", "taint_only_propagate_through_assignments",
		"taint_unify_mvars", "unify_ids_strictly", "vardef_assign", "xml_attrs_implicit_ellipsis", "xml_children_ordered",
		"xml_singleton_loose_matching",
	}
	integerOptions = []string{"generic_ellipsis_max_span", "max_match_per_file"}
)

// analyzers are the analyzers of metavariables.
var analyzers = []string{"entropy", "entropy_v2", "redos"}

var wholeNumber = regexp.MustCompile(`^-?[0-9]+$`)

func (p *parser) readOptions(v *value) {
	options := v.get("options")
	if options == nil || options.kind != object {
		return
	}
	for i, key := range options.keys {
		switch item := options.items[i]; {
		case item.kind == null:
		case slices.Contains(booleanOptions, key) && item.kind != boolean:
			p.problem(item.line, "options.%s must be true or false, got %s", key, item)
		case slices.Contains(integerOptions, key) && !(item.kind == number && wholeNumber.MatchString(item.text)):
			p.problem(item.line, "options.%s must be an integer, got %s", key, item)
		}
	}
}

// readSideEffect validates by-side-effect of an item of a taint rule.
func (p *parser) readSideEffect(item *value) {
	effect := item.get("by-side-effect")
	if effect != nil && effect.kind != boolean && !(effect.kind == text && slices.Contains([]string{"true", "false", "only"}, effect.text)) {
		p.problem(effect.line, "by-side-effect must be true, false or only, got %s", effect)
	}
}

// Operators of Python that need a term on their right or on their left. A + or a - can begin a term.
var (
	danglingRight = regexp.MustCompile(`([<>=+*/%-]|(?:^|[\s)\]])(?:and|or|not|in|is))$`)
	danglingLeft  = regexp.MustCompile(`^(?:[<>=*/%]|(?:and|or|in|is)\s)`)
)

// comparisonProblem says why a comparison of metavariables cannot be parsed; empty if it can, or if that is unknown.
func comparisonProblem(code string) string {
	if wrong := codeProblem(code, []string{"python"}); wrong != "" {
		return wrong
	}
	code = strings.TrimSpace(code)
	if strings.Contains(code, "#") {
		return "" // a comment
	}
	if operator := danglingRight.FindStringSubmatch(code); operator != nil {
		return fmt.Sprintf("nothing follows %s", strings.TrimLeft(operator[1], " \t\r\n)]"))
	}
	if operator := danglingLeft.FindString(code); operator != "" {
		return fmt.Sprintf("nothing is before %s", strings.TrimSpace(operator))
	}
	return ""
}

var requiresToken = regexp.MustCompile(`[()]|[^\s()]+`)

// requiresProblem says why a condition on labels cannot be parsed: labels with and, or, not and parentheses.
func requiresProblem(condition string) string {
	depth, wantsLabel := 0, true
	for _, token := range requiresToken.FindAllString(condition, -1) {
		isBinary := token == "and" || token == "or"
		switch {
		case strings.ContainsAny(token, "|&!"):
			return fmt.Sprintf("%s is not an operator; want and, or, not", clip(token))
		case wantsLabel && (isBinary || token == ")"), !wantsLabel && !isBinary && token != ")":
			return fmt.Sprintf("%s is not expected there", clip(token))
		case token == "(":
			depth++
		case token == ")":
			if depth--; depth < 0 {
				return "the ) is not opened"
			}
		case token != "not":
			wantsLabel = isBinary
		}
	}
	switch {
	case wantsLabel:
		return "a label is missing at the end"
	case depth > 0:
		return "the ( is not closed"
	}
	return ""
}
