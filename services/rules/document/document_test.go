package document_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/rules/document"
)

// rule is a file with one rule from line 2 on: its head and further lines.
func rule(more ...string) string {
	return "rules:\n- id: a.b\n  languages: [python]\n  severity: ERROR\n  message: no\n  " + strings.Join(more, "\n  ") + "\n"
}

// refused lists invalid files with all their problems.
var refused = []struct {
	name, source string
	want         []string
}{
	// The file.
	{"empty", "", []string{"f:1: the file is empty"}},
	{"comment", "# nothing", []string{"f:1: the file is empty"}},
	{"not UTF-8", "rules: \xff", []string{"f:1: the file is not UTF-8"}},
	{"syntax", "rules:\n- id: [", []string{"f:2: this is not YAML: did not find expected node content"}},
	{"two documents", "rules: []\n---\nrules: []", []string{"f:2: a second document begins here: a file of rules is one"}},
	{"a list", "- id: a", []string{"f:1: a file of rules must be an object with the key rules, got a list"}},
	{"a text", "hello", []string{`f:1: a file of rules must be an object with the key rules, got "hello"`}},
	{"no rules", "rule: []", []string{"f:1: the key rules is missing: a file of rules has a list of rules there"}},
	{"rules is an object", "rules: {}", []string{"f:1: rules must be a list, got an object"}},
	{"rules is empty", "rules: []", []string{"f:1: rules is an empty list"}},
	{"rule is a text", "rules: [a]", []string{`f:1: rules[0] must be an object, got "a"`}},
	{"key twice", rule("pattern: a", "pattern: b"), []string{`f:7: the key "pattern" is there twice`}},
	{"deep", "rules: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), []string{"f:1: values nest deeper than 60 levels"}},
	{"key is a list", "rules:\n- [a]: b", []string{"f:2: keys must be texts, got a list or an object"}},
	{"binary", rule("pattern: !!binary aGk="), []string{"f:6: values of the YAML type !!binary are not supported"}},
	{"infinite", rule("options: {a: .inf}"), []string{"f:6: .inf is not a number that JSON knows"}},
	// Keys that each rule has.
	{"nothing", "rules:\n- {}", []string{"f:2: rules[0] has no id", "f:2: languages is missing: a list such as [python]",
		"f:2: severity is missing: one of CRITICAL, HIGH, MEDIUM, LOW, ERROR, WARNING, INFO, EXPERIMENT, INVENTORY", "f:2: message is missing",
		"f:2: there is no pattern: want exactly one of pattern, patterns, pattern-either, pattern-regex, match, or mode taint with pattern-sources and pattern-sinks"}},
	{"id", "rules:\n- id: a b\n  languages: [go]\n  severity: LOW\n  message: m\n  pattern: x",
		[]string{`f:2: rule a b: the id must have 1 to 255 letters, digits, dots, hyphens, underscores and slashes, got "a b"`}},
	{"id with dots alone", "rules:\n- id: a/../b\n  languages: [go]\n  severity: LOW\n  message: m\n  pattern: x",
		[]string{`f:2: rule a/../b: the id must have 1 to 255 letters, digits, dots, hyphens, underscores and slashes, got "a/../b"`}},
	{"id is a number", "rules:\n- id: 104\n  languages: [go]\n  severity: LOW\n  message: m\n  pattern: x",
		[]string{"f:2: the id must be a text, got the number 104: put it into quotes"}},
	{"id twice", rule("pattern: x") + strings.TrimPrefix(rule("pattern: x"), "rules:\n"), []string{"f:7: rule a.b: the id is there already, in line 2"}},
	{"language", "rules:\n- id: a\n  languages: [python, klingon, 3]\n  severity: LOW\n  message: m\n  pattern: x", []string{
		"f:3: rule a: languages[1] must be one of aliengrep, apex, bash,", "f:3: rule a: languages[2] must be one of"}},
	{"languages is a text", "rules:\n- id: a\n  languages: python\n  severity: LOW\n  message: m\n  pattern: x",
		[]string{`f:3: rule a: languages must be a list of at least one language, got "python"`}},
	{"severity", "rules:\n- id: a\n  languages: [python]\n  severity: error\n  message: m\n  pattern: x",
		[]string{`f:4: rule a: severity must be one of CRITICAL, HIGH, MEDIUM, LOW, ERROR, WARNING, INFO, EXPERIMENT, INVENTORY, got "error"`}},
	{"message", "rules:\n- id: a\n  languages: [python]\n  severity: LOW\n  message: ' '\n  pattern: x", []string{"f:5: rule a: message must not be empty"}},
	{"mode", rule("pattern: x", "mode: fast"), []string{`f:7: rule a.b: mode must be one of search, taint, extract, join, steps, secrets, got "fast"`}},
	{"metadata", rule("pattern: x", "metadata: [a]"), []string{"f:7: rule a.b: metadata must be an object, got a list"}},
	{"product", rule("pattern: x", "metadata: {product: secret}"), []string{`f:7: rule a.b: metadata.product must be one of sast, sca, secrets, got "secret"`}},
	{"paths", rule("pattern: x", "paths: {include: a, exclude: [1], only: []}"), []string{`f:7: rule a.b: paths.include must be a list of texts, got "a"`,
		"f:7: rule a.b: paths.exclude[0] must be a text, got 1", `f:7: rule a.b: paths has no key "only": it knows include and exclude`}},
	{"paths is a list", rule("pattern: x", "paths: [a]"), []string{"f:7: rule a.b: paths must be an object with the lists include and exclude, got a list"}},
	{"versions", rule("pattern: x", "min-version: new", "max-version: [1]"), []string{`f:7: rule a.b: min-version must be a version such as 1.97.0, got "new"`,
		"f:8: rule a.b: max-version must be a version such as 1.97.0, got a list"}},
	{"fix", rule("pattern: x", "fix: [a]", "fix-regex: {regex: ''}"), []string{"f:7: rule a.b: fix must be a text, got a list",
		"f:8: rule a.b: fix-regex.regex must not be empty", "f:8: rule a.b: fix-regex.replacement must be a text"}},
	{"fix-regex", rule("pattern: x", "fix-regex: a"), []string{`f:7: rule a.b: fix-regex must be an object with regex and replacement, got "a"`}},
	// Patterns.
	{"two patterns", rule("pattern: x", "pattern-regex: y"), []string{"f:2: rule a.b: there is more than one pattern: pattern and pattern-regex; want exactly one"}},
	{"pattern is empty", rule("pattern: ''"), []string{"f:6: rule a.b: pattern must not be empty"}},
	{"ellipses", rule("patterns:", "- pattern: f(<... $X)", "- pattern: g(....)"), []string{
		`f:7: rule a.b: pattern: "f(<... $X)" cannot be parsed: the <... is not closed: write ...> behind it`,
		`f:8: rule a.b: pattern: "g(....)" cannot be parsed: an ellipsis has three dots`}},
	{"misspelt keys", rule("pattern: x", "patern: y", "pattern_not: z", "Option: {}", "path: [a]", "tags: [a]", "owner: me"), []string{
		"f:7: rule a.b: the key patern is not known: is it pattern?", "f:8: rule a.b: the key pattern_not is not known: is it pattern-not?",
		"f:9: rule a.b: the key Option is not known: is it options?", "f:10: rule a.b: the key path is not known: is it paths?"}},
	{"pattern is a list", rule("pattern: [a]"), []string{"f:6: rule a.b: pattern must be a text, got a list"}},
	{"patterns is a text", rule("patterns: x"), []string{`f:6: rule a.b: patterns must be a list of at least one pattern, got "x"`}},
	{"item is a text", rule("patterns: [x]"), []string{`f:6: rule a.b: patterns[0] must be an object such as pattern: …, got "x"`}},
	{"unknown operator", rule("patterns:", "- patern: x"), []string{"f:7: rule a.b: patterns[0] has none of the operators pattern, patterns, pattern-either,"}},
	{"nested", rule("patterns:", "- pattern-either:", "  - pattern-not: 3", "  - pattern-inside: {patern: x}"), []string{
		"f:8: rule a.b: pattern-not must be a text, got 3", "f:9: rule a.b: pattern-inside[0] has none of the operators"}},
	{"metavariables", rule("patterns:", "- pattern: f($X)", "- focus-metavariable: x", "- focus-metavariable: [$X, $y]", "- metavariable-regex: {metavariable: $X}",
		"- metavariable-regex: {regex: a}", "- metavariable-regex: $X", "- metavariable-comparison: {metavariable: $X}", "- metavariable-pattern: {metavariable: $X}",
		"- metavariable-analysis: {metavariable: $X}", "- metavariable-type: {metavariable: $X, types: int}"), []string{
		`f:8: rule a.b: focus-metavariable must be a metavariable such as $X or a list of them, got "x"`,
		`f:9: rule a.b: focus-metavariable must be a metavariable such as $X or a list of them, got "$y"`,
		"f:10: rule a.b: metavariable-regex: regex is missing", "f:11: rule a.b: metavariable-regex: metavariable is missing",
		`f:12: rule a.b: metavariable-regex must be an object, got "$X"`, "f:13: rule a.b: metavariable-comparison: comparison is missing",
		"f:14: rule a.b: metavariable-pattern[0] has none of the operators", "f:15: rule a.b: metavariable-analysis: analyzer is missing",
		`f:16: rule a.b: metavariable-type: types must be a list of texts, got "int"`}},
	{"taint", rule("mode: taint", "pattern: x", "pattern-sources: []", "pattern-propagators:", "- pattern: f($X, $Y)", "  from: $X"), []string{
		"f:2: rule a.b: mode taint needs pattern-sinks", "f:7: rule a.b: pattern is not allowed with mode taint",
		"f:8: rule a.b: pattern-sources must be a list of patterns, got a list", "f:10: rule a.b: pattern-propagators: to is missing"}},
	{"extract", "rules:\n- id: a\n  mode: extract\n  languages: [html]\n  pattern: x",
		[]string{"f:2: rule a: extract is missing", "f:2: rule a: dest-language is missing"}},
	{"join", rule("mode: join"), []string{"f:2: rule a.b: mode join needs join, an object"}},
	{"steps", rule("mode: steps", "steps: []"), []string{"f:2: rule a.b: mode steps needs steps, a list of at least one"}},
	// Dependencies.
	{"depends on", rule("r2c-internal-project-depends-on: {namespace: pip, package: a}"), []string{
		"f:6: rule a.b: r2c-internal-project-depends-on: namespace must be one of npm, pypi,", "f:6: rule a.b: r2c-internal-project-depends-on: version is missing"}},
	{"depends on either", rule("r2c-internal-project-depends-on: {depends-on-either: [a]}"),
		[]string{`f:6: rule a.b: depends-on-either must be an object with namespace, package and version, got "a"`}},
	{"depends on nothing", rule("r2c-internal-project-depends-on: {depends-on-either: []}"),
		[]string{"f:6: rule a.b: depends-on-either must be a list of at least one dependency, got a list"}},
	// JSON.
	{"JSON", "{\"rules\":[\n{\"id\":\"a\",\n\"languages\":[\"go\"],\"severity\":\"LOW\",\n\"message\":3,\"pattern\":\"x\"}]}",
		[]string{"f:4: rule a: message must be a text, got 3"}},
	{"JSON key twice", "{\"rules\":[],\n\"rules\":[]}", []string{`f:2: the key "rules" is there twice`}},
}

func TestRefused(t *testing.T) {
	for _, test := range refused {
		t.Run(test.name, func(t *testing.T) {
			rules, problems := document.Parse([]byte(test.source), "f")
			if len(problems) != len(test.want) {
				t.Fatalf("got %q\nwant %q", problems, test.want)
			}
			for i, p := range problems {
				if !strings.HasPrefix(p.String(), test.want[i]) {
					t.Errorf("got  %s\nwant %s", p, test.want[i])
				}
			}
			if len(rules) > 0 && test.name != "id twice" {
				t.Errorf("rules were accepted: %v", rules)
			}
		})
	}
}

func TestJSONFilesMustBeJSON(t *testing.T) {
	for source, want := range map[string]string{
		"rules: []":                    "f.json:1: this is not JSON: invalid character 'r' looking for beginning of value",
		"{\n\"rules\": [\n":            "f.json:2: this is not JSON: it ends too early",
		"{\"rules\": [1]}\n{}":         "f.json:2: something follows the end of the JSON",
		"{\"rules\": [\n1 2\n]}":       "f.json:2: this is not JSON: invalid character '2' after array element",
		" ":                            "f.json:1: the file is empty",
		strings.Repeat("[", 100):       "f.json:1: values nest deeper than 60 levels",
		"{\"rules\":\n{\"id\":nulle}}": "f.json:2: this is not JSON:",
	} {
		_, problems := document.Parse([]byte(source), "f.json")
		if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), want) {
			t.Errorf("%q: got %q, want %q", source, problems, want)
		}
	}
}

