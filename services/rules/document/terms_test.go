package document_test

import (
	"strings"
	"testing"

	"github.com/palisade/palisade/services/rules/document"
)

const noTerm = "has no positive term"

// refusedTerms lists rules whose parts are valid, but not together or not in their place.
var refusedTerms = []struct{ source, want string }{
	// Positive terms.
	{rule("patterns: [{pattern-not: x}]"), "f:6: rule a.b: patterns " + noTerm},
	{rule("patterns: [{metavariable-regex: {metavariable: $X, regex: a}}]"), noTerm},
	{rule("patterns: [{pattern-not-regex: x}, {focus-metavariable: $X}]"), noTerm},
	{rule("pattern-either:", "- pattern: a", "- patterns: [{pattern-not-inside: x}]"), "f:8: rule a.b: patterns " + noTerm},
	{rule("patterns: [{pattern: a}, {patterns: [{pattern-not: x}]}]"), noTerm},
	{rule("mode: taint", "pattern-sources: [{patterns: [{pattern-not: x}]}]", "pattern-sinks: [{pattern: a}]"), "f:7: rule a.b: patterns " + noTerm},
	{rule("mode: taint", "pattern-sources: [{pattern: a}]", "pattern-sinks: [{patterns: [{focus-metavariable: $X}]}]"), noTerm},
	{rule("match: {not: a}"), "f:6: rule a.b: match " + noTerm},
	{rule("match: {all: [{not: a}]}"), "f:6: rule a.b: all " + noTerm},
	{rule("match: {any: [b, {all: [{not: a}]}]}"), "all " + noTerm},
	{rule("match: {all: [a], any: [b]}"), "f:6: rule a.b: all and any are alternatives"},
	// Languages.
	{ruleIn("python, regex", "pattern-regex: a"), "f:3: rule a.b: the language regex must be alone"},
	{ruleIn("python, generic", "pattern: a"), "the language generic must be alone"},
	{ruleIn("generic, none", "pattern-regex: a"), "the language generic must be alone"},
	// Values.
	{compare("$X >"), `comparison: "$X >" cannot be parsed: nothing follows >`},
	{compare("$X > 3 and"), "nothing follows and"},
	{compare("== $X"), "nothing is before ="},
	{compare("($X > 3"), "the ( is not closed"},
	{rule("patterns:", "- pattern: f($X)", "- metavariable-analysis: {metavariable: $X, analyzer: bar}"), "f:8: rule a.b: analyzer must be one of entropy, entropy_v2, redos, got \"bar\""},
	{requires("A and"), `f:8: rule a.b: requires: "A and" cannot be parsed: a label is missing at the end`},
	{requires("A ||| B"), "||| is not an operator; want and, or, not"},
	{requires("(A or B"), "the ( is not closed"},
	{requires("A)"), "the ) is not opened"},
	{requires("A B"), "B is not expected there"},
	{rule("pattern: a", "options: {ac_matching: 'yes'}"), `f:7: rule a.b: options.ac_matching must be true or false, got "yes"`},
	{rule("pattern: a", "options: {generic_ellipsis_max_span: 1.5}"), "options.generic_ellipsis_max_span must be an integer, got 1.5"},
	{rule("mode: taint", "pattern-sources: [{pattern: a, by-side-effect: maybe}]", "pattern-sinks: [{pattern: b}]"), `by-side-effect must be true, false or only, got "maybe"`},
	// Rules of a join.
	{join("pattern: f($X"), `pattern: "f($X" cannot be parsed: the ( is not closed`},
	{join("pattern-regex: (a"), `"(a" is not a regular expression`},
	{join("patterns: [{pattern-not: a}]"), "patterns " + noTerm},
	{join("message: no"), "there is no pattern"},
}

func compare(text string) string {
	return rule("patterns:", "- pattern: f($X)", "- metavariable-comparison: {metavariable: $X, comparison: '"+text+"'}")
}

func requires(text string) string {
	return rule("mode: taint", "pattern-sources: [{pattern: a, label: A}]", "pattern-sinks: [{pattern: b, requires: '"+text+"'}]")
}

func join(clause string) string {
	return rule("mode: join", "join: {rules: [{id: b, languages: [python], "+clause+"}], on: ['b.$X == b.$Y']}")
}

func TestClausesThatDoNotGoTogether(t *testing.T) {
	for _, test := range refusedTerms {
		rules, problems := document.Parse([]byte(test.source), "f")
		if len(problems) == 0 || len(rules) > 0 || !strings.Contains(problems[0].String(), test.want) {
			t.Errorf("got  %v\nwant %s\n%s", problems, test.want, test.source)
		}
	}
}

func TestClausesThatGoTogether(t *testing.T) {
	for _, source := range []string{
		rule("patterns: [{pattern-inside: a}]"),
		rule("patterns: [{focus-metavariable: $X}, {pattern: $X}]"),
		rule("patterns: [{pattern-either: [{pattern: a}]}, {pattern-not: b}]"),
		rule("patterns: [{pattern-regex: a}, {pattern-not-regex: b}]"),
		rule("patterns: [{pattern: f($X)}, {metavariable-pattern: {metavariable: $X, patterns: [{pattern-not: a}]}}]"),
		rule("patterns: [{semgrep-internal-pattern-anywhere: a}]"),
		rule("match: {all: [{inside: a}, {not: b}]}"),
		rule("match: {pattern: a, where: [{metavariable: $X, all: [{not: b}]}]}"),
		rule("taint: {sources: [{any: [a, {regex: b}]}], sinks: [{all: [c, {not: d}]}]}"),
		compare("$X > 3 and not ($Y in [1, 2])"), compare("-$X < 3"), compare("not $X"), compare("re.match(\"a>\", $X)"), compare("str($X) == \"in\""), compare("$X % 2 == 0 # >"),
		compare("$X is None or \"b\" in $X"), compare("today() - strptime($X) > 3"), compare("$ORIGIN"), compare("$X"), compare("(\n$X\n>\n3)"),
		requires("A"), requires("not A and (B or not (C))"), requires("(A)or(B)"), requires("A-b or c.d"), requires("not(A)"),
		rule("mode: taint", "pattern-sources: [{pattern: a, by-side-effect: only}, {pattern: c, by-side-effect: true}]", "pattern-sinks: [{pattern: b, requires: [{$X: A}]}]"),
		rule("patterns:", "- pattern: f($X)", "- metavariable-analysis: {metavariable: $X, analyzer: redos}"),
		rule("pattern: a", "options: {ac_matching: false, generic_ellipsis_max_span: 3, an_option_of_tomorrow: 'yes', generic_engine: aliengrep, timeout: 3, interfile: }"),
		rule("pattern: a", `fix-regex: {regex: '(?u)\u0041[[:x:]]', replacement: b}`), join("pattern: f(...)"), join("severity: LOW, message: m, patterns: [{pattern: a}, {pattern-not: b}]"), join("mode: taint"),
		ruleIn("generic", "pattern: a"), ruleIn("none", "pattern-regex: a"), ruleIn("regex, regex", "pattern-regex: a"), ruleIn("js, typescript", "pattern: a"),
	} {
		if rules, problems := document.Parse([]byte(source), "f"); len(rules) != 1 {
			t.Errorf("%v\n%s", problems, source)
		}
	}
}
