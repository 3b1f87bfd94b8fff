package sarif_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/scans/sarif"
)

// TestABrokenPartCostsThatPart breaks one part of a result. The result stays, a warning has the place, and findings
// may be closed only if the part does not identify the result.
func TestABrokenPartCostsThatPart(t *testing.T) {
	const good = `{"ruleId":"r","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":3}}}]}`
	for _, c := range []struct {
		result, warning string
		blocks          bool
	}{
		{`{"ruleId":7,"message":{"text":"m"}}`, "/runs/0/results/1/ruleId is a number, want a string: converted", true},
		{`{"ruleId":{"id":"r"},"message":{"text":"m"}}`, "/runs/0/results/1/ruleId is an object, want a string: ignored", true},
		{`{"ruleId":"r","message":"m"}`, "/runs/0/results/1/message is a string, want an object: converted", false},
		{`{"ruleId":"r","message":{"text":["m"]}}`, "/runs/0/results/1/message/text is an array, want a string: ignored", true},
		{`{"ruleId":"r","locations":{}}`, "/runs/0/results/1/locations is an object, want an array: converted", true},
		{`{"ruleId":"r","locations":[{"physicalLocation":{"artifactLocation":{"uri":7}}}]}`,
			"/runs/0/results/1/locations/0/physicalLocation/artifactLocation/uri is a number, want a string: converted", true},
		{`{"ruleId":"r","locations":[{"physicalLocation":{"region":{"startLine":"3"}}}]}`,
			"/runs/0/results/1/locations/0/physicalLocation/region/startLine is a string, want an integer: converted", false},
		{`{"ruleId":"r","locations":[{"physicalLocation":{"region":{"startLine":"x"}}}]}`,
			"/runs/0/results/1/locations/0/physicalLocation/region/startLine is a string, want an integer: ignored", true},
		{`{"ruleId":"r","fingerprints":{"x":{"v":1}}}`, "/runs/0/results/1/fingerprints/x is an object, want a string: ignored", true},
		{`{"ruleId":"r","partialFingerprints":7}`, "/runs/0/results/1/partialFingerprints is a number, want an object: ignored", true},
		{`{"ruleId":"r","level":["error"]}`, "/runs/0/results/1/level is an array, want a string: ignored", false},
		{`{"ruleId":"r","suppressions":7}`, "/runs/0/results/1/suppressions is a number, want an array: converted", false},
		{`{"ruleId":"r","provenance":[]}`, "/runs/0/results/1/provenance is an array, want an object: ignored", false},
	} {
		o := read(t, driver("t", good+","+c.result+","+good))
		one := o.report.Runs[0]
		if len(o.results) != 3 || !slices.Contains(one.Warnings, c.warning) || (one.Partial() != "") != c.blocks {
			t.Errorf("%s: %d results, partial %q, warnings %q; want %q, blocks %v", c.result, len(o.results), one.Partial(), one.Warnings, c.warning, c.blocks)
		}
	}
}

