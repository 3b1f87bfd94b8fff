package document_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/palisade/palisade/services/rules/document"
)

// ruleIn is a rule of a language with further lines from line 6 on.
func ruleIn(language string, more ...string) string {
	return strings.Replace(rule(more...), "[python]", "["+language+"]", 1)
}

// endScans lists rules that end the scans of real clients.
var endScans = []struct{ name, source, want string }{
	// Languages of regular expressions only.
	{"regex with a pattern", ruleIn("regex", "pattern: foo($X)"), "f:6: rule a.b: pattern is not allowed with the languages regex: they allow pattern-regex and pattern-not-regex only"},
	{"none with a pattern", ruleIn("none", "patterns:", "- pattern-regex: a", "- pattern-not: b"), "f:8: rule a.b: pattern-not is not allowed with the languages none"},
	{"regex with a pattern inside", ruleIn("regex", "patterns:", "- pattern-regex: a", "- pattern-inside: b"), "f:8: rule a.b: pattern-inside is not allowed"},
	{"generic with types", ruleIn("generic", "patterns:", "- pattern: $X", "- metavariable-type: {metavariable: $X, type: int}"), "f:8: rule a.b: metavariable-type is not allowed with the languages generic"},
	{"language of a metavariable", rule("patterns:", "- pattern: f($X)", "- metavariable-pattern: {metavariable: $X, language: klingon, pattern: a}"),
		"f:8: rule a.b: metavariable-pattern: language must be one of"},
	// Ranges of versions.
	{"range of npm", rule("r2c-internal-project-depends-on: {namespace: npm, package: a, version: ^1.2}"), `f:6: rule a.b: r2c-internal-project-depends-on: version: "^1.2" is not a comparison`},
	{"range with one equals sign", rule("r2c-internal-project-depends-on: {namespace: npm, package: a, version: = 1.2}"), `f:6: rule a.b: r2c-internal-project-depends-on: version: "= 1.2" is not a comparison with ==, !=, <, <=, >, >= or ~= such as >= 1.0.0; write == for one version`},
	{"range with or", rule("r2c-internal-project-depends-on: {namespace: npm, package: a, version: '< 1 || > 2'}"), `f:6: rule a.b: r2c-internal-project-depends-on: version: "< 1 || > 2" is not a comparison with ==, !=, <, <=, >, >= or ~= such as >= 1.0.0; write alternatives`},
	{"range without a comma", rule("r2c-internal-project-depends-on: {depends-on-either: [{namespace: npm, package: a, version: '>= 1 < 2'}]}"),
		`f:6: rule a.b: depends-on-either: version: ">= 1 < 2" is not a comparison with ==, !=, <, <=, >, >= or ~= such as >= 1.0.0; put commas`},
	{"range of words", rule("r2c-internal-project-depends-on: {namespace: npm, package: a, version: latest}"), `f:6: rule a.b: r2c-internal-project-depends-on: version: "latest" is not`},
	{"range of commas", rule("r2c-internal-project-depends-on: {namespace: npm, package: a, version: ', ,'}"), `f:6: rule a.b: r2c-internal-project-depends-on: version: it has no comparison`},
	{"compatible with one number", rule("r2c-internal-project-depends-on: {namespace: npm, package: a, version: ~= 1}"), `f:6: rule a.b: r2c-internal-project-depends-on: version: "~= 1" is not`},
	// Regular expressions.
	{"open group", rule("pattern-regex: 'a(?=b'"), `f:6: rule a.b: pattern-regex: "a(?=b" is not a regular expression: the ( at character 2 is not closed`},
	{"group without beginning", rule("pattern-regex: '(?<=a)b)'"), `f:6: rule a.b: pattern-regex: "(?<=a)b)" is not a regular expression: the ) at character 8 has no (`},
	{"open class", rule("patterns:", "- pattern: f($X)", "- metavariable-regex: {metavariable: $X, regex: 'é[^]a'}"), `f:8: rule a.b: regex: "é[^]a" is not a regular expression: the [ at character 2 is not closed`},
	{"nothing to repeat", rule("pattern-regex: 'a|*b'"), "f:6: rule a.b: pattern-regex: \"a|*b\" is not a regular expression: the * at character 3 has nothing to repeat"},
	{"braces with nothing to repeat", rule("pattern-regex: '(?:{2})'"), "f:6: rule a.b: pattern-regex: \"(?:{2})\" is not a regular expression: the {2} at character 4 has nothing to repeat"},
	{"turned quantifier", rule("pattern-not-regex: 'a{3,2}'"), "f:2: rule a.b: there is no pattern"},
	{"turned quantifier in a list", rule("patterns:", "- pattern: a", "- pattern-not-regex: 'a{3,2}'"), "f:8: rule a.b: pattern-not-regex: \"a{3,2}\" is not a regular expression: the quantifier {3,2} needs ascending numbers up to 65535"},
	{"turned range", rule("pattern-regex: '[z-a]'"), "f:6: rule a.b: pattern-regex: \"[z-a]\" is not a regular expression: the range z-a is in the wrong order"},
	{"backslash at the end", rule(`pattern-regex: 'a\'`), `f:6: rule a.b: pattern-regex: "a\\" is not a regular expression: it ends with a backslash`},
	{"open comment", rule("pattern-regex: 'a(?#b'"), "f:6: rule a.b: pattern-regex: \"a(?#b\" is not a regular expression: the comment at character 2 is not closed"},
	{"quantifier of a quantifier", rule("pattern-regex: 'a**'"), `"a**" is not a regular expression: the * at character 3 has nothing to repeat`},
	{"three suffixes", rule("pattern-regex: 'a+?+'"), "the + at character 4 has nothing to repeat"},
	{"name twice", rule("pattern-regex: '(?<n>a)(?<n>b)'"), "there are two groups with the name n"},
	{"endless look-behind", rule("pattern-regex: '(?<=a+)b'"), "the + at character 6 has no limit, in a look-behind"},
	{"endless group in a look-behind", rule("pattern-regex: '(?<=(a|bc)*)d'"), "the * at character 11 has no limit, in a look-behind"},
	{"no group 2", rule(`pattern-regex: '\2(a)'`), `\2 refers to a group that does not exist`},
	{"no group 5", rule(`pattern-regex: '\g{5}'`), `\g{5} refers to a group that does not exist`},
	{"no group before", rule(`pattern-regex: '\g{-1}(a)'`), `\g{-1} refers to a group that does not exist`},
	{"no group x", rule(`pattern-regex: '\k<x>'`), `\k<x> refers to a group that does not exist`},
	{"call of no group", rule("pattern-regex: '(?&foo)'"), "(?&foo) refers to a group that does not exist"},
	{"condition of no group", rule("pattern-regex: '(?(2)a|b)'"), "(?(2) refers to a group that does not exist"},
	{"group in a branch reset", rule(`pattern-regex: '(?|(a)|(b))\2'`), `\2 refers to a group that does not exist`},
	{"property", rule(`pattern-regex: '\p{Foo}'`), `\p{Foo} is not a property of Unicode`},
	{"class of POSIX", rule("pattern-regex: '[[:foo:]]'"), "there is no class [:foo:]; want one of alpha, lower"},
	{"flag", rule("pattern-regex: '(?z)a'"), "(?z) has unknown flags"},
	{"name with a digit", rule("pattern-regex: '(?<1a>b)'"), "(?<1a>: a name has letters, digits and underscores"},
	{"name with a hyphen", rule("pattern-regex: '(?P<a-b>x)'"), "(?P<a-b>: a name has letters, digits and underscores"},
	{"verb", rule("pattern-regex: '(*FOO)a'"), "there is no verb (*FOO)"},
	{"control at the end", rule(`pattern-regex: 'a\c'`), `it ends with \c`},
	{"escape of a case", rule(`pattern-regex: 'a\Lb'`), `\L at character 2 is not supported`},
	{"escape in a class", rule(`pattern-regex: '[\u0041]'`), `\u at character 2 is not supported`},
	{"name of a character", rule(`pattern-regex: '\N{name}'`), `\N at character 1 is not supported`},
	{"code point", rule(`pattern-regex: '\x{110000000}'`), `\x{110000000} is beyond the last character`},
	{"fix-regex", rule("pattern: a", "fix-regex: {regex: '(', replacement: b}"), `f:7: rule a.b: fix-regex.regex: "(" is not a regular expression`},
	{"new syntax", rule("match: {all: [{regex: '('}]}"), `f:6: rule a.b: regex: "(" is not a regular expression`},
	{"taint", rule("mode: taint", "pattern-sources: [{pattern-regex: '('}]", "pattern-sinks: [{pattern: f($X)}]"), `f:7: rule a.b: pattern-regex: "(" is not a regular expression`},
	{"glob", rule("pattern: a", "paths: {include: ['src/[a/*.py']}"), `f:7: rule a.b: paths.include[0]: "src/[a/*.py" is not a glob: the [ is not closed`},
	// Code.
	{"open bracket", rule("pattern: foo($X"), `f:6: rule a.b: pattern: "foo($X" cannot be parsed: the ( is not closed`},
	{"bracket without beginning", rule("patterns:", "- pattern-inside: foo($X]..."), `f:7: rule a.b: pattern-inside: "foo($X]..." cannot be parsed: the ] is not opened`},
	{"open text", ruleIn("go", `pattern: fmt.Println("a, ...)`), `cannot be parsed: a " is not closed`},
	{"open condition", rule("patterns:", "- pattern: f($X)", "- metavariable-comparison: {comparison: int($X > 3}"), `f:8: rule a.b: comparison: "int($X > 3" cannot be parsed: the ( is not closed`},
	// Clauses.
	{"two operators in an item", rule("patterns:", "- pattern: a", "  pattern-not: b"), "f:7: rule a.b: patterns[0] must have one key, got 2: is a hyphen missing?"},
	{"not in either", rule("pattern-either:", "- pattern: a", "- pattern-not: b"), `f:8: rule a.b: pattern-either[1] has no key "pattern-not"; it knows pattern, pattern-regex, patterns, pattern-either and pattern-inside`},
	{"sources without taint", rule("pattern: a", "pattern-sources: [{pattern: b}]"), "f:7: rule a.b: pattern-sources is not allowed in a rule of mode search"},
	{"join in taint", rule("mode: taint", "join: {}", "pattern-sources: [{pattern: b}]", "pattern-sinks: [{pattern: c}]"), "f:7: rule a.b: join is not allowed in a rule of mode taint"},
	{"two patterns of a sink", rule("mode: taint", "pattern-sources: [{pattern: b}]", "pattern-sinks: [{pattern: c, patterns: [{pattern: d}]}]"),
		"f:8: rule a.b: pattern-sinks[0] must be an object with exactly one of pattern, patterns, pattern-either and pattern-regex"},
	{"two patterns of a metavariable", rule("patterns:", "- pattern: f($X)", "- metavariable-pattern: {metavariable: $X, pattern: a, pattern-regex: b}"),
		"f:8: rule a.b: patterns[1].metavariable-pattern must be an object with metavariable, language if it is another, and exactly one of"},
	{"key of a condition", rule("patterns:", "- pattern: f($X)", "- metavariable-regex: {metavariable: $X, regex: a, flags: i}"),
		`f:8: rule a.b: patterns[1].metavariable-regex has no key "flags"; it knows metavariable, regex and constant-propagation`},
	{"strip", rule("patterns:", "- pattern: f($X)", "- metavariable-comparison: {metavariable: $X, comparison: $X > 3, strip: 1}"), "f:8: rule a.b: patterns[1].metavariable-comparison.strip must be of type boolean, got number"},
	{"key of fix-regex", rule("pattern: a", "fix-regex: {regex: a, replacement: b, flags: i}"), `f:7: rule a.b: fix-regex has no key "flags"; it knows regex, replacement and count`},
	{"count", rule("pattern: a", "fix-regex: {regex: a, replacement: b, count: all}"), "f:7: rule a.b: fix-regex.count must be of type integer, got string"},
	{"one dependency and a list", rule("r2c-internal-project-depends-on: {package: b, depends-on-either: [{namespace: npm, package: a, version: < 1}]}"),
		"f:6: rule a.b: r2c-internal-project-depends-on must be one dependency with namespace, package and version, or depends-on-either"},
	{"message of extract", rule("mode: extract", "pattern: a", "extract: $X", "dest-language: js"), "f:4: rule a.b: severity is not allowed in a rule of mode extract"},
	{"nothing as a list", rule("pattern: a", "paths: {include: ['*.py'], exclude: }"), "f:7: rule a.b: paths.exclude must be of type array, got null"},
	{"empty taint", rule("taint: {sources: [], sinks: [a]}"), "f:6: rule a.b: taint.sources must have at least 1, got 0"},
	{"taint and a pattern", rule("taint: {sources: [a], sinks: [b]}", "pattern: c"), "f:7: rule a.b: pattern is not allowed in a rule of mode search"},
}

