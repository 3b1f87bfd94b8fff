package sarif_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/sarif"
)

func open(doc string, limits sarif.Limits) (*sarif.Report, error) {
	return sarif.Open(context.Background(), strings.NewReader(doc), limits)
}

func TestBrokenJSONIsLocated(t *testing.T) {
	for _, c := range []struct {
		doc                  string
		offset, line, column int64
		msg                  string
	}{
		{"{\n \"version\": \"2.1.0\",\n \"runs\": [,]}", 33, 3, 11, "invalid character ','"},
		{"<html>", 0, 1, 1, "invalid character '<'"},
		{"{\"version\":\"2.1.0\",\n\"runs\":[{\"tool\":{\"driver\":{\"name\":\"t\"}},\"results\":[{\"ruleId\":\"r\"},\n{\"a\":tru", 0, 3, 0, "ends in the middle"},
		{"{\"version\":\"2.1.0\"", 0, 1, 0, "ends in the middle"},
		{`{"version":"2.1.0","runs":[]} x`, 0, 1, 0, "invalid character 'x'"},
		{`{"version":"2.1.0","runs":[]}{}`, 0, 1, 0, "more text after the end"},
		{`{"version":"2.1.0","runs":[{"results":[{"a":"` + "\n" + `"}]}]}`, 0, 0, 0, "invalid character '\\n'"},
		{`   `, 0, 1, 0, "ends in the middle"},
		{`{"version":"2.1.0","runs":[]]`, 28, 1, 29, "invalid character ']'"},
	} {
		_, err := open(c.doc, sarif.Limits{})
		var syntax *jsonstream.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%q gives %v, want a SyntaxError", c.doc, err)
			continue
		}
		ok := strings.Contains(syntax.Msg, c.msg) && (c.line == 0 || syntax.Line == c.line)
		if c.column > 0 {
			ok = ok && syntax.Column == c.column && syntax.Offset == c.offset
		}
		if !ok {
			t.Errorf("%q gives %+v, want %q at byte %d, line %d, column %d", c.doc, syntax, c.msg, c.offset, c.line, c.column)
		}
	}
	// A byte order mark counts as bytes of the file.
	_, err := open("\xEF\xBB\xBF{,}", sarif.Limits{})
	var syntax *jsonstream.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset != 4 {
		t.Errorf("behind a byte order mark: %v", err)
	}
	if want := "the report is not valid JSON: "; !strings.HasPrefix(syntax.Error(), want) {
		t.Errorf("text is %q", syntax.Error())
	}
}

func TestOtherFormatsAreRefused(t *testing.T) {
	for doc, want := range map[string]string{
		"":                                "the file is empty",
		"[]":                              "the top level is an array, want an object",
		`"x"`:                             "the top level is a string, want an object",
		"{}":                              "it has neither version nor runs",
		`{"runs":[]}`:                     "version is missing, want 2.1.0",
		`{"version":"2.0.0","runs":[]}`:   "version is 2.0.0, want 2.1.0",
		`{"version":2.1,"runs":[]}`:       "version is a number, want 2.1.0",
		`{"version":"2.1.0"}`:             "runs is missing, want an array",
		`{"version":"2.1.0","runs":null}`: "runs is null, want an array",
		`{"runs":7,"version":"2.1.0"}`:    "runs is a number, want an array",
		"\xFF\xFE{\x00":                   "UTF-16",
		"\x1F\x8B\x08\x00":                "gzip",
		"PK\x03\x04":                      "ZIP",
	} {
		_, err := open(doc, sarif.Limits{})
		var format *sarif.FormatError
		if !errors.As(err, &format) || !strings.Contains(format.Error(), want) {
			t.Errorf("%q gives %v, want %q", doc, err, want)
		}
	}
}

func TestLenientReading(t *testing.T) {
	doc := "\xEF\xBB\xBF" + `{"unknown":{"deep":[1,{"a":null}]},"runs":[{"new":[],"results":[{"x":1,"ruleId":"r","message":{"text":"m","more":[]}}],
		"tool":{"driver":{"odd":1,"name":"t"},"and":2}}],"version":"2.1.0"}` + " \r\n"
	o := read(t, doc)
	only(t, o)
	if o.report.Bytes != int64(len(doc)) {
		t.Errorf("report has %d bytes, want %d", o.report.Bytes, len(doc))
	}
	// The second pass can be repeated.
	only(t, collect(t, o.report))
	if o := read(t, `{"version":"2.1.0","runs":[]}`); len(o.report.Runs) != 0 {
		t.Errorf("no runs are %d", len(o.report.Runs))
	}
}