func only(t testing.TB, source string) document.Rule {
	t.Helper()
	rules, problems := document.Parse([]byte(source), "f")
	if len(problems) > 0 || len(rules) != 1 {
		t.Fatalf("%s\n%q", source, problems)
	}
	return rules[0]
}

// accepted lists valid rules as written in practice.
func TestAccepted(t *testing.T) {
	for _, test := range []struct{ source, product string }{
		{rule("pattern: eval($X)"), "sast"},
		{rule("pattern-regex: '(?i)a'", "metadata: {category: secrets}"), "secrets"},
		{rule("pattern-regex: a", "metadata: {product: Secrets}"), "secrets"},
		{rule("match: {all: [a, b]}"), "sast"},
		{rule("taint: {sources: [input()], sinks: ['f($X)']}"), "sast"},
		{rule("r2c-internal-project-depends-on: {namespace: npm, package: a, version: < 1}"), "sca"},
		{rule("r2c-internal-project-depends-on: {depends-on-either: [{namespace: pypi, package: a, version: '< 1'}]}", "pattern: import a"), "sca"},
		{rule("mode: taint", "pattern-sources: [{pattern: input(), label: A}]", "pattern-sinks: [{patterns: [{pattern: 'f($X)'}, {focus-metavariable: $X}], requires: A}]",
			"pattern-sanitizers: [{pattern: clean(...), by-side-effect: true}]", "pattern-propagators: [{pattern: '$X.add($Y)', from: $Y, to: $X}]"), "sast"},
		{rule("mode: join", "join: {refs: [{rule: a.yaml, as: a}], rules: [], on: ['a.$X == b.$X']}"), "sast"},
		{"rules:\n- id: a\n  mode: extract\n  languages: [generic]\n  pattern: <script>$...JS</script>\n  extract: $...JS\n  dest-language: js", "sast"},
		{rule("patterns:", "- pattern-either: [{pattern: a}, {patterns: [{pattern-inside: b}]}]", "- pattern-not: {patterns: [{pattern: c}]}",
			"- metavariable-comparison: {comparison: $X > 3}", "- metavariable-regex: {metavariable: $1, regex: a}", "- metavariable-pattern: {metavariable: $X, language: js, pattern: a}",
			"- metavariable-type: {metavariable: $X, type: int}", "- metavariable-analysis: {metavariable: $X, analyzer: entropy}"), "sast"},
		{rule("pattern: a", "min-version: 1.50", "max-version: 2.0.0", "fix: b", "fix-regex: {regex: a, replacement: ''}", "paths: {include: ['*.py']}",
			"options: {constant_propagation: false}", "something-new: 1"), "sast"},
	} {
		if got := only(t, test.source); got.Product != test.product || got.Name == "" || !json.Valid(got.Document) {
			t.Errorf("%s\n%+v", test.source, got)
		}
	}
}

