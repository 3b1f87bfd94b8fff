package document

import (
	"regexp"
	"slices"
	"strings"
)

// searchKeys: a search rule has exactly one of these keys.
var searchKeys = []string{"pattern", "patterns", "pattern-either", "pattern-regex", "match"}

// operators are the operators in an item of patterns. Items may have other keys, because scanners support more.
var operators = []string{
	"pattern", "patterns", "pattern-either", "pattern-regex", "pattern-not", "pattern-not-regex", "pattern-inside", "pattern-not-inside",
	"focus-metavariable", "metavariable-regex", "metavariable-pattern", "metavariable-comparison", "metavariable-analysis",
	"metavariable-type", "metavariable-name", "semgrep-internal-pattern-anywhere", "semgrep-internal-metavariable-name",
}

// metavariable matches a name in a pattern: $X, $...ARGS, or $1 of a regular expression.
var metavariable = regexp.MustCompile(`^\$(\.\.\.)?([A-Z_][A-Z_0-9]*|[0-9]+)$`)

// readPatterns validates the rule's patterns.
func (p *parser) readPatterns(v *value, mode string) {
	switch mode {
	case modeTaint:
		p.readTaint(v)
	case modeJoin:
		p.wantObject(v, "join")
		p.readJoin(v.get("join"))
	case modeSteps:
		if steps := v.get("steps"); steps == nil || steps.kind != array || len(steps.items) == 0 {
			p.problem(v.line, "mode steps needs steps, a list of at least one")
		}
	default:
		if mode == modeExtract {
			p.wantText(v, v.get("extract"), "extract")
			p.wantText(v, v.get("dest-language"), "dest-language")
		}
		p.readSearch(v)
	}
}

func (p *parser) wantObject(v *value, key string) {
	if member := v.get(key); member == nil || member.kind != object {
		p.problem(v.line, "mode %s needs %s, an object", key, key)
	}
}

// readJoin validates the rules inside of a join rule. They need no severity and no message.
func (p *parser) readJoin(join *value) {
	rules := join.get("rules")
	if rules == nil || rules.kind != array {
		return
	}
	for _, rule := range rules.items {
		if rule.kind != object || rule.get("mode") != nil || rule.get("languages") == nil {
			continue
		}
		languages := p.readLanguages(rule)
		p.readSearch(rule)
		p.readOptions(rule)
		p.readExpressions(rule, languages)
		if !p.bad {
			p.readTerms(rule.only(patternKeys))
		}
	}
}

// readSearch requires exactly one search key; a dependency rule may have none.
func (p *parser) readSearch(v *value) {
	var found []string
	for _, key := range searchKeys {
		if v.get(key) != nil {
			found = append(found, key)
		}
	}
	if v.get("taint") != nil && len(found) == 0 { // the newer form of taint mode
		if taint := v.get("taint"); taint.kind != object {
			p.problem(taint.line, "taint must be an object, got %s", taint)
		}
		return
	}
	switch len(found) {
	case 0:
		if v.get(keyDependsOn) == nil {
			p.problem(v.line, "there is no pattern: want exactly one of %s, or mode taint with pattern-sources and pattern-sinks", strings.Join(searchKeys, ", "))
		}
		return
	case 1:
	default:
		p.problem(v.line, "there is more than one pattern: %s; want exactly one", strings.Join(found, " and "))
		return
	}
	p.readOperator(found[0], v.get(found[0]))
}

func (p *parser) readTaint(v *value) {
	if v.get("taint") != nil {
		return
	}
	for _, key := range searchKeys {
		if member := v.get(key); member != nil && key != "match" {
			p.problem(member.line, "%s is not allowed with mode taint", key)
		}
	}
	for _, key := range []string{"pattern-sources", "pattern-sinks", "pattern-sanitizers", "pattern-propagators"} {
		list := v.get(key)
		required := key == "pattern-sources" || key == "pattern-sinks"
		switch {
		case list == nil:
			if required {
				p.problem(v.line, "mode taint needs %s", key)
			}
		case list.kind != array || required && len(list.items) == 0:
			p.problem(list.line, "%s must be a list of patterns, got %s", key, list)
		default:
			for i, item := range list.items {
				p.readItem(key, i, item)
				if key == "pattern-propagators" && item.kind == object {
					p.wantMetavariable(item, "from", key)
					p.wantMetavariable(item, "to", key)
				}
			}
		}
	}
}

// readItem validates one item of a list of patterns.
func (p *parser) readItem(list string, i int, item *value) {
	if item.kind != object {
		p.problem(item.line, "%s[%d] must be an object such as pattern: …, got %s", list, i, item)
		return
	}
	known := false
	for n, key := range item.keys {
		if slices.Contains(operators, key) {
			known = true
			p.readOperator(key, item.items[n])
		}
	}
	if !known {
		p.problem(item.line, "%s[%d] has none of the operators %s", list, i, strings.Join(operators[:len(operators)-2], ", "))
	}
}

// readOperator validates the value of an operator.
func (p *parser) readOperator(key string, v *value) {
	switch key {
	case "pattern", "pattern-regex", "pattern-not-regex":
		p.wantText(v, v, key)
	case "pattern-not", "pattern-inside", "pattern-not-inside":
		if v.kind != object { // it may contain patterns
			p.wantText(v, v, key)
			return
		}
		p.readItem(key, 0, v)
	case "patterns", "pattern-either":
		if v.kind != array || len(v.items) == 0 {
			p.problem(v.line, "%s must be a list of at least one pattern, got %s", key, v)
			return
		}
		for i, item := range v.items {
			p.readItem(key, i, item)
		}
	case "match":
		if v.kind != object {
			p.wantText(v, v, key)
		}
	case "focus-metavariable":
		p.readFocus(v)
	default:
		if strings.HasPrefix(key, "metavariable-") {
			p.readMetavariable(key, v)
		}
	}
}

func (p *parser) readFocus(v *value) {
	items := []*value{v}
	if v.kind == array {
		items = v.items
	}
	for _, item := range items {
		if item.kind != text || !metavariable.MatchString(item.text) {
			p.problem(item.line, "focus-metavariable must be a metavariable such as $X or a list of them, got %s", item)
		}
	}
}

// readMetavariable validates a condition on a metavariable.
func (p *parser) readMetavariable(key string, v *value) {
	if v.kind != object {
		p.problem(v.line, "%s must be an object, got %s", key, v)
		return
	}
	if key != "metavariable-comparison" || v.get("metavariable") != nil {
		p.wantMetavariable(v, "metavariable", key)
	}
	switch key {
	case "metavariable-regex":
		p.wantText(v, v.get("regex"), key+": regex")
	case "metavariable-comparison":
		p.wantText(v, v.get("comparison"), key+": comparison")
	case "metavariable-analysis":
		if analyzer := v.get("analyzer"); analyzer == nil || analyzer.kind != object { // an object has options
			p.wantText(v, analyzer, key+": analyzer")
		}
	case "metavariable-type":
		if types := v.get("types"); types != nil {
			p.texts(types, key+": types")
		} else {
			p.wantText(v, v.get("type"), key+": type")
		}
	case "metavariable-pattern":
		p.readItem(key, 0, v)
	}
}

func (p *parser) wantMetavariable(v *value, key, what string) {
	switch name := v.get(key); {
	case name == nil:
		p.problem(v.line, "%s: %s is missing", what, key)
	case name.kind != text || !metavariable.MatchString(name.text):
		p.problem(name.line, "%s: %s must be a metavariable such as $X, got %s", what, key, name)
	}
}
