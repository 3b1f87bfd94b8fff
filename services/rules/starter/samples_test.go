package starter_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	annotation = regexp.MustCompile(`^\s*(?:#|//) (ruleid|ok): (\S+)$`)
	repeated   = regexp.MustCompile(`\[(.)\*(\d+)\]`)
)

// sample calls each for every annotation of a file: ruleid where the rule finds the next line, ok where it does not. In
// that line [X*n] stands for n times X.
func sample(t *testing.T, path string, each func(kind, id, line string)) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(raw), "\n")
	for i, line := range lines[:len(lines)-1] {
		if found := annotation.FindStringSubmatch(line); found != nil {
			each(found[1], found[2], repeated.ReplaceAllStringFunc(lines[i+1], func(match string) string {
				parts := repeated.FindStringSubmatch(match)
				times, _ := strconv.Atoi(parts[2])
				return strings.Repeat(parts[1], times)
			}))
		}
	}
}

// TestSamples: every rule has a sample of what it finds and of what it does not. Rules that are one expression are run
// on them; the others need a scanner, for which the annotations have the form of its own tests.
func TestSamples(t *testing.T) {
	ending := map[string]string{"python": ".py", "javascript": ".js", "go": ".go", "java": ".java", "secrets": ".txt"}
	for name, rules := range load(t) {
		path := filepath.Join("samples", name+ending[name])
		kinds := map[string]int{}
		sample(t, path, func(kind, id, line string) {
			kinds[kind+": "+id]++
			at := slices.IndexFunc(rules, func(r rule) bool { return r.ID == id })
			if at < 0 {
				t.Errorf("%s: no rule %s", path, id)
			} else if expression, ok := rules[at].Remaining["pattern-regex"].(string); ok {
				if found := regexp.MustCompile(expression).MatchString(line); found != (kind == "ruleid") {
					t.Errorf("%s: %s: found is %v for %q", path, id, found, line)
				}
			}
		})
		for _, r := range rules {
			if kinds["ruleid: "+r.ID] == 0 || kinds["ok: "+r.ID] == 0 {
				t.Errorf("%s has no sample of what %s finds, or of what it does not", path, r.ID)
			}
		}
	}
	if _, err := parser.ParseFile(token.NewFileSet(), filepath.Join("samples", "go.go"), nil, parser.AllErrors); err != nil {
		t.Error(err)
	}
}
