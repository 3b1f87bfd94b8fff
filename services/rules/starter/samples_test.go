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

// sample calls each for each annotation of a file: ruleid if the rule matches the next line, ok if it does not. [X*n]
// in that line stands for n times X.
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

// TestSamples: each rule has samples that it matches and does not match. Rules with a single regular expression run on
// them. The others need a scanner, and the annotations have the format of its own tests.
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