func TestDocument(t *testing.T) {
	const source = `rules:
- id: acme/js.eval
  languages: [ts, JavaScript, typescript]
  severity: WARNING
  message: >-
    a <b> &
    "c"
  metadata: &base
    b: 1.10
    a: [0x1F, 1_000, 1e3, -0.5, true, ~, 2026-05-04, "007", yes]
  pattern: $X
  options:
    <<: *base
    b: 2
    more: *base
`
	got := only(t, source)
	want := `{"id":"acme/js.eval","languages":["ts","JavaScript","typescript"],"severity":"WARNING","message":"a <b> & \"c\"",` +
		`"metadata":{"b":1.10,"a":[31,1000,1e3,-0.5,true,null,"2026-05-04","007","yes"]},"pattern":"$X",` +
		`"options":{"b":2,"more":{"b":1.10,"a":[31,1000,1e3,-0.5,true,null,"2026-05-04","007","yes"]},"a":[31,1000,1e3,-0.5,true,null,"2026-05-04","007","yes"]}}`
	if string(got.Document) != want {
		t.Errorf("got  %s\nwant %s", got.Document, want)
	}
	if !reflect.DeepEqual(got.Languages, []string{"javascript", "typescript"}) || got.Severity != "WARNING" || got.Line != 2 {
		t.Errorf("%+v", got)
	}
	again := only(t, `{"rules":[`+want+`]}`)
	if string(again.Document) != want || string(again.Digest) != string(got.Digest) {
		t.Errorf("its JSON is read as %s", again.Document)
	}
	turned := only(t, strings.Replace(source, "  severity: WARNING\n", "", 1)+"  severity: WARNING # another place\n")
	if string(turned.Digest) != string(got.Digest) || string(turned.Document) == want {
		t.Errorf("another order of keys is another rule: %s", turned.Document)
	}
	if other := only(t, strings.Replace(source, "1.10", "1.11", 1)); string(other.Digest) == string(got.Digest) {
		t.Error("another number is the same rule")
	}
}

