package starter_test

import (
	"errors"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rule is a rule in its file: the common keys, and its patterns unparsed.
type rule struct {
	ID        string   `yaml:"id"`
	Languages []string `yaml:"languages"`
	Severity  string   `yaml:"severity"`
	Message   string   `yaml:"message"`
	Metadata  struct {
		Category           string   `yaml:"category"`
		Subcategory        []string `yaml:"subcategory"`
		Confidence         string   `yaml:"confidence"`
		Likelihood         string   `yaml:"likelihood"`
		Impact             string   `yaml:"impact"`
		CWE                []string `yaml:"cwe"`
		OWASP              []string `yaml:"owasp"`
		Technology         []string `yaml:"technology"`
		References         []string `yaml:"references"`
		License            string   `yaml:"license"`
		VulnerabilityClass []string `yaml:"vulnerability_class"`
		Product            string   `yaml:"product"`
		SecretType         string   `yaml:"secret_type"`
	} `yaml:"metadata"`
	Mode      string         `yaml:"mode"`
	Remaining map[string]any `yaml:",inline"`
}

// load reads the rules of each file, by file name without the extension.
func load(t *testing.T) map[string][]rule {
	t.Helper()
	paths, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]rule{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var document struct {
			Rules []rule `yaml:"rules"`
		}
		if err := yaml.Unmarshal(raw, &document); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[strings.TrimSuffix(path, ".yaml")] = document.Rules
	}
	return all
}