// TestEqualFaultsAreOneWarning, also if the results are read twice.
func TestEqualFaultsAreOneWarning(t *testing.T) {
	o := read(t, driver("t", strings.Repeat(`{"ruleId":"r","fingerprints":{"x":{}}},`, 11)+`{"ruleId":"r"}`))
	collect(t, o.report)
	want := []string{"/runs/0/results/0/fingerprints/x is an object, want a string: ignored (and 10 more like it)"}
	if got := o.report.Runs[0].Warnings; !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// TestWrongRoots reads lists of the wrong type as far as they can be understood, and closes nothing then.
func TestWrongRoots(t *testing.T) {
	const tool = `"tool":{"driver":{"name":"t"}}`
	const a, b = `{"ruleId":"a","message":{"text":"m"}}`, `{"ruleId":"b","message":{"text":"m"}}`
	for doc, want := range map[string]string{
		run(tool + `,"results":{"1":` + a + `, "2" : ` + b + `}`):                "a b",
		run(tool + `,"results":{"a":[` + a + `,` + a + `],"b":[` + b + `]}`):     "a a b",
		run(tool + `,"results":` + a):                                            "a",
		run(tool + `,"results":[[` + a + `],[[` + b + `,` + a + `]],` + b + `]`): "a b a b",
		run(tool + `,"results":[` + a + `,null,` + b + `]`):                      "a b",
		run(tool + `,"results":{}`):                                              "",
		`{"version":"2.1.0","runs":{` + tool + `,"results":[` + a + `]}}`:        "a",
		run(`"tool":"t","results":[` + a + `]`):                                  "a",
		run(`"tool":{"driver":"t"},"results":[` + a + `]`):                       "a",
		run(`"tool":{"driver":{"name":"t","rules":{"a":{"name":"A"}}}},"results":[` + a + `,{"ruleIndex":0,"message":{"text":"m"}}]`): "a a",
	} {
		o := read(t, doc)
		var ids []string
		for _, r := range o.results {
			ids = append(ids, r.RuleID)
		}
		one := o.report.Runs[0]
		if got := strings.Join(ids, " "); got != want || one.Tool.Slug != "t" || one.Rejected != "" || one.Partial() == "" || len(one.Warnings) == 0 {
			t.Errorf("%s: results %q, want %q; rejected %q, partial %q, warnings %q", doc, got, want, one.Rejected, one.Partial(), one.Warnings)
		}
	}
}

// TestResultsThatNameNoRule get a rule that depends only on the tool, its rules and the message.
func TestResultsThatNameNoRule(t *testing.T) {
	const rules = `"rules":[{"id":"AWS Access Key"},{"id":"AWS"},{"id":"two","name":"Same"},{"id":"three","name":"Same"}]`
	for result, want := range map[string]string{
		`"message":{"text":"AWS Access Key secret detected"}`: "AWS Access Key",
		`"message":{"text":"AWS Access Keys"}`:                "AWS",
		`"message":{"text":"AWS"}`:                            "AWS",
		`"message":{"text":"Same name of two rules"}`:         "gitleaks/unnamed",
		`"message":{"text":"at 127.0.0.1:8080"}`:              "gitleaks/unnamed",
		`"ruleId":null,"message":{"text":"three: x"}`:         "three",
		`"ruleId":{"a":1},"message":{"text":"m"}`:             "gitleaks/unnamed",
		`"rule":{"index":77},"message":{"text":"m"}`:          "gitleaks/unnamed",
		`"locations":[{"physicalLocation":{"region":{}}}]`:    "gitleaks/unnamed",
	} {
		o := read(t, run(`"tool":{"driver":{"name":"Gitleaks",`+rules+`}},"results":[{`+result+`}]`))
		r := only(t, o)
		if r.RuleID != want || r.Unnamed != (want == "gitleaks/unnamed") || len(o.report.Runs[0].Warnings) == 0 {
			t.Errorf("{%s} has the rule %s, unnamed %v, warnings %q; want %s", result, r.RuleID, r.Unnamed, o.report.Runs[0].Warnings, want)
		}
	}
	o := read(t, run(`"tool":{"driver":{"name":"t","rules":[{"id":"r","guid":"AB-1"}]}},"results":[{"rule":{"guid":"ab-1"},"message":{"text":"m"}}]`))
	if r := only(t, o); r.RuleID != "r" || len(o.report.Runs[0].Warnings) != 0 {
		t.Errorf("a rule by GUID is %s, warnings %q", r.RuleID, o.report.Runs[0].Warnings)
	}
}

// TestInlineExternalProperties reads the parts of a run that are elsewhere in the report, before or after it.
func TestInlineExternalProperties(t *testing.T) {
	const inline = `"inlineExternalProperties":[
		{"guid":"11","results":[{"ruleIndex":0,"message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"index":0}}}]}]},
		{"guid":"22","artifacts":[{"location":{"uri":"a.go"}}]},{"guid":"33","driver":{"name":"t","rules":[{"id":"r"}]}}]`
	const runs = `"runs":[{"tool":{"driver":{"name":"t"}},"externalPropertyFileReferences":{
		"results":[{"guid":"11"}],"artifacts":[{"guid":"22"}],"driver":{"guid":"33"}}},{"tool":{"driver":{"name":"other"}},"results":[]}]`
	for _, doc := range []string{`{"version":"2.1.0",` + inline + `,` + runs + `}`, `{` + runs + `,` + inline + `,"version":"2.1.0"}`} {
		o := read(t, doc)
		r := only(t, o)
		if one := o.report.Runs[0]; r.RuleID != "r" || r.Path != "a.go" || !one.Succeeded || one.Partial() != "" || len(one.Warnings) != 0 {
			t.Errorf("result %+v, run %+v", r, one)
		}
	}
	// By the GUID of the run, and in the only run.
	o := read(t, `{"version":"2.1.0","inlineExternalProperties":[{"runGuid":"AA","results":[{"ruleId":"r"}]}],"runs":[
		{"tool":{"driver":{"name":"t"}},"automationDetails":{"guid":"bb"}},{"tool":{"driver":{"name":"t"}},"automationDetails":{"guid":"aa"}}]}`)
	if r := only(t, o); r.Run != 1 {
		t.Errorf("result of run %d, want 1", r.Run)
	}
	only(t, read(t, `{"version":"2.1.0","inlineExternalProperties":[{"results":[{"ruleId":"r"}]}],"runs":[{"tool":{"driver":{"name":"t"}}}]}`))
	// A part that belongs to no run, and a file that is not inline.
	o = read(t, `{"version":"2.1.0","inlineExternalProperties":[{"results":[{"ruleId":"r"}]}],"runs":[
		{"tool":{"driver":{"name":"t"}},"results":[]},{"tool":{"driver":{"name":"u"}},"results":[]}]}`)
	if o.report.Runs[0].Partial() == "" || o.report.Runs[1].Partial() == "" {
		t.Error("a lost part does not block closing")
	}
	o = read(t, run(`"tool":{"driver":{"name":"t"}},"results":[],"externalPropertyFileReferences":{"artifacts":[{"location":{"uri":"more.sarif"}}]}`))
	if one := o.report.Runs[0]; one.Succeeded || !strings.Contains(strings.Join(one.Warnings, " "), "more.sarif") {
		t.Errorf("succeeded %v, warnings %q", one.Succeeded, one.Warnings)
	}
}

func TestVersionsOfTheFormat(t *testing.T) {
	for head, ok := range map[string]bool{
		`"version":"2.1.0"`: true, `"version":"2.1"`: true, `"version":"2.1.0-rtm.5"`: true, `"version":"2.1.0-beta.1"`: true,
		`"$schema":"https://json.schemastore.org/sarif-2.1.0.json"`: true, `"version":null,"$schema":"https://x.test/sarif-schema-2.1.0.json"`: true,
		`"version":"2.0.0"`: false, `"version":"1.0.0"`: false, `"$schema":"https://json.schemastore.org/sarif-1.0.0.json"`: false,
	} {
		_, err := sarif.Open(context.Background(), strings.NewReader(`{`+head+`,"runs":[]}`), sarif.Limits{})
		if (err == nil) != ok {
			t.Errorf("%s: %v", head, err)
		}
	}
}

// TestALostFileBlocksClosing: a result names its file by the index of an artifact that could not be read.
func TestALostFileBlocksClosing(t *testing.T) {
	const result = `"results":[{"ruleId":"r","locations":[{"physicalLocation":{"artifactLocation":{"index":0}}}]}]`
	for artifacts, blocks := range map[string]bool{`[{"location":{"uri":"a.go"}},7]`: true, `[7]`: true, `[]`: true, `7`: true, `[{"location":{"uri":{}}}]`: true} {
		o := read(t, run(`"tool":{"driver":{"name":"t"}},"artifacts":`+artifacts+`,`+result))
		only(t, o)
		if partial := o.report.Runs[0].Partial(); (partial != "") != blocks {
			t.Errorf("artifacts %s: partial %q, want %v", artifacts, partial, blocks)
		}
	}
}