func TestPlanted(t *testing.T) {
	plant := document.Annotation{Product: "sast", Actions: []string{"block"}, RuleID: 7, VersionID: 9, Name: "a.b", Origin: "import",
		URL: "https://palisade.acme.test/r/a.b", PolicyID: 3, PolicyName: "Block", PolicySlug: "rule-board-block", KeepValidityActions: true}
	const marks = `"product":"sast","dev.semgrep.actions":["block"],"semgrep.dev":{"rule":{"origin":"import","r_id":7,"rule_id":"7","rule_name":"a.b","rv_id":9,` +
		`"version_id":"9","url":"https://palisade.acme.test/r/a.b"},"policy":{"id":3,"name":"Block","slug":"rule-board-block"}},` +
		`"semgrep.policy":{"id":3,"name":"Block","slug":"rule-board-block"}}`
	for source, want := range map[string]string{
		`{"id":"a.b","n":1.50}`:            `{"id":"a.b","n":1.50,"metadata":{` + marks + `}`,
		`{"metadata":null,"id":"a.b"}`:     `{"metadata":{` + marks + `,"id":"a.b"}`,
		`{"metadata":{"x":[1.0]},"z":"<"}`: `{"metadata":{"x":[1.0],` + marks + `,"z":"<"}`,
		`{"metadata":{"semgrep.dev":{"rule":{"origin":"pro_rules"}},"dev.semgrep.actions":[],"dev.semgrep.validation_state.actions":{"valid":"block"},"product":"sca","semgrep.policy":1}}`: `{"metadata":{"dev.semgrep.validation_state.actions":{"valid":"block"},` + marks + `}`,
	} {
		got, err := document.Annotate([]byte(source), plant)
		if err != nil || string(got) != want {
			t.Errorf("%s (%v)\n got %s\nwant %s", source, err, got, want)
		}
	}
	plant.KeepValidityActions, plant.Actions, plant.URL = false, nil, ""
	got, err := document.Annotate([]byte(`{"metadata":{"dev.semgrep.validation_state.actions":{"valid":"block"}}}`), plant)
	if err != nil || strings.Contains(string(got), "validation_state") || strings.Contains(string(got), `"url"`) || !strings.Contains(string(got), `"dev.semgrep.actions":[]`) {
		t.Errorf("%s %v", got, err)
	}
	for _, bad := range []string{"", "[]", "1", `{"a"`, `{"metadata":3}`} {
		if got, err := document.Annotate([]byte(bad), plant); err == nil {
			t.Errorf("%s became %s", bad, got)
		}
	}
}

