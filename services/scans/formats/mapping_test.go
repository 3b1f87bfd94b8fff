package formats_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/scans/sarif"
)

const acmeMapping = `name: acme-lint
title: Acme Lint JSON
detect:
  has: ["files[].problems[].check"]
  equals: {tool.id: acme}
tool:
  name: Acme Lint
  product: sast
  version: doc.tool.version
  category: '"part/" + doc.part'
  failed: doc.status == "aborted"
results: files[].problems[]
result:
  skip: item.state == "ok"
  rule: item.check
  rule_name: item.title
  message: item.text + " in " + parent.name
  severity: 'item.level > 3 ? "critical" : "low"'
  path: parent.name
  line: item.at.line
  cwe: item.weaknesses
  fingerprint: item.id
`

const acmeReport = `{"files":[
	{"problems":[
		{"check":"A1","title":"First","text":"bad","level":4,"at":{"line":7},"weaknesses":[79,"CWE-89"],"id":"x1"},
		{"check":"A2","text":"fine","level":1,"state":"ok"},
		{"check":"A3","text":"worse","level":1,"at":{"line":"12"}}],"name":"src/a b.go"},
	{"name":"src/clean.go"}],
	"tool":{"id":"acme","version":2.5},"part":"web","status":"done"}`

// convertMapped converts a report by a mapping and reads the outcome as SARIF.
func convertMapped(t *testing.T, mapping, report string) (*sarif.Report, []*sarif.Result, []*formats.Notes) {
	t.Helper()
	m, err := formats.ParseMapping([]byte(mapping))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	notes, err := formats.Convert(t.Context(), m.Format(), strings.NewReader(report), sarif.DefaultLimits().Stream(), &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := sarif.Open(t.Context(), bytes.NewReader(out.Bytes()), sarif.Limits{})
	if err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	var results []*sarif.Result
	err = opened.Results(t.Context(), func(r *sarif.Result) error {
		results = append(results, r)
		return nil
	}, func(s sarif.Skip) error {
		t.Errorf("skipped: %+v", s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return opened, results, notes
}

// TestMapping converts results in a list in a list. Facts may follow the results in the document.
func TestMapping(t *testing.T) {
	report, results, notes := convertMapped(t, acmeMapping, acmeReport)
	run := report.Runs[0]
	if run.Tool.Name != "Acme Lint" || run.Tool.Version != "2.5" || run.AutomationCategory != "part/web" || len(results) != 2 {
		t.Fatalf("%+v with %d results", run.Tool, len(results))
	}
	first, second := results[0], results[1]
	if first.RuleID != "A1" || first.Message != "bad in src/a b.go" || first.Path != "src/a b.go" || first.Line != 7 ||
		strings.Join(first.Rule.CWENames, " ") != "CWE-79 CWE-89" || first.ToolFingerprint != "mapping/v1:x1" {
		t.Errorf("first: %+v", first)
	}
	if second.RuleID != "A3" || second.Line != 12 || len(notes[0].Warnings) != 0 || notes[0].Failure != "" {
		t.Errorf("second: %+v, notes %+v", second, notes[0])
	}
}

// TestMappingOfMembers converts results that are the members of an object.
func TestMappingOfMembers(t *testing.T) {
	mapping := "name: m\ndetect: {has: [vulns]}\ntool: {name: M}\nresults: vulns.*\nresult: {rule: key, message: item.title}\n"
	_, results, _ := convertMapped(t, mapping, `{"vulns":{"V-1":{"title":"one"},"V-2":{"title":"two"}}}`)
	if len(results) != 2 || results[0].RuleID != "V-1" || results[1].Message != "two" {
		t.Errorf("%+v", results)
	}
}

// TestMappingBlocksClosing: what the mapping cannot read, and an unfinished tool, close nothing.
func TestMappingBlocksClosing(t *testing.T) {
	for report, want := range map[string]string{
		strings.Replace(acmeReport, `"done"`, `"aborted"`, 1): "the tool did not finish",
		`{"other":[]}`:   "the report has no files[].problems[]",
		`{"files":null}`: "the report has no files[].problems[]",
		strings.Replace(acmeReport, `"level":4`, `"level":"high"`, 1):               "an expression of the mapping fails",
		`{"files":[{"problems":7}]}`:                                                "some of its results could not be read",
		`{"files":[{"problems":[{"title":"neither rule nor anything"}]}]}`:          "some of its results could not be read",
		`{"files":[{"problems":[{"check":"` + strings.Repeat("x", 2<<20) + `"}]}]}`: "some of its results could not be read",
	} {
		if _, _, notes := convertMapped(t, acmeMapping, report); notes[0].Failure != want {
			t.Errorf("%.80s: failure %q, want %q", report, notes[0].Failure, want)
		}
	}
	if _, _, notes := convertMapped(t, acmeMapping, `{"files":[]}`); notes[0].Failure != "" {
		t.Errorf("an empty list is a report without results: %q", notes[0].Failure)
	}
}

// TestInvalidMappings: errors name the line or the member.
func TestInvalidMappings(t *testing.T) {
	for mapping, want := range map[string]string{
		"": "empty",
		strings.Replace(acmeMapping, "item.check", "item.", 1):                                 "line 15: column 6: Syntax error",
		strings.Replace(acmeMapping, "item.title", "result.title", 1):                          "line 16: column 1: undeclared reference to 'result'",
		strings.Replace(acmeMapping, "doc.status ==", "item.status ==", 1):                     "line 11: column 1: undeclared reference to 'item'",
		strings.Replace(acmeMapping, "  severity:", "  colour:", 1):                            "line 18: colour is not a member of a mapping",
		strings.Replace(acmeMapping, "name: acme-lint", "name: Acme Lint", 1):                  "name: got",
		strings.Replace(acmeMapping, "name: acme-lint", "name: sarif", 1):                      "sarif is a format of Palisade",
		strings.Replace(acmeMapping, "files[].problems[]\nresult", "files\nresult", 1):         `want a path that ends in "[]"`,
		strings.Replace(acmeMapping, "product: sast", "product: code", 1):                      "tool.product",
		"name: m\ntool: {name: M}\nresults: a[]\nresult: {rule: item.a}\n":                     "detect is required",
		"name: m\ndetect: {has: [a]}\ntool: {name: M}\nresults: a[]\nresult: {path: item.a}\n": "rule or message",
		"name: [\n":                 "line 1",
		strings.Repeat("#", 65<<10): "at most 65536",
	} {
		if _, err := formats.ParseMapping([]byte(mapping)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", mapping, err, want)
		}
	}
}

func FuzzMapping(f *testing.F) {
	f.Add(acmeMapping, acmeReport)
	f.Fuzz(func(t *testing.T, mapping, report string) {
		m, err := formats.ParseMapping([]byte(mapping))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if _, err := formats.Convert(t.Context(), m.Format(), strings.NewReader(report), sarif.DefaultLimits().Stream(), &out, io.Discard); err != nil {
			return
		}
		if _, err := sarif.Open(t.Context(), bytes.NewReader(out.Bytes()), sarif.Limits{}); err != nil {
			t.Errorf("the conversion is not SARIF: %v\n%s", err, out.Bytes())
		}
	})
}
