package issue

import (
	"fmt"
	"strings"
	"testing"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// place is a location of `semgrep ci` with its code.
func place(line int, code string) string {
	return fmt.Sprintf(`{"path":"a.py","start":{"line":%d,"col":1,"offset":9},"end":{"line":%d,"col":5,"offset":13}},%q`, line, line, code)
}

func lines(steps []*findingsv1.FlowStep) string {
	var b strings.Builder
	for _, step := range steps {
		fmt.Fprintf(&b, "%d %s %v; ", step.GetLocation().GetLine(), step.GetSnippet(), step.GetKinds())
	}
	return b.String()
}

func TestFlowsOfTheScanner(t *testing.T) {
	variable := strings.Replace(place(2, "x"), `},"x"`, `},"content":"x"`, 1)
	for trace, want := range map[string]string{
		`{"taint_source":["CliLoc",[` + place(1, "src()") + `]],"intermediate_vars":[{"location":` + variable + `}],"taint_sink":["CliLoc",[` + place(3, "sink(x)") + `]]}`: "1 src() [source]; 2 x []; 3 sink(x) [sink]; ",
		`{"taint_sink":["CliCall",[[` + place(3, "f(x)") + `],[{"location":` + variable + `}],["CliLoc",[` + place(9, "exec(x)") + `]]]]}`:                                  "3 f(x) []; 2 x []; 9 exec(x) [sink]; ",
		`{"taint_source":["New",7],"intermediate_vars":null}`: "",
		`{"taint_source":7}`: "",
		`[`:                  "",
		``:                   "",
	} {
		got := ""
		if flows := scannerFlows([]byte(trace)); len(flows) > 0 {
			got = lines(flows[0].GetThreadFlows()[0].GetSteps())
		}
		if got != want {
			t.Errorf("%s: %q, want %q", trace, got, want)
		}
	}
}

// A flow of any length has at most 200 steps. The last one is the sink.
func TestLongFlowIsCut(t *testing.T) {
	variable := strings.Replace(place(2, "x"), `},"x"`, `},"content":"x"`, 1)
	variables := strings.TrimSuffix(strings.Repeat(`{"location":`+variable+`},`, 5000), ",")
	trace := `{"taint_source":["CliLoc",[` + place(1, "src()") + `]],"intermediate_vars":[` + variables + `],"taint_sink":["CliLoc",[` + place(3, "sink(x)") + `]]}`
	steps := scannerFlows([]byte(trace))[0].GetThreadFlows()[0].GetSteps()
	if len(steps) != 200 || steps[0].GetSnippet() != "src()" || steps[199].GetSnippet() != "sink(x)" {
		t.Errorf("%d steps, the last is %v", len(steps), steps[len(steps)-1])
	}
}

// The context of a report is kept, and the scanner's flow is used only without one.
func TestContextOfContent(t *testing.T) {
	about, err := contextOf(&storev1.FindingContent{FixedLines: []string{"x"}, Suppression: &findingsv1.FindingSuppression{Kind: "external"}})
	if err != nil || about.GetSuppression().GetKind() != "external" || len(about.GetFixedLines()) != 1 || about.GetCodeFlows() != nil {
		t.Errorf("%v %v", about, err)
	}
	if _, err := contextOf(&storev1.FindingContent{Context: []byte{0xff}}); err == nil {
		t.Error("damaged context is read")
	}
}
