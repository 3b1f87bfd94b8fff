package issues

import (
	"slices"
	"strings"
	"unicode/utf8"

	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
)

// Found is one result of a step, in the form of the issue.upsert parameters.
type Found struct {
	// Title is one line. Required.
	Title string `json:"title"`
	// Description says what the problem is; Reasoning says why it is one.
	Description string `json:"description"`
	Reasoning   string `json:"reasoning"`
	// Severity is info, low, medium, high or critical; empty counts as medium.
	Severity string `json:"severity"`
	// Class is the weakness class, in the workflow's own words.
	Class string `json:"class"`
	// File is a path in the repository. Lines start at 1; 0 is unknown.
	File      string `json:"file"`
	StartLine int64  `json:"startLine"`
	EndLine   int64  `json:"endLine"`
	// Evidence is the code, or other text that is the same in each run. If it is empty, the title is used.
	Evidence string `json:"evidence"`
	// Vulnerable is false for a result that is not a vulnerability: the report counts it, but it makes no issue. The
	// default is true.
	Vulnerable *bool `json:"vulnerable"`
	// Verified is present or absent if the step examined a known issue, else empty.
	Verified string `json:"verified"`

	CWEs               []string `json:"cwes"`
	OWASPs             []string `json:"owasps"`
	Actions            []string `json:"actions"`
	Identities         []string `json:"identities"`
	DependencyPaths    []string `json:"dependencyPaths"`
	DirectDependencies []string `json:"directDependencies"`
	Domains            []string `json:"domains"`
}

// Values of Found.Verified.
const (
	VerifiedPresent = "present"
	VerifiedAbsent  = "absent"
)

// Counts is the result of Upsert. An issue that is reported twice counts once.
type Counts struct {
	Created int64 `json:"created"`
	Updated int64 `json:"updated"`
	Total   int64 `json:"total"`
}

// The stored detection states.
const (
	Detected        = "detected"
	NotDetected     = "not_detected"
	stateAbsent     = "verified_absent"
	statePresent    = "verified_present"
	triageOpen      = "open"
	triageFixed     = "fixed"
	triageReopened  = "reopened"
	defaultSeverity = "medium"
)

// Kinds of labels: the lists of an issue that callers can filter by.
const (
	LabelWorkflow      = "workflow"
	LabelAction        = "action"
	LabelIdentity      = "identity"
	LabelTriggerSource = "trigger_source"
	LabelRef           = "ref"
	LabelFilePath      = "file_path"
)

// Severities lists the severity words, mildest first. A word's number is its position, from 1.
var Severities = []string{"info", "low", "medium", "high", "critical"}

// severityOf returns the number of a word. An unknown word counts as medium.
func severityOf(word string) workflowsv1.Severity {
	n := slices.Index(Severities, word)
	if n < 0 {
		n = slices.Index(Severities, defaultSeverity)
	}
	return workflowsv1.Severity(n + 1)
}

// Limits of stored values. Longer texts are cut and extra list values dropped: a model's output is unbounded.
const (
	maxTitle  = 300    // characters
	maxText   = 20_000 // characters
	maxValue  = 500    // characters
	maxValues = 1000
)

// clip normalises a text and limits its length.
func clip(text string, limit int) string {
	text = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD"))
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return string(runes[:limit-1]) + "…"
}

// union adds values to a list, each once, in order of arrival, at most maxValues.
func union(list []string, values ...string) []string {
	for _, value := range values {
		value = clip(value, maxValue)
		if value != "" && len(list) < maxValues && !slices.Contains(list, value) {
			list = append(list, value)
		}
	}
	return list
}
