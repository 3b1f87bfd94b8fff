package issue

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/policies/pathignore"
	"github.com/palisade/palisade/services/projects/codehost"
)

// contextOf returns the context of a finding without the help of its rule. It is never nil.
func contextOf(content *storev1.FindingContent) (*findingsv1.FindingContext, error) {
	out := &findingsv1.FindingContext{}
	if err := proto.Unmarshal(content.GetContext(), out); err != nil {
		return nil, fmt.Errorf("decode the context: %w", err)
	}
	out.Suppression, out.FixedLines = content.GetSuppression(), content.GetFixedLines()
	if len(out.GetCodeFlows()) == 0 {
		out.CodeFlows = scannerFlows(content.GetDataflowTrace())
	}
	return out, nil
}

// scannerFlows converts the trace of `semgrep ci`. A trace that cannot be read is none.
func scannerFlows(trace []byte) []*findingsv1.CodeFlow {
	var w wireTrace
	if len(trace) == 0 || json.Unmarshal(trace, &w) != nil {
		return nil
	}
	thread := &findingsv1.ThreadFlow{}
	thread.Steps = append(thread.Steps, w.Source.steps("source")...)
	for _, step := range w.Variables {
		thread.Steps = append(thread.Steps, step.step(""))
	}
	if thread.Steps = append(thread.Steps, w.Sink.steps("sink")...); len(thread.GetSteps()) == 0 {
		return nil
	}
	if steps := thread.GetSteps(); len(steps) > maxSteps {
		thread.Steps = append(steps[:maxSteps-1], steps[len(steps)-1]) // the sink says what the flow is about
	}
	return []*findingsv1.CodeFlow{{ThreadFlows: []*findingsv1.ThreadFlow{thread}}}
}

// wireTrace is the trace of `semgrep ci` (scan protocol, section 6).
type wireTrace struct {
	Source    wireCall   `json:"taint_source"`
	Variables []wireStep `json:"intermediate_vars"`
	Sink      wireCall   `json:"taint_sink"`
}

type wireStep struct {
	Location wirePlace `json:"location"`
	Content  string    `json:"content"`
}

type wirePlace struct {
	Path  string   `json:"path"`
	Start position `json:"start"`
	End   position `json:"end"`
}

type position struct {
	Line int32 `json:"line"`
	Col  int32 `json:"col"`
}

func (s wireStep) step(kind string) *findingsv1.FlowStep {
	at := s.Location
	out := &findingsv1.FlowStep{Snippet: s.Content, Location: &findingsv1.RelatedLocation{
		Path: at.Path, Line: at.Start.Line, Column: at.Start.Col, EndLine: at.End.Line, EndColumn: at.End.Col,
	}}
	if kind != "" {
		out.Kinds = []string{kind}
	}
	return out
}

// wireCall is ["CliLoc", [location, code]], or ["CliCall", [[location, code], variables, call]] for a call whose callee
// has the rest of the flow.
type wireCall struct{ list []wireStep }

// UnmarshalJSON implements [json.Unmarshaler].
func (c *wireCall) UnmarshalJSON(data []byte) error {
	for range maxCalls {
		var pair, inner []jsontext.Value
		var kind string
		if json.Unmarshal(data, &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[0], &kind) != nil || json.Unmarshal(pair[1], &inner) != nil {
			return nil // a form that is not known
		}
		if kind != "CliCall" || len(inner) != 3 {
			c.add(inner)
			return nil
		}
		var place []jsontext.Value
		if json.Unmarshal(inner[0], &place) == nil {
			c.add(place)
		}
		var variables []wireStep
		if json.Unmarshal(inner[1], &variables) == nil {
			c.list = append(c.list, variables...)
		}
		data = inner[2]
	}
	return nil
}

const (
	// maxCalls bounds the depth of calls.
	maxCalls = 50
	// maxSteps bounds the steps of a flow. Flows of reports are bounded where they are read.
	maxSteps = 200
)

