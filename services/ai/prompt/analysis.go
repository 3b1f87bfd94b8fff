package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/verdict"
)

// Parts are the parts of an analysis.
type Parts struct {
	// Verdict with its reason, Guidance and fix for true positives, Tags of the component.
	Verdict, Guidance, Tags bool
}

// Memory is a person's statement about the code. Unlike findings, it is trusted.
type Memory struct {
	ID      int64
	Content string
}

// ErrAnswer: the answer contains nothing that may be stored.
var ErrAnswer = errors.New("the model's answer has no verdict that was asked for")

// noVerdict is the model's answer if it cannot decide.
const noVerdict = "no_verdict"

// maxMemory is the maximum length of a memory in a prompt, in runes.
const maxMemory = 4000

// Analysis builds the question for the analysis of a finding.
func Analysis(f Finding, parts Parts, memories []Memory) Question {
	b := newBlocks()
	b.finding(f)
	var prompt strings.Builder
	fmt.Fprintf(&prompt, "Finding of type %s, severity %s, confidence of the rule %s.\n\n", f.Type, f.Severity, f.Confidence)
	if len(memories) > 0 {
		prompt.WriteString("Notes of the team that owns the code. They are trusted; weigh each where it applies:\n")
		for _, m := range memories {
			fmt.Fprintf(&prompt, "- note %d: %s\n", m.ID, verdict.Text(oneLine(m.Content), maxMemory))
		}
		prompt.WriteString("\n")
	}
	prompt.WriteString(b.text.String())
	return Question{System: parts.system(f) + "\n\n" + b.warning(), Prompt: prompt.String(), Schema: parts.schema(f), Name: "finding_analysis"}
}

func (p Parts) system(f Finding) string {
	tasks := []string{"You review findings of application-security scanners. Answer with one JSON object of the given schema."}
	if p.Verdict {
		tasks = append(tasks,
			"verdict: true_positive if the finding is a real weakness in this code, false_positive if the code shows that it is not, "+
				noVerdict+" if what you are shown does not tell. reason: one to three sentences that name the evidence. "+
				"memory_ids: the numbers of the notes that decided it.")
	}
	if p.Guidance {
		tasks = append(tasks, "guidance_summary: one sentence on how to fix it; guidance_text: the steps. Empty for false positives.")
		if f.fixable() {
			tasks = append(tasks, "fix_code: the lines that replace the matched code, with the same indentation and nothing else; "+
				"fix_explanation: why they fix it. Empty when it cannot be fixed in these lines.")
		} else {
			tasks = append(tasks, "fix_code and fix_explanation: empty.")
		}
		if !f.HasHelp {
			tasks = append(tasks, "rule_summary: one sentence on what the rule looks for, whatever this finding is; "+
				"rule_explanation: why code that it finds is a weakness, and how it is exploited, in a few sentences.")
		}
	}
	if p.Tags {
		tasks = append(tasks, "component_tag: the part of a product that the code belongs to, in one to three words, as \"user data\" or "+
			"\"payments\"; component_risk: how much harm a weakness there does.")
	}
	return strings.Join(tasks, "\n")
}

// fixable reports whether there are lines of code to replace.
func (f Finding) fixable() bool {
	return f.Code != "" && (f.Type == "sast" || f.Type == "ai_sast")
}

func (p Parts) schema(f Finding) map[string]any {
	text := map[string]any{"type": "string"}
	properties := map[string]any{}
	if p.Verdict {
		properties["verdict"] = map[string]any{"type": "string", "enum": []any{verdict.TruePositive, verdict.FalsePositive, noVerdict}}
		properties["reason"] = text
		properties["memory_ids"] = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	}
	if p.Guidance {
		for _, name := range []string{"guidance_summary", "guidance_text", "fix_code", "fix_explanation"} {
			properties[name] = text
		}
		if !f.HasHelp {
			properties["rule_summary"], properties["rule_explanation"] = text, text
		}
	}
	if p.Tags {
		properties["component_tag"] = text
		properties["component_risk"] = map[string]any{"type": "string", "enum": []any{"high", "low", "neutral"}}
	}
	return object(properties)
}

// object is the schema of an object with all properties required, as strict modes demand.
func object(properties map[string]any) map[string]any {
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	required := make([]any, len(names))
	for i, name := range names {
		required[i] = name
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// ReadAnalysis parses the answer to Analysis. It cuts and cleans texts, and drops fields that were not requested, a fix
// of a false positive, and memories that were not in the prompt. value is empty for no verdict. The error is ErrAnswer.
func ReadAnalysis(answer []byte, f Finding, parts Parts, memories []Memory) (value string, result *storev1.AiResult, err error) {
	var said struct {
		Verdict         string   `json:"verdict"`
		Reason          string   `json:"reason"`
		MemoryIDs       []string `json:"memory_ids"`
		GuidanceSummary string   `json:"guidance_summary"`
		GuidanceText    string   `json:"guidance_text"`
		FixCode         string   `json:"fix_code"`
		FixExplanation  string   `json:"fix_explanation"`
		RuleSummary     string   `json:"rule_summary"`
		RuleExplanation string   `json:"rule_explanation"`
		ComponentTag    string   `json:"component_tag"`
		ComponentRisk   string   `json:"component_risk"`
	}
	if json.Unmarshal(answer, &said) != nil {
		return "", nil, ErrAnswer
	}
	result = &storev1.AiResult{}
	rendered, referenced := memoryIDs(memories, said.MemoryIDs)
	result.MemoryIdsRendered = rendered
	if parts.Verdict {
		switch said.Verdict {
		case verdict.TruePositive, verdict.FalsePositive:
			value = said.Verdict
		case noVerdict:
		default:
			return "", nil, ErrAnswer
		}
		result.Reason, result.MemoryIdsReferenced = verdict.Text(said.Reason, verdict.MaxReason), referenced
	}
	if parts.Guidance && value != verdict.FalsePositive {
		result.GuidanceSummary = verdict.Text(said.GuidanceSummary, verdict.MaxSummary)
		result.GuidanceText = verdict.Text(said.GuidanceText, verdict.MaxGuidance)
		if f.fixable() && len(said.FixCode) <= verdict.MaxFix { // an incomplete fix is dropped
			result.FixCode = verdict.Text(said.FixCode, verdict.MaxFix)
			result.FixExplanation = verdict.Text(said.FixExplanation, verdict.MaxExplanation)
			result.FixDiff = Diff(f.Path, f.Line, f.Code, result.GetFixCode())
		}
	}
	if parts.Guidance && !f.HasHelp { // the rule is the same whatever the verdict is
		result.RuleSummary = verdict.Text(said.RuleSummary, verdict.MaxSummary)
		result.RuleExplanation = verdict.Text(said.RuleExplanation, verdict.MaxGuidance)
	}
	if tag := verdict.Text(oneLine(said.ComponentTag), verdict.MaxTag); parts.Tags && tag != "" {
		result.ComponentTag, result.ComponentRisk = tag, "neutral"
		if slices.Contains([]string{"high", "low"}, said.ComponentRisk) {
			result.ComponentRisk = said.ComponentRisk
		}
	}
	return value, result, nil
}

// memoryIDs returns the ids in the prompt, and the ones that the answer named.
func memoryIDs(memories []Memory, named []string) (rendered, referenced []string) {
	for _, m := range memories {
		id := strconv.FormatInt(m.ID, 10)
		rendered = append(rendered, id)
		if slices.Contains(named, id) {
			referenced = append(referenced, id)
		}
	}
	return rendered, referenced
}