func TestABadRunRejectsItselfOnly(t *testing.T) {
	const good = `{"tool":{"driver":{"name":"t"}},"results":[{"ruleId":"r","message":{"text":"m"}}]}`
	const results = `"results":[{"ruleId":"r","message":{"text":"m"}},7]`
	for bad, want := range map[string]string{
		`7`:                                      "it is a number, want an object",
		`null`:                                   "it is null, want an object",
		`{` + results + `}`:                      "tool.driver.name is missing",
		`{"tool":{},` + results + `}`:            "tool.driver.name is missing",
		`{"tool":null,` + results + `}`:          "tool is null, want an object",
		`{"tool":{"driver":[]},` + results + `}`: "tool.driver is an array, want an object",
		`{"tool":{"driver":{"name":[]}},` + results + `}`:   "tool.driver.name is an array, want a string",
		`{"tool":{"driver":{"name":"  "}},` + results + `}`: "tool.driver.name is missing",
		`{"tool":{"driver":{"name":"t"}},"results":"many"}`: "results is a string, want an array",
	} {
		o := read(t, `{"version":"2.1.0","runs":[`+good+`,`+bad+`,`+good+`]}`)
		if rejected := o.report.Runs[1].Rejected; !strings.Contains(rejected, want) {
			t.Errorf("%s: rejected %q, want %q", bad, rejected, want)
		}
		if len(o.results) != 2 || o.results[1].Run != 2 {
			t.Errorf("%s: %d results of the good runs, want 2", bad, len(o.results))
		}
		for _, s := range o.skips {
			if s.Run != 1 || !strings.Contains(s.Reason, want) {
				t.Errorf("%s: skip %+v", bad, s)
			}
		}
	}
}

func TestOddPartsAreWarnings(t *testing.T) {
	o := read(t, run(`"tool":{"driver":{"name":"t","rules":[{"id":7},{"id":""},{"id":"r"},null]},"extensions":7},"taxonomies":"x","artifacts":{},
		"invocations":[7,{"executionSuccessful":"yes"}],"automationDetails":[],"originalUriBaseIds":7,
		"results":[{"ruleId":"r","message":{"text":"m"}}]`))
	if r := only(t, o); r.Rule.Stub {
		t.Error("the good rule beside bad ones is not found")
	}
	text := strings.Join(o.report.Runs[0].Warnings, "\n")
	for _, want := range []string{
		"/runs/0/tool/driver/rules/0/id is a number, want a string: converted", "/rules/1 is ignored: it has no id (and 1 more like it)",
		"/runs/0/tool/extensions is a number, want an array: ignored", "/runs/0/taxonomies is a string, want an array: ignored",
		"/runs/0/artifacts is an object, want an array: read as its only element", "/runs/0/invocations/0 is a number, want an object: ignored",
		"/runs/0/invocations/1/executionSuccessful is a string, want a boolean: ignored",
		"/runs/0/automationDetails is ignored: it is an array, want an object", "/runs/0/originalUriBaseIds is ignored: it is a number, want an object",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no warning has %q:\n%s", want, text)
		}
	}
}

func TestWarningsAreBounded(t *testing.T) {
	var results strings.Builder
	for i := range 999 {
		fmt.Fprintf(&results, `{"ruleId":"r","fingerprints":{"f%dx":{}}},`, i)
	}
	o := read(t, driver("t", results.String()+`{"ruleId":"r"}`))
	if w := o.report.Runs[0].Warnings; len(w) != 51 || w[50] != "further warnings are left out" {
		t.Errorf("%d warnings, the last %q", len(w), w[len(w)-1])
	}
}

func TestCategory(t *testing.T) {
	for id, want := range map[string]string{
		"my/analysis/2026-01-01": "my/analysis", "tool/": "tool", "tool": "", "/x": "", "": "",
	} {
		o := read(t, run(`"automationDetails":{"id":"`+id+`"},"tool":{"driver":{"name":"t"}},"results":[]`))
		if got := o.report.Runs[0].AutomationCategory; got != want {
			t.Errorf("category of %q is %q, want %q", id, got, want)
		}
	}
}

func TestRevision(t *testing.T) {
	o := read(t, run(`"versionControlProvenance":[{"repositoryUri":"https://git.acme.test/web","revisionId":"3f2a9c1","branch":"main"}],
		"tool":{"driver":{"name":"t"}},"results":[]`))
	if r := o.report.Runs[0]; r.Revision != "3f2a9c1" || r.Branch != "main" {
		t.Errorf("revision %q of branch %q", r.Revision, r.Branch)
	}
}