func TestRulesThatEndScansAreRefused(t *testing.T) {
	for _, test := range endScans {
		t.Run(test.name, func(t *testing.T) {
			rules, problems := document.Parse([]byte(test.source), "f")
			if len(problems) == 0 || len(rules) > 0 || !strings.Contains(problems[0].String(), test.want) {
				t.Errorf("got  %v\nwant %s\n%s", problems, test.want, test.source)
			}
		})
	}
}

// expressions that scanners accept, by the key and the language of the rule.
var expressions = []struct {
	language, key string
	texts         []string
}{
	{"regex", "pattern-regex", []string{
		`a`, `(?<=a)b(?!c)`, `(?<!\.)\beval\(`, `a++b*+c?+`, `(?>a|b)c`, `(?|(a)|(b))\1`, `\((?:[^()]|(?R))*\)`, `(?<name>a)\k<name>`, `(?P<q>['"])a(?P=q)`, `(?'q'a)\g{q}`, `\Q(((\E`, `\Q(((`,
		`a(?#not ( closed)b`, "(?x) a # one ( here\n b", "(?x: a # ) \n) b", `(?i)(?-i:a)`, `(?^:a)`, `[]a]`, `[^]a]`, `[[:alpha:]_[(]`, `[\]]`, `[\Qa]\E]`, `[a-\d]`, `[+-/]`, `\p{Lu}\P{L}\pL`,
		`\x{1F600}\o{101}`, `\N{U+41}`, `\h\R\K\X`, `(*UTF)(*UCP)a`, `(*pla:a)b`, `(*MARK:x)a`, `(a)?(?(1)b|c)`, `(?(?=a)b|c)`, `(?(<n>)a)(?<n>b)`, `(?&n)(?<n>a)`, `(?1)(a)`, `(?+1)(a)`, `(a)(?-1)`,
		`a{,3}`, `a{2,}`, `{a}`, `a{`, `}`, `]`, `^*`, `$?`, `\b+`, `x{1,65535}`, `\cA\c(`, `(?C1)a`, `|a`, `a|`, `(|a)`, `()`, `\/\*`, `[-a]`, `[a-]`, `[a-z-9]`, `(?s).*`, `(?im)^a$`, `\G(?<!^)a`, `(?<=\s|^)a`,
		`(?:AKIA|ASIA)[A-Z0-9]{16}`, `-----BEGIN (?:RSA |EC )?PRIVATE KEY-----`, `\\`, `"[^"\\]*(?:\\.[^"\\]*)*"`, `(?=(a))`, `[[]`,
		`(?|(?<n>a)|(?<n>b))`, `(?J)(?<n>a)|(?<n>b)`, `(?<=a{2}|bc)d`, `(?<=(a|bcd)e)f`, `(?<=a{1,3})b`, `(?<=(?=a+)b)c`, `(?<!^*)a`, `\2(a)(b)`, `\10`, `\012`, `[\8]`, `\g{+1}(a)`, `(a)\g{-1}`, `(?(+1)a|b)(c)`, `(?(n)a|b)(?<n>c)`,
		`(?(DEFINE)(?<n>a))(?&n)`, `(?(R)a|b)`, `(?(VERSION>=10)a|b)`, `\p{L&}\p{^Greek}\p{greek}\p{Script=Han}\p{Xan}\p{Grek}\p{Any}\p{Emoji}\p{Old_Italic}`, `[[:^word:][:xdigit:]]`, `[a-z-9]`, `[\x41-z-9]`, `(?xx)a`, `(?n:(a))\1`,
		`(?ims-x:a)`, `(?<é>a)`, `(*:x)a`, `(*F)`, `(*LIMIT_MATCH=3)a`, `a*\E+`, "(?x) a * +", `a(?#b)*`, `a\Q\E*`, `\N{2}+`, `\x{10FFFF}`, `(a)(?:b|(?|(c)|(d)(e)))\3`, `(?1)*(a)`, `(?R)?a`, `a\Qb\E+`, `[a[b]`, `(?<*a)b`, `(?*a)b`,
	}},
	{"python", "pattern", []string{
		`foo(...)`, `"..."`, `f"...{$X}..."`, `$X = "$Y" + ...`, `<... $X ...>`, `def $F(..., $A, ...): ...`, "@app.route(...)\ndef $F(...):\n  ...", `$X["a)"]`, `'(' + $X`, `r"\("`, `# (`, `"""(`, `$X % ...`, `{**$X, ...}`, `lambda ...: $X`,
		`$...ARGS`, `...`, `$X`, `with open(...) as $F: ...`, `if $X: ...`, `try: ...`,
	}},
	{"javascript, typescript", "pattern", []string{
		`$X.innerHTML = ...`, `<div>5" and ( are text</div>`, `/[(]/.test($X)`, "`(${$X}`", `function $F(...) {...}`, `import {..., $X, ...} from "y"`, `{..., key: $V, ...}`, `$X === '('`, `// (`, `$A ? $B : ($C)`, `import $X from "a"`,
	}},
	{"go", "pattern", []string{`fmt.Sprintf("%s)", $X)`, "`(`", `func $F(...) (..., error) { ... }`, `$X[...]`, `'('`, `import "a"`}},
	{"java", "pattern", []string{"@RequestMapping(...)\n$T $F(...) { ... }", `(HttpServletRequest $R).getParameter(...)`, `$T[] $X = {...};`, `catch ($E $X) { ... }`}},
	{"ruby", "pattern", []string{`%w[a b]`, `"#{$X}("`, `x = ?(`, "<<~A\n(\nA"}[:2]},
	{"rust", "pattern", []string{`fn f<'a>(x: &'a str) { ... }`, `println!("{}(", $X)`, `unsafe { ... }`}},
	{"terraform", "pattern", []string{"resource \"a\" \"...\" {\n  ...\n}", "x = <<EOF\n(\nEOF"}},
	{"bash", "pattern", []string{"case $X in a) ... ;; esac", `echo "a`, `$(...)`}},
	{"yaml", "pattern", []string{"run: don't (", "key: [...", "- ..."}},
	{"generic", "pattern", []string{`foo ( ...`, `"`, `<script ...`, `... )`}},
	{"html", "pattern", []string{`<a href="...">(</a>`, `a "quote`}},
	{"dockerfile", "pattern", []string{`RUN ... (`, `USER root`}},
	{"php", "pattern", []string{`$X = $_GET[...]`, `echo "$X)";`, "<?php $X (...)"}},
	{"clojure", "pattern", []string{`\(`, `(defn $F [...] ...)`}},
}