// Reordering a rule's keys does not change the rule, and its numbers and strings are kept.
func TestDocumentProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		metadata := map[string]any{}
		for range rapid.IntRange(0, 5).Draw(t, "keys") {
			key := rapid.StringMatching(`[a-z<&" é\\]{1,5}`).Draw(t, "key")
			metadata[key] = rapid.OneOf(rapid.Map(rapid.String(), func(s string) any { return strings.ToValidUTF8(s, "") }),
				rapid.Map(rapid.Int64(), func(n int64) any { return json.Number(fmt.Sprint(n)) }), rapid.Just[any](nil), rapid.Just[any]([]any{true})).Draw(t, "value")
		}
		raw, err := json.Marshal(map[string]any{"rules": []any{map[string]any{
			"id": "a", "languages": []string{"go"}, "severity": "LOW", "message": "m", "pattern": "x", "metadata": metadata,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		rules, problems := document.Parse(raw, "f")
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		var got struct{ Metadata map[string]any }
		decoder := json.NewDecoder(strings.NewReader(string(rules[0].Document)))
		decoder.UseNumber()
		if err := decoder.Decode(&got); err != nil || !reflect.DeepEqual(got.Metadata, metadata) {
			t.Fatalf("%v: got %v, want %v", err, got.Metadata, metadata)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, test := range refused {
		if len(test.source) < 1000 {
			f.Add([]byte(test.source))
		}
	}
	starters, err := filepath.Glob("../starter/rules/*/*.yaml")
	if err != nil || len(starters) == 0 {
		f.Fatal(err, starters)
	}
	for _, name := range starters {
		source, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(source)
	}
	f.Add([]byte("rules:\n- &a {id: a, languages: [go], severity: LOW, message: m, pattern: x, metadata: {<<: [{a: 1}, {b: 2}]}}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, source []byte) {
		rules, problems := document.Parse(source, "f")
		if len(rules)+len(problems) == 0 {
			t.Fatal("neither rules nor problems")
		}
		for _, p := range problems {
			if p.Line < 1 || p.Text == "" {
				t.Fatalf("%+v", p)
			}
		}
		for _, rule := range rules {
			again, wrong := document.Parse([]byte(`{"rules":[`+string(rule.Document)+`]}`), "again")
			if len(wrong) > 0 || len(again) != 1 || string(again[0].Document) != string(rule.Document) || string(again[0].Digest) != string(rule.Digest) {
				t.Fatalf("%s\nis read as %v %v", rule.Document, again, wrong)
			}
			planted, err := document.Annotate(rule.Document, document.Annotation{Name: rule.Name, Product: rule.Product})
			if err != nil || !json.Valid(planted) {
				t.Fatalf("%s: %v", planted, err)
			}
		}
	})
}
