package issues

import (
	"slices"
	"strings"
	"unicode/utf8"

	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
)

// Found is one result of a step, in the form that the parameters of issue.upsert have.
type Found struct {
	// Title is one line. Required.
	Title string `json:"title"`
	// Description says what it is, Reasoning why it is one.
	Description string `json:"description"`
	Reasoning   string `json:"reasoning"`
	// Severity is info, low, medium, high or critical; empty counts as medium.
	Severity string `json:"severity"`
	// Class is the class of weakness, in the words of the workflow.
	Class string `json:"class"`
	// File is a path in the repository; lines count from 1, 0 is unknown.
	File      string `json:"file"`
	StartLine int64  `json:"startLine"`
	EndLine   int64  `json:"endLine"`
	// Evidence is the code, or whatever else shows the same thing in each run. Without it the title stands for it.
	Evidence string `json:"evidence"`
	// Vulnerable is false for a result that is none: the report counts it, no issue is made of it. Absent is true.
	Vulnerable *bool `json:"vulnerable"`
	// Verified is present or absent when the step examined an issue that is known already, else empty.
	Verified string `json:"verified"`

	CWEs               []string `json:"cwes"`
	OWASPs             []string `json:"owasps"`
	Actions            []string `json:"actions"`
	Identities         []string `json:"identities"`
	DependencyPaths    []string `json:"dependencyPaths"`
	DirectDependencies []string `json:"directDependencies"`
	Domains            []string `json:"domains"`
}

// The words of Found.Verified.
const (
	VerifiedPresent = "present"
	VerifiedAbsent  = "absent"
)

// Counts says what Upsert did. An issue that is reported twice counts once.
type Counts struct {
	Created int64 `json:"created"`
	Updated int64 `json:"updated"`
	Total   int64 `json:"total"`
}

// The detection states as they are stored.
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

// The kinds of labels: the lists of an issue that callers filter by.
const (
	LabelWorkflow      = "workflow"
	LabelAction        = "action"
	LabelIdentity      = "identity"
	LabelTriggerSource = "trigger_source"
	LabelRef           = "ref"
	LabelFilePath      = "file_path"
)

// Severities are the words of severity, the mildest first: the number of a word is its place, from 1.
var Severities = []string{"info", "low", "medium", "high", "critical"}

// severityOf is the number of a word; what is no word counts as medium.
func severityOf(word string) workflowsv1.Severity {
	n := slices.Index(Severities, word)
	if n < 0 {
		n = slices.Index(Severities, defaultSeverity)
	}
	return workflowsv1.Severity(n + 1)
}

// Limits of what is kept. Longer texts are cut, further values of a list left out: what a model writes has no bounds.
const (
	maxTitle  = 300    // characters
	maxText   = 20_000 // characters
	maxValue  = 500    // characters
	maxValues = 1000
)

// clip brings a text into the form and length that are stored.
func clip(text string, limit int) string {
	text = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD"))
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return string(runes[:limit-1]) + "…"
}

// union adds values to a list: each once, in the order in which they came, at most maxValues.
func union(list []string, values ...string) []string {
	for _, value := range values {
		value = clip(value, maxValue)
		if value != "" && len(list) < maxValues && !slices.Contains(list, value) {
			list = append(list, value)
		}
	}
	return list
}