func (c *wireCall) add(pair []jsontext.Value) {
	var step wireStep
	if len(pair) == 2 && json.Unmarshal(pair[0], &step.Location) == nil && json.Unmarshal(pair[1], &step.Content) == nil {
		c.list = append(c.list, step)
	}
}

func (c wireCall) steps(kind string) (steps []*findingsv1.FlowStep) {
	for i, step := range c.list {
		shown := ""
		if i == 0 && kind == "source" || i == len(c.list)-1 && kind == "sink" {
			shown = kind
		}
		steps = append(steps, step.step(shown))
	}
	return steps
}

// dataflowTrace shows the first flow in the form of the contract: the first step is the source, the last is the sink.
// It is nil without a flow.
func dataflowTrace(owner *ent.Project, commit string, flows []*findingsv1.CodeFlow) *findingsv1.IssueDataflowTrace {
	if len(flows) == 0 || len(flows[0].GetThreadFlows()) == 0 {
		return nil
	}
	out, steps := &findingsv1.IssueDataflowTrace{}, flows[0].GetThreadFlows()[0].GetSteps()
	for i, step := range steps {
		at := step.GetLocation()
		shown := &findingsv1.DataflowLocation{
			Path:        at.GetPath(),
			Start:       &findingsv1.DataflowPosition{Line: int64(at.GetLine()), Col: int64(at.GetColumn())},
			End:         &findingsv1.DataflowPosition{Line: int64(at.GetEndLine()), Col: int64(at.GetEndColumn())},
			LocationUrl: codehost.LineURL(owner.ScmType, owner.URL, commit, at.GetPath(), at.GetLine()),
		}
		switch i {
		case 0:
			out.TaintSource = append(out.TaintSource, shown)
		case len(steps) - 1:
			out.TaintSink = append(out.TaintSink, shown)
		default:
			out.IntermediateVars = append(out.IntermediateVars, shown)
		}
	}
	return out
}

// addCode adds the code and the data flow, and the whole context if the issue is shown alone. Code of secrets is not
// shown, redacted or not (contract facts, GetIssue): nothing but the tool knows where in it the secret is.
func (a *relatedRows) addCode(out *findingsv1.Issue, row *ent.Finding, content *storev1.FindingContent) error {
	about, err := contextOf(content)
	if err != nil {
		return fmt.Errorf("finding %d: %w", row.ID, err)
	}
	if row.IgnoredByPattern != nil {
		about.Suppression = &findingsv1.FindingSuppression{Kind: pathignore.SuppressionKind, Justification: pathignore.Reason(*row.IgnoredByPattern)}
	}
	if row.IssueType == vocabulary.Secrets {
		about.CodeFlows, about.Fixes, about.FixedLines = nil, nil, nil
	} else {
		out.CodeSnippet = content.GetSnippet()
		out.CodeSnippets = snippets(content, a.flowsToShow(about))
		out.DataflowTrace = dataflowTrace(a.projects[row.ProjectID], content.GetCommit(), about.GetCodeFlows())
	}
	if about.RuleHelp = a.rules[row.RuleID].GetHelp(); a.alone && proto.Size(about) > 0 {
		out.Context = about
	}
	return nil
}

// flowsToShow are the data flows whose code an issue shows: all, or none in a list.
func (a *relatedRows) flowsToShow(about *findingsv1.FindingContext) []*findingsv1.CodeFlow {
	if a.alone {
		return about.GetCodeFlows()
	}
	return nil
}

// LeaveOutCode removes the code of an issue: of its place, and of the steps of its data flows.
func LeaveOutCode(out *findingsv1.Issue) {
	out.CodeSnippet, out.CodeSnippets = "", nil
	for _, flow := range out.GetContext().GetCodeFlows() {
		for _, thread := range flow.GetThreadFlows() {
			for _, step := range thread.GetSteps() {
				step.Snippet = ""
			}
		}
	}
}