func TestSucceeded(t *testing.T) {
	for _, c := range []struct {
		tool, members string
		want          bool
	}{
		{"t", `"results":[]`, true},
		{"t", `"results":[],"invocations":[{"executionSuccessful":true}]`, true},
		{"t", `"results":[],"invocations":[{"executionSuccessful":true},{"executionSuccessful":false}]`, false},
		{"t", `"invocations":[{"executionSuccessful":true,"toolExecutionNotifications":[{"level":"error","message":{"text":"m"}}]}],"results":[]`, false},
		{"t", `"invocations":[{"executionSuccessful":true,"toolExecutionNotifications":[{"level":"warning"},{}]}],"results":[]`, true},
		{"t", `"invocations":[{"executionSuccessful":true,"exitSignalName":"SIGKILL"}],"results":[]`, false},
		{"t", `"invocations":[{"executionSuccessful":true,"processStartFailureMessage":"no such file"}],"results":[]`, false},
		{"t", `"invocations":[{"executionSuccessful":"TRUE"}],"results":[]`, true},
		{"t", `"invocations":[{"executionSuccessful":"false"}],"results":[]`, false},
		// Some tools call it a failure that they found something.
		{"SpotBugs", `"results":[],"invocations":[{"exitCode":1,"exitSignalName":"BUGS FOUND","executionSuccessful":false}]`, true},
		{"SpotBugs", `"results":[],"invocations":[{"exitCode":3,"exitSignalName":"MISSING CLASS,BUGS FOUND","executionSuccessful":false}]`, true},
		{"SpotBugs", `"results":[],"invocations":[{"exitCode":5,"exitSignalName":"ERROR,BUGS FOUND","executionSuccessful":false}]`, false},
		{"Psalm", `"results":[],"invocations":[{"exitCode":2,"executionSuccessful":false}]`, true},
		{"Psalm", `"results":[],"invocations":[{"exitCode":1,"executionSuccessful":false}]`, false},
		{"pylint", `"results":[],"invocations":[{"exitCode":28,"executionSuccessful":false}]`, true},
		{"pylint", `"results":[],"invocations":[{"exitCode":29,"executionSuccessful":false}]`, false},
		{"Snyk Open Source", `"results":[],"invocations":[{"exitCode":1,"executionSuccessful":false}]`, true},
		{"semgrep", `"results":[],"invocations":[{"exitCode":2,"executionSuccessful":true}]`, false},
		{"semgrep", `"results":[],"invocations":[{"exitCode":1,"executionSuccessful":false,"toolExecutionNotifications":[{"level":"error"}]}]`, false},
		{"unknown tool", `"results":[],"invocations":[{"exitCode":1,"executionSuccessful":false}]`, false},
		{"unknown tool", `"results":[],"invocations":[{"exitCode":1,"executionSuccessful":true}]`, true},
		{"t", `"other":1`, false},
		{"t", `"results":null`, false},
		{"ESLint", `"results":[],"invocations":[{"executionSuccessful":false,"toolConfigurationNotifications":[{"level":"warning","message":{"text":"File ignored by default."}}]}]`, false},
		{"t", `"results":[],"externalPropertyFileReferences":{"results":[{"location":{"uri":"more.sarif"}}]}`, false},
		// ESLint writes false for an unused directive. A file that it cannot parse is an error.
		{"ESLint", `"results":[],"invocations":[{"executionSuccessful":false,"toolConfigurationNotifications":[{"level":"warning"}]}]`, true},
		{"ESLint", `"results":[],"invocations":[{"executionSuccessful":false,"toolConfigurationNotifications":[{"level":"error"}]}]`, false},
		{"ESLint", `"results":[],"invocations":[{"executionSuccessful":false}]`, false},
	} {
		got := read(t, run(c.members+`,"tool":{"driver":{"name":"`+c.tool+`"}}`)).report.Runs[0]
		if got.Succeeded != c.want || (!got.Succeeded && len(got.Warnings) == 0) {
			t.Errorf("%s with {%s}: succeeded %v, warnings %q", c.tool, c.members, got.Succeeded, got.Warnings)
		}
	}
}

func TestProducts(t *testing.T) {
	for name, want := range map[string]string{
		"gitleaks": "secrets", "TruffleHog": "secrets", "detect-secrets": "secrets", "Trivy": "sca", "grype": "sca", "osv-scanner": "sca",
		"Snyk Open Source": "sca", "SnykCode": "sast", "CodeQL": "sast", "anything": "sast",
	} {
		r := read(t, driver(name, "")).report.Runs[0]
		if r.Product != want || r.Secrets != (want == "secrets") {
			t.Errorf("%s is %s, secrets %v", name, r.Product, r.Secrets)
		}
	}
	o := read(t, driver("anything", `{"ruleId":"r","message":{"text":"m"}}`), sarif.WithProduct(vocabulary.Secrets))
	if r := o.report.Runs[0]; r.Product != "secrets" || !r.Secrets || only(t, o).Product != "secrets" {
		t.Errorf("the caller's product does not win: %+v", r)
	}
}

