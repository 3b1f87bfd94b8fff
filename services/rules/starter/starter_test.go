package starter_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/palisade/palisade/services/rules/starter"
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
	Options   map[string]any `yaml:"options"`
	Remaining map[string]any `yaml:",inline"`

	// Directory is the language's directory, and path the file without its extension.
	directory, path string
}

// languages are the directories of rules: what their rules are for, and the ending of their examples.
var languages = map[string]struct {
	languages []string
	ending    string
}{
	"actions":    {[]string{"yaml"}, ".test.yaml"},
	"csharp":     {[]string{"csharp"}, ".cs"},
	"docker":     {[]string{"dockerfile"}, ".dockerfile"},
	"go":         {[]string{"go"}, ".go"},
	"java":       {[]string{"java"}, ".java"},
	"javascript": {[]string{"javascript", "typescript"}, ".js"},
	"kotlin":     {[]string{"kotlin"}, ".kt"},
	"php":        {[]string{"php"}, ".php"},
	"python":     {[]string{"python"}, ".py"},
	"ruby":       {[]string{"ruby"}, ".rb"},
	"secrets":    {[]string{"regex"}, ".txt"},
	"terraform":  {[]string{"terraform"}, ".tf"},
}

// load reads all rules, by path.
func load(t *testing.T) []rule {
	t.Helper()
	paths, err := filepath.Glob("rules/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, path := range paths {
		if strings.HasSuffix(path, ".test.yaml") {
			continue
		}
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
		if len(document.Rules) != 1 {
			t.Fatalf("%s has %d rules: a file has one, and its examples have its name", path, len(document.Rules))
		}
		r := document.Rules[0]
		r.directory, r.path = filepath.Base(filepath.Dir(path)), strings.TrimSuffix(path, ".yaml")
		all = append(all, r)
	}
	return all
}

// The rules that ship with the product are valid for the import, and none is lost on the way.
func TestRules(t *testing.T) {
	rules, err := starter.Rules()
	if err != nil {
		t.Fatal(err)
	}
	if want := load(t); len(rules) != len(want) || len(rules) < 150 {
		t.Errorf("%d rules of %d files, want one a file and at least 150", len(rules), len(want))
	}
}

func TestRulesAreComplete(t *testing.T) {
	cwe, owasp := regexp.MustCompile(`^CWE-(\d+): [A-Z]`), regexp.MustCompile(`^A\d\d:2021 - [A-Z]`)
	levels := []string{"HIGH", "MEDIUM", "LOW"}
	for _, r := range load(t) {
		m := r.Metadata
		switch {
		case r.ID != "palisade."+r.directory+"."+filepath.Base(r.path):
			t.Errorf("%s: the id %q is not its path", r.path, r.ID)
		case !slices.Equal(r.Languages, languages[r.directory].languages):
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
		case (r.directory == "secrets") != (m.Product == "secrets"), (r.directory == "secrets") != (m.SecretType != ""):
			t.Errorf("%s: product %q, secret_type %q", r.ID, m.Product, m.SecretType)
		case !slices.Contains(categories[cwe.FindStringSubmatch(m.CWE[0])[1]], m.OWASP[0][:3]):
			t.Errorf("%s: %s is not in %s", r.ID, m.CWE[0], m.OWASP[0])
		}
	}
}

// categories are the categories of the OWASP Top 10 of 2021 that list a weakness, or the next one above it.
var categories = map[string][]string{
	"22": {"A01"}, "284": {"A01"}, "352": {"A01"}, "377": {"A01"}, "538": {"A01"}, "601": {"A01"},
	"319": {"A02"}, "322": {"A02"}, "326": {"A02"}, "327": {"A02"}, "328": {"A02"}, "329": {"A02"}, "338": {"A02"}, "347": {"A02"}, "916": {"A02"},
	"78": {"A03"}, "79": {"A03"}, "89": {"A03"}, "94": {"A03"}, "95": {"A03"}, "98": {"A03"},
	"269": {"A04"}, "311": {"A04"}, "522": {"A04"},
	"611": {"A05"}, "614": {"A05"}, "942": {"A05"}, "1004": {"A05"},
	"295": {"A07"}, "798": {"A07"},
	"345": {"A08"}, "494": {"A08"}, "502": {"A08"}, "829": {"A08"}, "915": {"A08"},
	"918": {"A10"},

	"250":  {"A04"}, // Execution with Unnecessary Privileges, below 269
	"489":  {"A05"}, // Active Debug Code, below 2
	"732":  {"A01"}, // Incorrect Permission Assignment, below 285
	"943":  {"A03"}, // Data Query Logic, below 74
	"1321": {"A08"}, // Prototype Pollution, below 915
	"1336": {"A03"}, // Template Engine, below 94
}
