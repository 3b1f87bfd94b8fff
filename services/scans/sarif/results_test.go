package sarif_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/scans/sarif"
)

func TestSeverity(t *testing.T) {
	for _, c := range []struct{ rule, result, want string }{
		{``, ``, "medium"},
		{``, `"level":"error"`, "high"},
		{``, `"level":"note"`, "low"},
		{``, `"level":"Warning"`, "medium"},
		{``, `"level":"fatal"`, "critical"},
		{`"defaultConfiguration":{"level":"error"}`, ``, "high"},
		{`"defaultConfiguration":{"level":"error"}`, `"level":"note"`, "low"},
		{`"defaultConfiguration":{}`, ``, "medium"},
		{`"properties":{"security-severity":"9.0"}`, `"level":"note"`, "critical"},
		{`"properties":{"security-severity":"8.9"}`, ``, "high"},
		{`"properties":{"security-severity":7}`, ``, "high"},
		{`"properties":{"security-severity":"6.95"}`, ``, "medium"},
		{`"properties":{"security-severity":"4.0"}`, ``, "medium"},
		{`"properties":{"security-severity":"0.1"}`, ``, "low"},
		{`"properties":{"security-severity":"0.0"}`, `"level":"error"`, "high"},
		{`"properties":{"security-severity":"11"}`, `"level":"error"`, "high"},
		{`"properties":{"security-severity":"NaN"}`, `"level":"error"`, "high"},
		{`"properties":{"security-severity":{}}`, `"level":"error"`, "high"},
		{`"properties":{"security-severity":"9.8"}`, `"properties":{"security-severity":"2"}`, "low"},
		{`"properties":7`, `"properties":[]`, "medium"},
		{``, `"kind":"review"`, "low"},
		{``, `"kind":"open","level":"none"`, "low"},
		{``, `"kind":"fail","level":"error"`, "high"},
		{``, `"level":"none"`, "skip level none"},
		{`"defaultConfiguration":{"level":"none"}`, ``, "skip level none"},
		{``, `"kind":"pass"`, "skip kind pass"},
		{``, `"kind":"notApplicable","level":"error"`, "skip kind notapplicable"},
		{``, `"kind":"informational"`, "low"},
		{``, `"baselineState":"absent"`, "skip baselineState absent"},
	} {
		comma := func(s string) string {
			if s == "" {
				return ""
			}
			return "," + s
		}
		o := read(t, run(`"tool":{"driver":{"name":"t","rules":[{"id":"r"`+comma(c.rule)+`}]}},"results":[{"ruleId":"r","message":{"text":"m"}`+comma(c.result)+`}]`))
		got := ""
		if len(o.results) == 1 {
			got = o.results[0].Severity
		} else {
			got = "skip " + o.skips[0].Reason
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("rule {%s} and result {%s} give %q, want %q", c.rule, c.result, got, c.want)
		}
	}
}

func TestInvocationOverridesTheRulesLevel(t *testing.T) {
	o := read(t, run(`"tool":{"driver":{"name":"t","rules":[{"id":"r","guid":"AB-1"},{"id":"s","defaultConfiguration":{"level":"note"}}]}},
		"invocations":[{"executionSuccessful":true,"ruleConfigurationOverrides":[{"descriptor":{"id":"r"},"configuration":{"level":"error"}}]},
			{"executionSuccessful":true,"ruleConfigurationOverrides":[{"descriptor":{"guid":"ab-1"},"configuration":{"level":"none"}},
			{"descriptor":{"index":1},"configuration":{"level":"error"}}]}],
		"results":[{"ruleId":"r","message":{"text":"m"}},{"ruleId":"r","level":"note","message":{"text":"m"}},
			{"ruleId":"r","message":{"text":"m"},"provenance":{"invocationIndex":1}},{"ruleId":"s","message":{"text":"m"},"provenance":{"invocationIndex":1}},
			{"ruleId":"s","message":{"text":"m"},"provenance":{"invocationIndex":9}}]`))
	var got []string
	for _, r := range o.results {
		got = append(got, r.Severity)
	}
	if fmt.Sprint(got) != "[high low high low]" || len(o.skips) != 1 || o.skips[0].Index != 2 {
		t.Errorf("severities %v, skips %+v", got, o.skips)
	}
}

func TestBaselineState(t *testing.T) {
	for state, want := range map[string]string{"new": "new", "Unchanged": "unchanged", "updated": "updated", "odd": "", "": ""} {
		if r := only(t, read(t, driver("t", `{"ruleId":"r","message":{"text":"m"},"baselineState":"`+state+`"}`))); r.BaselineState != want {
			t.Errorf("%q is %q, want %q", state, r.BaselineState, want)
		}
	}
}