// TestNoValidExpressionIsRefused: a false refusal would keep a working rule out.
func TestNoValidExpressionIsRefused(t *testing.T) {
	for _, test := range expressions {
		for _, text := range test.texts {
			quoted, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			if rules, problems := document.Parse([]byte(ruleIn(test.language, test.key+": "+string(quoted))), "f"); len(rules) != 1 {
				t.Errorf("%s: %q: %v", test.language, text, problems)
			}
		}
	}
}

func TestRangesOfVersions(t *testing.T) {
	for _, version := range []string{
		">= 1.0.0, < 2.0", "<1.2.3", "< 1.2.3", "==1.0", "== 1.0.*", "!=2.0", "~=1.4.2", "~= 1.4", "===1.0-x", "> 0", ">=4.0.0-beta.86", "<1206.v14049fa", "<= 1.0rc1", ">=1.0.0,<2", ">= 2.0.0-M1, <= v3", "< 1087.1089.v2f1b_9a_b_040e4", "<1,",
	} {
		if rules, problems := document.Parse([]byte(rule("r2c-internal-project-depends-on: {namespace: pypi, package: a, version: '"+version+"'}")), "f"); len(rules) != 1 {
			t.Errorf("%s: %v", version, problems)
		}
	}
}

// Clauses that rules of practice use.
func TestValidClausesAreAccepted(t *testing.T) {
	for _, source := range []string{
		ruleIn("regex", "patterns:", "- pattern-regex: (a)", "- pattern-not-regex: b", "- metavariable-regex: {metavariable: $1, regex: c}", "- metavariable-analysis: {analyzer: entropy, metavariable: $1}",
			"- metavariable-pattern: {metavariable: $1, language: python, pattern: foo(...)}", "- focus-metavariable: $1"),
		ruleIn("regex", "r2c-internal-project-depends-on: {namespace: npm, package: a, version: < 1}"),
		ruleIn("generic", "patterns:", "- pattern: a $X", "- pattern-inside: b ... c", "- metavariable-type: {metavariable: $X, language: java, type: String}"),
		rule("patterns:", "- pattern-either: [{pattern: a}, {pattern-inside: b}, {patterns: [{pattern: c}, {pattern-not: d}]}, {pattern-regex: e}, {pattern-either: [{pattern: f}]}]",
			"- pattern-not: {patterns: [{pattern: g}, {pattern-not-inside: h}]}", "- pattern-not-inside: {pattern-either: [{pattern: i}]}", "- focus-metavariable: [$X, $Y]",
			"- metavariable-regex: {metavariable: $X, regex: a, constant-propagation: true}", "- metavariable-comparison: {metavariable: $X, comparison: $X > 3, strip: true, base: 16}",
			"- metavariable-pattern: {metavariable: $X, patterns: [{pattern: a}, {pattern-not: b}]}", "- metavariable-type: {metavariable: $X, types: [int, str]}",
			"- metavariable-analysis: {metavariable: $X, analyzer: {kind: entropy_v2, mode: strict}}"),
		rule("mode: taint", "pattern-sources: [{patterns: [{pattern: a}], by-side-effect: only, exact: true, control: true, label: A, requires: B}]", "pattern-sinks: [{pattern-either: [{pattern: a}], at-exit: true}]",
			"pattern-sanitizers: [{pattern: a, not_conflicting: true}]", "options: {interfile: true}", "metadata:"),
		rule("mode: taint", "taint: {sources: [{pattern: a, label: A}, {any: [b, {regex: c}]}], sinks: [{all: [a, {not: b}], where: [{metavariable: $X, regex: d}, {focus: $X}]}]}"),
		rule("match: {all: [{any: [a, b]}, {inside: c}, {not: {inside: d}}], where: [{comparison: $X > 1}, {metavariable: $X, type: int}]}"),
		rule("pattern: a", "fix-regex: {regex: '(?<a>b)', replacement: c, count: 1}", "paths: {include: ['[ab].py', 'pages/[slug].tsx'], exclude: ['*_test.py']}", "validators: [{http: {request: {}, response: []}}]",
			"min-version: 1.50.0", "a-key-of-tomorrow: [1]"),
		"rules:\n- id: a\n  mode: extract\n  languages: [generic]\n  pattern: <script>$...JS</script>\n  extract: $...JS\n  dest-language: js\n  transform: no_transform\n  reduce: concat\n  dest-rules: {include: [b]}",
		rule("mode: join", "join: {rules: [{id: b, languages: [python], pattern: c}], refs: [{rule: a.yaml, as: a, renames: [{from: $X, to: $Y}]}], on: ['a.$X == b.$X']}"),
	} {
		if rules, problems := document.Parse([]byte(source), "f"); len(rules) != 1 {
			t.Errorf("%v\n%s", problems, source)
		}
	}
}

