package starter_test

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"go.yaml.in/yaml/v3"
)

// formula holds the keys that contain patterns, and whether each contains more of these keys.
var formula = map[string]bool{
	"pattern": false, "pattern-inside": false, "pattern-not-inside": false, "pattern-regex": false, "pattern-not-regex": false,
	"focus-metavariable": false, "metavariable-regex": false, "metavariable-comparison": false, "pattern-not": false,
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
			list, isList := value.([]any)
			_, isMap := value.(map[string]any)
			switch {
			case !known:
				return errors.New("unknown key " + key)
			case nested && (!isList || len(list) == 0):
				return errors.New(key + " is no list, or empty")
			case nested, key == "pattern-not" && isMap:
				if err := walk(value, visit); err != nil {
					return err
				}
			default:
				visit(key, value)
			}
		}
		return nil
	}
	return errors.New("neither a list nor a map")
}

func TestPatternsAreWellFormed(t *testing.T) {
	for _, r := range load(t) {
		has := func(key string) bool { return r.Remaining[key] != nil }
		plain := slices.DeleteFunc([]string{"pattern", "patterns", "pattern-either", "pattern-regex"}, func(key string) bool { return !has(key) })
		taint := r.Mode == "taint" && has("pattern-sources") && has("pattern-sinks") && len(plain) == 0
		if !taint && (r.Mode != "" || len(plain) != 1 || len(r.Remaining) != 1 || r.Options != nil) {
			t.Errorf("%s: mode %q with %v", r.ID, r.Mode, r.Remaining)
		}
		if err := walk(r.Remaining, func(key string, value any) { r.check(t, key, value) }); err != nil {
			t.Errorf("%s: %v", r.ID, err)
		}
	}
}

// check validates one leaf of a rule's patterns.
func (r rule) check(t *testing.T, key string, value any) {
	t.Helper()
	text, _ := value.(string)
	limits, _ := value.(map[string]any)
	bound, _ := limits["metavariable"].(string)
	switch key {
	case "metavariable-regex":
		expression, _ := limits["regex"].(string)
		if _, err := regexp.Compile(expression); err != nil || expression == "" || len(limits) != 2 {
			t.Errorf("%s: %q: %v", r.ID, expression, err)
		}
		text = bound
	case "metavariable-comparison":
		comparison, _ := limits["comparison"].(string)
		names := metavariables.FindAllString(comparison, -1)
		if len(names) == 0 || bound != "" && bound != names[0] || !compared.MatchString(comparison) {
			t.Errorf("%s: %q", r.ID, comparison)
			return
		}
		for _, name := range names {
			if !slices.Contains(metavariables.FindAllString(r.code(), -1), name) {
				t.Errorf("%s: %s: no pattern has %q", r.ID, key, name)
			}
		}
		return
	case "focus-metavariable":
	case "pattern-regex", "pattern-not-regex":
		if _, err := regexp.Compile(text); err != nil || text == "" {
			t.Errorf("%s: %q: %v", r.ID, text, err)
		}
		return
	default:
		if err := r.parses(text); err != nil {
			t.Errorf("%s: %s: %q is no code: %v", r.ID, key, text, err)
		}
		return
	}
	if !named.MatchString(text) || !slices.Contains(metavariables.FindAllString(r.code(), -1), text) {
		t.Errorf("%s: %s: no pattern has %q", r.ID, key, text)
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
	named         = regexp.MustCompile(`^\$[A-Z][A-Z_0-9]*$`)
	metavariables = regexp.MustCompile(`\$[A-Z][A-Z_0-9]*`)

	// compared are comparisons of metavariables with numbers, joined by and and or.
	compared = regexp.MustCompile(`^\(*\$\w+ [<>]=? \d+\)*( (and|or) \(*\$\w+ [<>]=? \d+\)*)*$`)

	typed = regexp.MustCompile(`\((\$[A-Z]+) : [^)]+\)`)
	deep  = regexp.MustCompile(`<\.\.\.(.*)\.\.\.>`)
	dots  = regexp.MustCompile(`\.\.\.([^"]|$)`)
)

// parses checks the syntax of a pattern. Go, Terraform and YAML have parsers, after names replace metavariables and
// ellipses. Of other languages it checks quotes and brackets.
func (r rule) parses(pattern string) error {
	if strings.TrimSpace(pattern) == "" {
		return errors.New("it is empty")
	}
	code := deep.ReplaceAllString(pattern, "($1)")
	switch r.directory {
	case "go":
		return parsesGo(code)
	case "terraform":
		code = strings.ReplaceAll(code, "{\n", "{\n\n")
		code = regexp.MustCompile(`(?m)^\s*\.\.\.$`).ReplaceAllString(code, "")
		code = strings.ReplaceAll(metavariables.ReplaceAllStringFunc(code, strings.ToLower), "...", `"dots"`)
		if _, problems := hclsyntax.ParseConfig([]byte(strings.ReplaceAll(code, "$", "meta")), "", hcl.InitialPos); problems.HasErrors() {
			return problems
		}
		return nil
	case "actions":
		line := 0
		code = regexp.MustCompile(`(?m)^( *)\.\.\.$`).ReplaceAllStringFunc(code, func(dots string) string {
			line++
			return strings.Replace(dots, "...", fmt.Sprintf("dots%d: x", line), 1)
		})
		return yaml.Unmarshal([]byte(strings.ReplaceAll(code, "...", "dots")), &map[string]any{})
	}
	return balanced(code)
}

// parsesGo reports whether a pattern is valid Go, as statements or as declarations.
func parsesGo(code string) error {
	code = typed.ReplaceAllString(code, "$1")
	code = strings.ReplaceAll(metavariables.ReplaceAllString(code, "meta$0"), "$", "")
	code = dots.ReplaceAllString(code, "dots$1")
	_, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+code+"\n}", 0)
	if err != nil {
		_, err = parser.ParseFile(token.NewFileSet(), "", "package p\n"+strings.ReplaceAll(code, "\ndots", "\n"), 0)
	}
	return err
}