func TestRuleLookup(t *testing.T) {
	const tool = `"tool":{"driver":{"name":"t","rules":[{"id":"A"},{"id":"B","name":"driver's"},7]},
		"extensions":[{"name":"ext","guid":"EE-1","rules":[{"id":"B","name":"extension's"},{"id":"C"}]},null]}`
	for _, c := range []struct{ result, id, rule string }{
		{`"ruleId":"A"`, "A", "A"},
		{`"ruleId":"A/md5/x"`, "A/md5/x", "A"},
		{`"ruleId":"A","ruleIndex":1`, "A", "A"},
		{`"ruleIndex":1`, "B", "driver's"},
		{`"rule":{"id":"C"}`, "C", "C"},
		{`"rule":{"index":0}`, "A", "A"},
		{`"ruleId":"B"`, "B", "driver's"},
		{`"ruleId":"B","rule":{"toolComponent":{"index":0}}`, "B", "extension's"},
		{`"ruleId":"B","rule":{"toolComponent":{"name":"ext"}}`, "B", "extension's"},
		{`"rule":{"index":1,"toolComponent":{"guid":"ee-1"}}`, "C", "C"},
		{`"ruleId":"Z"`, "Z", "Z"},
		{`"ruleId":" A "`, "A", "A"},
		{`"ruleId":"/"`, "/", "/"},
	} {
		r := only(t, read(t, run(tool+`,"results":[{`+c.result+`,"message":{"text":"m"}}]`)))
		if r.RuleID != c.id || r.Rule.Name != c.rule || r.Rule.Stub != (c.id == "Z" || c.id == "/") {
			t.Errorf("{%s} is %s of rule %+v, want %s of %s", c.result, r.RuleID, r.Rule, c.id, c.rule)
		}
	}
	for _, none := range []string{`"level":"error"`, `"ruleIndex":2`, `"ruleIndex":99`, `"ruleIndex":-1`, `"rule":{"index":0,"toolComponent":{"index":7}}`} {
		if r := only(t, read(t, run(tool+`,"results":[{`+none+`,"message":{"text":"m"}}]`))); r.RuleID != "t/unnamed" || !r.Unnamed || !r.Rule.Stub {
			t.Errorf("{%s} is %+v", none, r)
		}
	}
}

func TestMessages(t *testing.T) {
	const tool = `"tool":{"driver":{"name":"t","rules":[{"id":"r","shortDescription":{"text":"about r"},"messageStrings":{"own":{"text":"own {0}"}}}],
		"globalMessageStrings":{"all":{"text":"all {1}{0}"}}}}`
	const related = `,"relatedLocations":[{"id":1}]`
	for _, c := range []struct{ message, more, want string }{
		{`{"text":"plain"}`, "", "plain"},
		{`{"text":"a {0} b {1} {7} {{0}}","arguments":["x","y"]}`, "", "a x b y {7} {0}"},
		{`{"text":"if a { return {0} } {{x}}"}`, "", "if a { return {0} } {{x}}"},
		{`{"id":"own","arguments":["x"]}`, "", "own x"},
		{`{"id":"all","arguments":["x","y"]}`, "", "all yx"},
		{`{"id":"none"}`, "", "about r"},
		{`{"markdown":"*md*"}`, "", "*md*"},
		{`{}`, "", "about r"},
		{`null`, "", "about r"},
		{`{"text":"see [the source](1)."}`, related, "see the source."},
		{`{"text":"see [\\[x\\]](1)"}`, related, "see [x]"},
		{`{"text":"see [the source](2)."}`, related, "see [the source](2)."},
		{`{"text":"call table[i](0)"}`, "", "call table[i](0)"},
		{`{"text":"Unnecessary escape character: \\["}`, "", `Unnecessary escape character: \[`},
		{`{"text":"[docs](https://docs.acme.test/x) [f](x)"}`, "", "docs [f](x)"},
		{`{"text":"nul \u0000 and \ud800 stay out"}`, "", "nul \uFFFD and \uFFFD stay out"},
	} {
		if r := only(t, read(t, run(tool+`,"results":[{"ruleId":"r","message":`+c.message+c.more+`}]`))); r.Message != c.want {
			t.Errorf("%s is %q, want %q", c.message, r.Message, c.want)
		}
	}
	r := only(t, read(t, driver("t", "{\"ruleId\":\"r\",\"message\":{\"text\":\"bad \xff utf-8\"}}")))
	if r.Message != "bad \uFFFD utf-8" {
		t.Errorf("invalid UTF-8 becomes %q", r.Message)
	}
	r = only(t, read(t, driver("t", `{"ruleId":"r","message":{"text":"`+strings.Repeat("é", 40_000)+`"}}`)))
	if len(r.Message) > sarif.DefaultLimits().MaxMessageBytes || !strings.HasSuffix(r.Message, "é…") {
		t.Errorf("a long message is %d bytes and ends in %q", len(r.Message), r.Message[len(r.Message)-8:])
	}
}