// digitName matches names of groups that only RE2 accepts.
var digitName = regexp.MustCompile(`\(\?P?<[0-9]`)

// FuzzExpressions: what RE2 accepts is never refused, and no text breaks the checks.
func FuzzExpressions(f *testing.F) {
	for _, test := range expressions {
		for _, text := range test.texts {
			f.Add(text)
		}
	}
	f.Add(">= 1.0, < 2 || ~=3")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || strings.TrimSpace(text) == "" {
			return
		}
		for key, language := range map[string]string{"pattern-regex": "regex", "pattern": "python"} {
			source, err := json.Marshal(map[string]any{"rules": []any{map[string]any{
				"id": "a", "languages": []string{language}, "severity": "LOW", "message": "m", key: text,
				"r2c-internal-project-depends-on": map[string]string{"namespace": "npm", "package": "a", "version": "< 1"},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			_, problems := document.Parse(source, "f")
			if _, err := regexp.Compile(text); key == "pattern-regex" && err == nil && len(problems) > 0 && !digitName.MatchString(text) {
				t.Errorf("%q: %v", text, problems)
			}
		}
		if source, err := json.Marshal(text); err == nil {
			document.Parse([]byte(rule("r2c-internal-project-depends-on: {namespace: npm, package: a, version: "+string(source)+"}")), "f")
		}
	})
}