func TestRulesAreComplete(t *testing.T) {
	languages := map[string][]string{
		"python": {"python"}, "javascript": {"javascript", "typescript"}, "go": {"go"}, "java": {"java"}, "secrets": {"regex"},
	}
	id := regexp.MustCompile(`^palisade\.[a-z]+\.[a-z]+(-[a-z]+)*$`)
	cwe, owasp := regexp.MustCompile(`^CWE-\d+: [A-Z]`), regexp.MustCompile(`^A\d\d:2021 - [A-Z]`)
	levels := []string{"HIGH", "MEDIUM", "LOW"}
	seen := map[string]bool{}
	for name, rules := range load(t) {
		for _, r := range rules {
			m := r.Metadata
			switch {
			case seen[r.ID], !id.MatchString(r.ID), !strings.HasPrefix(r.ID, "palisade."+name+"."):
				t.Errorf("the id %q is taken or has another form", r.ID)
			case !slices.Equal(r.Languages, languages[name]):
				t.Errorf("%s: languages %v", r.ID, r.Languages)
			case r.Severity != "ERROR" && r.Severity != "WARNING":
				t.Errorf("%s: severity %q", r.ID, r.Severity)
			case len(r.Message) < 100 || strings.Count(r.Message, ".") < 2:
				t.Errorf("%s: a message says what, why and what to do: %q", r.ID, r.Message)
			case m.Category != "security", len(m.Subcategory) != 1, m.Subcategory[0] != "vuln" && m.Subcategory[0] != "audit", m.License != "Apache-2.0":
				t.Errorf("%s: category %q, subcategory %v, license %q", r.ID, m.Category, m.Subcategory, m.License)
			case !slices.Contains(levels, m.Confidence), !slices.Contains(levels, m.Likelihood), !slices.Contains(levels, m.Impact):
				t.Errorf("%s: confidence %q, likelihood %q, impact %q", r.ID, m.Confidence, m.Likelihood, m.Impact)
			case len(m.CWE) != 1, !cwe.MatchString(m.CWE[0]), len(m.OWASP) != 1, !owasp.MatchString(m.OWASP[0]):
				t.Errorf("%s: cwe %q, owasp %q", r.ID, m.CWE, m.OWASP)
			case len(m.Technology) == 0, len(m.References) == 0, len(m.VulnerabilityClass) != 1:
				t.Errorf("%s: technology %v, references %v, vulnerability_class %v", r.ID, m.Technology, m.References, m.VulnerabilityClass)
			case (name == "secrets") != (m.Product == "secrets"), (name == "secrets") != (m.SecretType != ""):
				t.Errorf("%s: product %q, secret_type %q", r.ID, m.Product, m.SecretType)
			}
			seen[r.ID] = true
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d rules", len(seen))
	}
}

// formula holds the keys that contain patterns, and whether each contains more of these keys.
var formula = map[string]bool{
	"pattern": false, "pattern-not": false, "pattern-inside": false, "pattern-not-inside": false, "pattern-regex": false,
	"focus-metavariable": false, "metavariable-regex": false,
	"patterns": true, "pattern-either": true, "pattern-sources": true, "pattern-sinks": true, "pattern-sanitizers": true,
}

// walk calls visit for each leaf key below node.
func walk(node any, visit func(key string, value any)) error {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			if err := walk(item, visit); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		for key, value := range node {
			nested, known := formula[key]
			switch {
			case !known:
				return errors.New("unknown key " + key)
			case !nested:
				visit(key, value)
				continue
			}
			if list, ok := value.([]any); !ok || len(list) == 0 {
				return errors.New(key + " is no list, or empty")
			}
			if err := walk(value, visit); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("neither a list nor a map")
}

func TestPatternsAreWellFormed(t *testing.T) {
	for name, rules := range load(t) {
		for _, r := range rules {
			has := func(key string) bool { return r.Remaining[key] != nil }
			plain := slices.DeleteFunc([]string{"pattern", "patterns", "pattern-either", "pattern-regex"}, func(key string) bool { return !has(key) })
			taint := r.Mode == "taint" && has("pattern-sources") && has("pattern-sinks") && len(plain) == 0
			if !taint && (r.Mode != "" || len(plain) != 1 || len(r.Remaining) != 1) {
				t.Errorf("%s: mode %q with %v", r.ID, r.Mode, r.Remaining)
			}
			if err := walk(r.Remaining, func(key string, value any) { r.check(t, name, key, value) }); err != nil {
				t.Errorf("%s: %v", r.ID, err)
			}
		}
	}
}

// check validates one leaf of a rule's patterns.
func (r rule) check(t *testing.T, language, key string, value any) {
	t.Helper()
	text, _ := value.(string)
	switch key {
	case "metavariable-regex":
		limits, _ := value.(map[string]any)
		metavariable, _ := limits["metavariable"].(string)
		expression, _ := limits["regex"].(string)
		if _, err := regexp.Compile(expression); err != nil || expression == "" {
			t.Errorf("%s: %q: %v", r.ID, expression, err)
		}
		if len(limits) != 2 || !strings.HasPrefix(metavariable, "$") || !strings.Contains(r.code(), metavariable) {
			t.Errorf("%s: %s %v", r.ID, key, value)
		}
	case "pattern-regex":
		if _, err := regexp.Compile(text); err != nil || text == "" {
			t.Errorf("%s: %q: %v", r.ID, text, err)
		}
	case "focus-metavariable":
		if !strings.HasPrefix(text, "$") || !strings.Contains(r.code(), text) {
			t.Errorf("%s: %s %v", r.ID, key, value)
		}
	default:
		if strings.TrimSpace(text) == "" || language == "go" && !parses(text) {
			t.Errorf("%s: %s: %q is no code", r.ID, key, text)
		}
	}
}

// code is all code of the patterns.
func (r rule) code() string {
	var all strings.Builder
	_ = walk(r.Remaining, func(key string, value any) {
		if text, ok := value.(string); ok && strings.HasPrefix(key, "pattern") {
			all.WriteString(text + "\n")
		}
	})
	return all.String()
}

var (
	typed   = regexp.MustCompile(`\((\$[A-Z]+) : [^)]+\)`)
	deep    = regexp.MustCompile(`<\.\.\.(.*)\.\.\.>`)
	metavar = regexp.MustCompile(`\$([A-Z]+)`)
	dots    = regexp.MustCompile(`\.\.\.([^"]|$)`)
)

// parses reports whether a pattern is valid Go after replacing metavariables and ellipses by names.
func parses(pattern string) bool {
	code := typed.ReplaceAllString(pattern, "$1")
	code = deep.ReplaceAllString(code, "($1)")
	code = metavar.ReplaceAllString(code, "meta$1")
	code = dots.ReplaceAllString(code, "dots$1")
	for _, source := range []string{"package p\nfunc f() {\n" + code + "\n}", "package p\n" + strings.ReplaceAll(code, "\ndots", "\n")} {
		if _, err := parser.ParseFile(token.NewFileSet(), "", source, 0); err == nil {
			return true
		}
	}
	return false
}
