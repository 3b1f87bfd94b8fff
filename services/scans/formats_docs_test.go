package scans_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/scans/formats"
)

// factWords are the words of docs/scanners.md for the facts in golden files.
var factWords = map[string]string{
	"cwe": "CWE", "owasp": "OWASP", "package": "package", "fixed": "fixed version", "advisory": "advisory", "fingerprint": "fingerprint",
	"snippet": "code", "suppressed": "suppression", "logical": "logical place", "category": "category", "flow": "data flow",
	"related": "related places", "fix": "fix", "help": "help", "confidence": "confidence", "use": "use of the package", "references": "references", "commit": "commit of a secret",
}

var (
	// formatRow is a row of the table: | title | `name` | command | facts |
	formatRow    = regexp.MustCompile("(?m)^\\| ([^|]+?) +\\| `([a-z0-9.-]+)` +\\| ([^|]+?) +\\| ([^|]*?) +\\|$")
	goldenFormat = regexp.MustCompile(`"format":"([^"]+)"`)
	goldenFact   = regexp.MustCompile(`(?m)^\t(\w+): `)
	goldenKinds  = map[string]*regexp.Regexp{
		"findings": regexp.MustCompile(`(?m)^(?:sast|sca|secrets|ai_sast) `), "dependencies": regexp.MustCompile(`"dependencies":\d`),
		"decisions": regexp.MustCompile(`"decisions(?:_kept|_unmatched)?":\d`),
	}
)

// TestFormatsAreDocumented compares the table of formats in docs/scanners.md with the formats and with what their
// golden imports kept.
func TestFormatsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/scanners.md")
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ title, facts string }
	rows := map[string]row{}
	for _, m := range formatRow.FindAllStringSubmatch(string(page), -1) {
		rows[m[2]] = row{m[1], m[4]}
	}
	kept := keptFacts(t)
	for _, f := range formats.All {
		documented, exists := rows[f.Name]
		delete(rows, f.Name)
		want := strings.Join(slices.Sorted(slices.Values(kept[f.Name])), ", ")
		switch {
		case !exists || documented.title != f.Title:
			t.Errorf("docs/scanners.md needs the row | %s | `%s` | command | %s |", f.Title, f.Name, want)
		case f.Name == formats.SARIF.Name: // the page describes it below the table
		case kept[f.Name] == nil:
			t.Errorf("no golden import of %s in testdata/formats", f.Name)
		case documented.facts != want:
			t.Errorf("%s: docs/scanners.md says that it keeps %q, its golden imports have %q", f.Name, documented.facts, want)
		}
	}
	for name := range rows {
		t.Errorf("docs/scanners.md has a row for %s, which is no format", name)
	}
}

// keptFacts returns the words of the facts in the golden files of each format.
func keptFacts(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("testdata/formats/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string][]string{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		name := goldenFormat.FindStringSubmatch(text)
		if name == nil {
			t.Fatalf("%s has no format", file)
		}
		for kind, pattern := range goldenKinds {
			if pattern.MatchString(text) {
				kept[name[1]] = append(kept[name[1]], kind)
			}
		}
		for _, m := range goldenFact.FindAllStringSubmatch(text, -1) {
			if word := factWords[m[1]]; word != "" {
				kept[name[1]] = append(kept[name[1]], word)
			}
		}
	}
	for name, words := range kept {
		slices.Sort(words)
		kept[name] = slices.Compact(words)
	}
	return kept
}
