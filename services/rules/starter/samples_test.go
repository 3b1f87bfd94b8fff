package starter_test

import (
	"flag"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"go.yaml.in/yaml/v3"
)

var writeSamples = flag.String("write", "", "also write the rules and their examples into this directory, for a scanner's own rule tests")

var (
	annotation = regexp.MustCompile(`^\s*(?:#|//) (ruleid|ok): (\S+)$`)
	repeated   = regexp.MustCompile(`\[([^\[\]*]+)\*(\d+)\]`)
)

// sample returns the examples of a rule. In examples of secrets, [X*n] stands for n times X, so that no scanner takes
// this repository's own files for leaks.
func (r rule) sample(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(r.path + languages[r.directory].ending)
	if err != nil {
		t.Fatal(err)
	}
	if r.directory != "secrets" {
		return string(raw)
	}
	return repeated.ReplaceAllStringFunc(string(raw), func(match string) string {
		parts := repeated.FindStringSubmatch(match)
		times, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], times)
	})
}

// lines returns the numbers of the lines below annotations of a kind, and fails if they name other rules.
func (r rule) lines(t *testing.T, text, kind string) []int {
	t.Helper()
	var lines []int
	for i, line := range strings.Split(text, "\n") {
		if found := annotation.FindStringSubmatch(line); found != nil && found[1] == kind {
			lines = append(lines, i+2)
			if found[2] != r.ID {
				t.Errorf("%s: line %d names %s", r.path, i+1, found[2])
			}
		}
	}
	return lines
}

// TestSamples: each rule has at least one example that it matches and two that it does not, or three if its
// confidence is high. Rules of regular expressions run on them and match nothing else. The others need a scanner, and
// their examples have the format of its tests.
func TestSamples(t *testing.T) {
	var files []string
	run := 0
	for _, r := range load(t) {
		path := r.path + languages[r.directory].ending
		files = append(files, r.path+".yaml", path)
		text := r.sample(t)
		matched, others := r.lines(t, text, "ruleid"), r.lines(t, text, "ok")
		want := 2
		if r.Metadata.Confidence == "HIGH" {
			want = 3
		}
		if len(matched) < 1 || len(others) < want {
			t.Errorf("%s: %d examples that match, want 1, and %d that do not, want %d", path, len(matched), len(others), want)
		}
		if found, ok := r.search(text); ok {
			run++
			if !slices.Equal(found, matched) {
				t.Errorf("%s: matches in lines %v, want %v", path, found, matched)
			}
		}
		if err := parse(path, text); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if *writeSamples != "" {
			r.write(t, text)
		}
	}
	if run < 25 {
		t.Errorf("%d rules of regular expressions ran", run)
	}
	on, err := filepath.Glob("rules/*/*")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	if !slices.Equal(on, files) {
		t.Errorf("there are files that belong to no rule: %v", slices.DeleteFunc(on, func(name string) bool { return slices.Contains(files, name) }))
	}
}

// write copies the rule and its examples below -write.
func (r rule) write(t *testing.T, text string) {
	t.Helper()
	target := filepath.Join(*writeSamples, r.directory)
	if err := os.MkdirAll(target, 0o750); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(r.path + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(target, filepath.Base(r.path))
	for path, data := range map[string][]byte{name + ".yaml": source, name + languages[r.directory].ending: []byte(text)} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// search returns the lines that a rule of regular expressions matches, as scanners define it; ok is false for others.
func (r rule) search(text string) (lines []int, ok bool) {
	clauses, _ := r.Remaining["patterns"].([]any)
	if clauses == nil {
		clauses = []any{map[string]any(r.Remaining)}
	}
	var found, excluded [][]int
	for _, clause := range clauses {
		clause, _ := clause.(map[string]any)
		alternatives, either := clause["pattern-either"].([]any)
		if !either {
			alternatives = []any{clause}
		}
		for _, alternative := range alternatives {
			alternative, _ := alternative.(map[string]any)
			if expression, is := alternative["pattern-regex"].(string); is {
				found = append(found, regexp.MustCompile("(?m)"+expression).FindAllStringIndex(text, -1)...)
			} else if expression, is := alternative["pattern-not-regex"].(string); is && !either {
				excluded = append(excluded, regexp.MustCompile("(?m)"+expression).FindAllStringIndex(text, -1)...)
			} else {
				return nil, false
			}
		}
	}
	at := map[int]bool{}
	for _, match := range found {
		if !slices.ContainsFunc(excluded, func(other []int) bool { return other[0] <= match[0] && match[1] <= other[1] }) {
			at[strings.Count(text[:match[0]], "\n")+1] = true
		}
	}
	return slices.Sorted(maps.Keys(at)), true
}

// parse checks the syntax of examples in languages that Go can read.
func parse(path, text string) error {
	switch filepath.Ext(path) {
	case ".go":
		_, err := parser.ParseFile(token.NewFileSet(), path, text, parser.AllErrors)
		return err
	case ".yaml":
		return yaml.Unmarshal([]byte(text), &map[string]any{})
	case ".tf":
		if _, problems := hclsyntax.ParseConfig([]byte(text), path, hcl.InitialPos); problems.HasErrors() {
			return problems
		}
	}
	return nil
}