func TestLimits(t *testing.T) {
	var limit *jsonstream.LimitError
	for name, c := range map[string]struct {
		doc    string
		limits sarif.Limits
	}{
		"bytes":         {driver("t", ""), sarif.Limits{MaxBytes: 20}},
		"depth":         {`{"version":"2.1.0","x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, sarif.Limits{}},
		"empty objects": {`{"version":"2.1.0","runs":[{"results":[` + strings.Repeat("{},", 200) + `{}]}]}`, sarif.Limits{MaxValues: 100}},
		"runs":          {`{"version":"2.1.0","runs":[{},{},{}]}`, sarif.Limits{MaxRuns: 2}},
	} {
		if _, err := open(c.doc, c.limits); !errors.As(err, &limit) || !strings.Contains(err.Error(), fmt.Sprint(limit.Max)) {
			t.Errorf("%s: %v, want a LimitError", name, err)
		}
	}
	// Brackets inside strings are not nesting.
	if _, err := open(driver(strings.Repeat(`[\"{`, 200), ""), sarif.Limits{}); err != nil {
		t.Errorf("brackets in a text: %v", err)
	}
	rules := `"tool":{"driver":{"name":"t","rules":[{"id":"a"},{"id":"b"},{"id":"c"}]}},"results":[{"ruleId":"a"},{"ruleId":"b"}]`
	for want, limits := range map[string]sarif.Limits{
		"more than 2 rules":   {MaxRules: 2},
		"more than 1 results": {MaxResults: 1},
		"its rules take more": {MaxMetadataBytes: 1000},
	} {
		report, err := open(run(rules), limits)
		if err != nil {
			t.Fatal(err)
		}
		if o := collect(t, report); !strings.Contains(report.Runs[0].Rejected, want) || len(o.skips) != 2 {
			t.Errorf("%s: rejected %q, %d skips", want, report.Runs[0].Rejected, len(o.skips))
		}
	}
}

func TestHelpAndArtifactsGiveWayFirst(t *testing.T) {
	help := strings.Repeat("h", 5000)
	doc := run(`"artifacts":[` + strings.Repeat(`{"location":{"uri":"a.go"}},`, 100) + `{}],
		"tool":{"driver":{"name":"t","rules":[{"id":"a","help":{"text":"` + help + `"}},{"id":"b","help":{"text":"` + help + `"}}]}},
		"results":[{"ruleId":"b","message":{"text":"m"}}]`)
	report, err := open(doc, sarif.Limits{MaxMetadataBytes: 14_000})
	if err != nil {
		t.Fatal(err)
	}
	only(t, collect(t, report))
	rules := report.Runs[0].Rules()
	if len(rules) != 2 || rules[0].Help != help || rules[1].Help != "" || len(report.Runs[0].Warnings) != 1 {
		t.Errorf("%d rules, warnings %q", len(rules), report.Runs[0].Warnings)
	}
	if report, err = open(doc, sarif.Limits{MaxMetadataBytes: 4000}); err != nil {
		t.Fatal(err)
	}
	if w := report.Runs[0].Warnings; !slices.ContainsFunc(w, func(s string) bool { return strings.HasPrefix(s, "artifacts from index") }) {
		t.Errorf("warnings %q", w)
	}
}

func TestRepeatedNamesLoseNothing(t *testing.T) {
	const one = `"results":[{"ruleId":"r","message":{"text":"m"}}]`
	o := read(t, `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},`+one+`,`+one+`}],"runs":[{"tool":{"driver":{"name":"t"}},`+one+`}]}`)
	if len(o.results) != 3 || o.results[1].Index != 1 || o.results[2].Run != 1 {
		t.Errorf("%d results, want 3", len(o.results))
	}
}

func TestCancelledWhileOpening(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := sarif.Open(ctx, strings.NewReader(driver("t", "")), sarif.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// brokenDisk fails after some bytes.
type brokenDisk struct {
	io.ReadSeeker
	left int
}

var errDisk = errors.New("disk failed")

func (b *brokenDisk) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errDisk
	}
	n, err := b.ReadSeeker.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func TestErrorsOfTheSourceAreNotTheReports(t *testing.T) {
	src := &brokenDisk{ReadSeeker: strings.NewReader(driver("t", "")), left: 30}
	if _, err := sarif.Open(context.Background(), src, sarif.Limits{}); !errors.Is(err, errDisk) {
		t.Errorf("error is %v", err)
	}
}

func TestAReportThatChangesIsNoticed(t *testing.T) {
	doc := []byte(driver("t", `{"ruleId":"r"},{"ruleId":"r"}`))
	report, err := sarif.Open(context.Background(), bytes.NewReader(doc), sarif.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	copy(doc[bytes.Index(doc, []byte(`,{"ruleId":"r"}`)):], `]              `)
	err = report.Results(context.Background(), func(*sarif.Result) error { return nil }, func(sarif.Skip) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("error is %v", err)
	}
}