func TestUnreadableResultsAreSkippedAlone(t *testing.T) {
	for result, want := range map[string]string{
		`7`:                   "it is a number, want an object",
		`"text"`:              "it is a string, want an object",
		`null`:                "it has neither a message, nor a rule, nor a location",
		`{"level":"error"}`:   "it has neither a message, nor a rule, nor a location",
		`{"message":{"x":7}}`: "it has neither a message, nor a rule, nor a location",
	} {
		o := read(t, driver("t", `{"ruleId":"ok","message":{"text":"m"}},`+result+`,{"ruleId":"ok","message":{"text":"m"}}`))
		if len(o.results) != 2 || len(o.skips) != 1 || o.skips[0].Index != 1 || o.skips[0].Reason != want {
			t.Errorf("%s: %d results, skips %+v, want %q", result, len(o.results), o.skips, want)
		}
		one := o.report.Runs[0]
		if warning := "/runs/0/results/1 cannot be read: " + want; one.Partial() != warning || !slices.Contains(one.Warnings, warning) {
			t.Errorf("%s: partial %q, warnings %q, want %q", result, one.Partial(), one.Warnings, warning)
		}
	}
}

func TestFingerprintChoice(t *testing.T) {
	for fields, want := range map[string]string{
		`"fingerprints":{"b":"1","a/v1":"2","a/v3":"3","c/v2":"4"}`:                              "a/v3:3",
		`"fingerprints":{"plain":"1","x/v0":"2"}`:                                                "plain:1",
		`"fingerprints":{"a/v2":" ","a/v1":"2"}`:                                                 "a/v1:2",
		`"partialFingerprints":{"primaryLocationLineHash":"39fa:1","other":"x"}`:                 "primaryLocationLineHash:39fa:1",
		`"fingerprints":{"a/v1":"2"},"partialFingerprints":{"primaryLocationLineHash":"39fa:1"}`: "a/v1:2",
		`"partialFingerprints":{"primaryLocationStartColumnFingerprint":"3"}`:                    "",
	} {
		if r := only(t, read(t, driver("t", `{"ruleId":"r","message":{"text":"m"},`+fields+`}`))); r.ToolFingerprint != want {
			t.Errorf("%s gives %q, want %q", fields, r.ToolFingerprint, want)
		}
	}
	r := only(t, read(t, driver("t", `{"ruleId":"r","message":{"text":"m"},"fingerprints":{"a":"`+strings.Repeat("x", 4000)+`"}}`)))
	if len(r.ToolFingerprint) != len("a:")+64 {
		t.Errorf("a long fingerprint is kept as %d bytes", len(r.ToolFingerprint))
	}
}

func TestSnippets(t *testing.T) {
	const result = `{"ruleId":"r","message":{"text":"m"},"locations":[{"physicalLocation":{"region":{"startLine":2%s},"contextRegion":{"snippet":{"text":"around"}}}}]}`
	if r := only(t, read(t, driver("t", fmt.Sprintf(result, `,"snippet":{"text":"own"}`)))); r.Snippet != "own" {
		t.Errorf("snippet is %q", r.Snippet)
	}
	if r := only(t, read(t, driver("t", fmt.Sprintf(result, ``)))); r.Snippet != "around" || r.Line != 2 {
		t.Errorf("snippet is %q of line %d", r.Snippet, r.Line)
	}
}

func TestAnErrorOfACallbackEndsTheStream(t *testing.T) {
	report, err := sarif.Open(context.Background(), strings.NewReader(driver("t", `{"ruleId":"a"},{"ruleId":"b"},{"kind":"pass"}`)), sarif.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("store is full")
	calls := 0
	err = report.Results(context.Background(), func(*sarif.Result) error { calls++; return stop }, func(sarif.Skip) error { return nil })
	if err != stop || calls != 1 { //nolint:errorlint // the very error is promised
		t.Errorf("%d calls, then %v", calls, err)
	}
	err = report.Results(context.Background(), func(*sarif.Result) error { return nil }, func(sarif.Skip) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("an error of skip gives %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	calls = 0
	err = report.Results(ctx, func(*sarif.Result) error { calls++; cancel(); return nil }, func(sarif.Skip) error { return nil })
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("cancelled after %d calls with %v", calls, err)
	}
}