// balanced reports an error for a quote or bracket without its partner.
func balanced(code string) error {
	partner := map[rune]rune{')': '(', ']': '[', '}': '{'}
	var open []rune
	var quote, before rune
	for _, c := range code {
		switch {
		case quote != 0:
			if c == quote && before != '\\' {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == '(' || c == '[' || c == '{':
			open = append(open, c)
		case partner[c] != 0:
			if len(open) == 0 || open[len(open)-1] != partner[c] {
				return fmt.Errorf("%c has no partner", c)
			}
			open = open[:len(open)-1]
		}
		before = c
	}
	if quote != 0 || len(open) > 0 {
		return fmt.Errorf("%c%s is not closed", quote, string(open))
	}
	return nil
}

// conditions are what the expressions on metavariables must and must not match, beyond the examples: the names and
// values that made rules noisy.
var conditions = []struct {
	rule, metavariable string
	want               bool
	texts              []string
}{
	{"go.insecure-random", "$NAME", true, []string{"token", "resetToken", "RESET_TOKEN", "otp", "userOTP", "session_id", "sessionID", "passwd"}},
	{"go.insecure-random", "$NAME", false, []string{"footprint", "tokenCount", "max_tokens", "nonceSize", "secretary", "tokenizer"}},
	{"python.insecure-random", "$NAME", false, []string{"footprint", "token_count", "optional", "desktop"}},
	{"python.insecure-random", "$FUNC", false, []string{"SystemRandom", "Random", "seed"}},
	{"python.sql-injection", "$SQL", true, []string{`"SELECT a FROM b WHERE c = "`, `f"SELECT a FROM b"`, "UPDATE a SET ", `"""` + "\n  insert into a"}},
	{"python.sql-injection", "$SQL", false, []string{`f"job-{number}"`, `"restart "`, `"Selection of "`, `f"{text}"`}},
	{"javascript.sql-injection", "$SQL", true, []string{"`SELECT a FROM b WHERE c = ${d}`", `"delete from a where b = "`}},
	{"javascript.sql-injection", "$SQL", false, []string{"`user:${id}`", `"update-"`, `"selected"`}},
	{"javascript.command-injection", "$MODULE", true, []string{"child_process", "node:child_process"}},
	{"javascript.command-injection", "$MODULE", false, []string{"child_process_promise", "shelljs"}},
	{"javascript.open-redirect", "$TEXT", true, []string{`"/items/"`, "`/items/${id}`", `"https://login.acme.test/?next="`}},
	{"javascript.open-redirect", "$TEXT", false, []string{`"/"`, `"//"`, "`${next}`", `"https://"`, "`https://${host}/`"}},
	{"go.open-redirect", "$PREFIX", false, []string{`"/"`, `"//"`, `"/%s"`, `"https://"`, "https://%s/"}},
	{"python.open-redirect", "$TEXT", false, []string{`f"/{next}"`, `f"https://{host}/"`, `"/\\"`}},
	{"go.world-writable", "$MODE", true, []string{"0o777", "0666", "0o2777"}},
	{"go.world-writable", "$MODE", false, []string{"0o755", "01777", "0o640", "mode"}},
	{"go.hardcoded-credential", "$TEXT", true, []string{"X-API-Key2", "oauth2_token", "changeme-123", "https://a1.acme.test", "test1234"}},
	{"go.hardcoded-credential", "$TEXT", false, []string{"k9Lw-battery-72"}},
	{"kotlin.weak-cipher", "$TRANSFORMATION", false, []string{"RSA/ECB/PKCS1Padding", "AES/GCM/NoPadding"}},
	{"terraform.gcp-open-admin-port", "$PORT", true, []string{"22", "3389", "0-65535", "20-25", "22-22", "1-22", "22-80", "3000-4000", "3389-3390"}},
	{"terraform.gcp-open-admin-port", "$PORT", false, []string{"2", "220", "443", "20-21", "23-3388", "3390-65535", "8000-8999", "33890"}},
	{"terraform.azure-open-admin-port", "$PORT", true, []string{"*", "22", "20-25", "0-65535", "1024-49151"}},
	{"terraform.azure-open-admin-port", "$PORT", false, []string{"80", "23-79", "4000-5000"}},
	{"csharp.sql-injection", "$TYPE", true, []string{"SqlCommand", "NpgsqlCommand", "MySqlCommand", "Microsoft.Data.Sqlite.SqliteCommand"}},
	{"csharp.sql-injection", "$TYPE", false, []string{"MenuCommand", "SqlCommandBuilder", "RelayCommand"}},
	{"actions.script-injection", "$SCRIPT", false, []string{"echo ${{ github.event.issue.number }}", "echo ${{ github.sha }}", "echo $TITLE"}},
}

func TestConditions(t *testing.T) {
	rules := load(t)
	for _, c := range conditions {
		at := slices.IndexFunc(rules, func(r rule) bool { return r.ID == "palisade."+c.rule })
		if at < 0 {
			t.Errorf("there is no rule %s", c.rule)
			continue
		}
		var expressions []*regexp.Regexp
		_ = walk(rules[at].Remaining, func(key string, value any) {
			if limits, _ := value.(map[string]any); key == "metavariable-regex" && limits["metavariable"] == c.metavariable {
				expressions = append(expressions, regexp.MustCompile(`\A(?:`+limits["regex"].(string)+`)`))
			}
		})
		if len(expressions) == 0 {
			t.Errorf("%s has no condition on %s", c.rule, c.metavariable)
		}
		for _, text := range c.texts {
			all := !slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return !e.MatchString(text) })
			if all != c.want {
				t.Errorf("%s: %s: match of %q is %v", c.rule, c.metavariable, text, all)
			}
		}
	}
}
