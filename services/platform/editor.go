package platform

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/chain"
	"github.com/palisade/palisade/services/platform/playground"
	"github.com/palisade/palisade/services/rules/document"
)

// Editor is the service group "editor playground".
type Editor struct {
	platformv1.UnimplementedEditorServiceServer
	runner *playground.Runner // nil: there is no engine
}

// NewEditor runs the engine of the settings, if there is one. It returns an error if the file cannot be one.
func NewEditor(cfg config.Config) (*Editor, error) {
	if cfg.EditorEngine == "" {
		return &Editor{}, nil
	}
	if problem := playground.Check(cfg.EditorEngine, cfg.Data); problem != "" {
		return nil, fmt.Errorf("editor-engine: got %q: %s", cfg.EditorEngine, problem)
	}
	return &Editor{runner: playground.New(cfg.EditorEngine, cfg.EditorTimeout)}, nil
}

// invalidRule is the type of the error for a rule that is not valid, and its status.
const (
	invalidRule   = "invalid_rule"
	invalidStatus = 2
)

// RunPattern runs a rule on code.
func (e *Editor) RunPattern(ctx context.Context, r *platformv1.RunPatternRequest) (*platformv1.RunPatternResponse, error) {
	source, err := rulesOf(r)
	if err != nil {
		return nil, err
	}
	rules, problems := document.Parse(source, "")
	if len(problems) > 0 {
		return refusal(ctx, problems)
	}
	language, err := languageOf(r, rules)
	if err != nil {
		return nil, err
	}
	if e.runner == nil {
		return nil, apierr.FailedPrecondition("the rule is valid, but this server has no engine to run it: its operator has to set editor-engine")
	}
	target := []byte(r.GetTarget())
	result, err := e.runner.Run(ctx, playground.Job{Rules: source, Target: target, Language: language, Deep: r.GetIsDeep()})
	switch {
	case errors.Is(err, playground.ErrBusy):
		return nil, apierr.RateLimited(5 * time.Second)
	case errors.As(err, new(playground.NoSandboxError)):
		return nil, apierr.FailedPrecondition("the engine of editor-engine cannot run: %v", err)
	case err != nil:
		return nil, err
	}
	return e.response(ctx, target, result)
}

// rulesOf returns the file of rules in the request, or one with its pattern.
func rulesOf(r *platformv1.RunPatternRequest) ([]byte, error) {
	if document.IsFile(r.GetPattern()) {
		return []byte(r.GetPattern()), nil
	}
	language, ok := document.Language(r.GetLanguage())
	if !ok {
		return nil, noLanguage(r, "of the pattern")
	}
	return document.FileOfPattern(r.GetPattern(), language)
}

// languageOf returns the language of the code.
func languageOf(r *platformv1.RunPatternRequest, rules []document.Rule) (string, error) {
	if r.GetLanguage() == "" && len(rules) > 0 && len(rules[0].Languages) == 1 {
		return rules[0].Languages[0], nil
	}
	language, ok := document.Language(r.GetLanguage())
	if !ok {
		return "", noLanguage(r, "of the code")
	}
	return language, nil
}

func noLanguage(r *platformv1.RunPatternRequest, what string) error {
	allowed := strings.Join(document.Languages(), ", ")
	if r.GetLanguage() == "" {
		return apierr.InvalidArgument("language", "language is required: the language %s, one of %s", what, allowed)
	}
	return apierr.InvalidArgument("language", "language is %s; allowed are %s", apierr.Quote(r.GetLanguage()), allowed)
}

// refusal is the response to a rule with problems.
func refusal(ctx context.Context, problems []document.Problem) (*platformv1.RunPatternResponse, error) {
	list := make([]any, len(problems))
	for i, problem := range problems {
		list[i] = map[string]any{"line": problem.Line, "rule": problem.Rule, "text": problem.Text}
	}
	failed, err := engineError(ctx, invalidRule, problems[0].String(), map[string]any{"problems": list})
	return &platformv1.RunPatternResponse{SemgrepResult: &platformv1.EngineResult{StatusCode: invalidStatus, RunError: failed}}, err
}

func engineError(ctx context.Context, kind, text string, extra map[string]any) (*platformv1.EngineError, error) {
	more, err := structpb.NewStruct(extra)
	return &platformv1.EngineError{Type: kind, Message: text, Extra: more, Uid: chain.RequestID(ctx)}, err
}

func (e *Editor) response(ctx context.Context, target []byte, result *playground.Result) (*platformv1.RunPatternResponse, error) {
	out := &platformv1.EngineResult{StatusCode: int32(result.Status), RunTime: result.Duration.Seconds(), Environment: e.runner.Name()}
	var err error
	if out.Output, err = object(result.Output); err != nil {
		return nil, err
	}
	response := &platformv1.RunPatternResponse{SemgrepResult: out}
	if result.Error != "" {
		out.RunError, err = engineError(ctx, result.Error, e.explain(result), map[string]any{"log": result.Log})
		return response, err
	}
	for _, c := range playground.Cases(target, result.Output) {
		response.TestResult = append(response.TestResult, testCase(c))
	}
	return response, nil
}

// explain says for people what went wrong.
func (e *Editor) explain(result *playground.Result) string {
	switch result.Error {
	case playground.Timeout:
		return "the engine did not end in time (editor-timeout)"
	case playground.OutputTooLarge:
		return "the engine wrote too much: try less code, or a rule that matches less"
	}
	if last := lastLine(result.Log); last != "" {
		return e.runner.Name() + " failed: " + last
	}
	return e.runner.Name() + " failed without a message"
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

func testCase(c playground.Case) *platformv1.TestCase {
	out := &platformv1.TestCase{MustMatch: c.MustMatch, LineNo: int32(c.Line), RuleId: c.Rule, Status: "passed"}
	switch {
	case c.Passed:
	case c.MustMatch:
		out.Status, out.Message = "failed", "the rule must match this line, but does not"
	default:
		out.Status, out.Message = "failed", "the rule must not match this line, but does"
	}
	return out
}
