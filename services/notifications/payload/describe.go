package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

const (
	// maxDescribed is how many findings a text for people lists.
	maxDescribed = 20
	// maxLine is how many bytes of a finding's message it shows.
	maxLine = 200
)

// severities are the words for people of the numbers of severity.
var severities = map[int64]string{0: "info", 1: "warning", 2: "error"}

// Describe is the text for people of a body that this package made: a line that says what it is about, and plain text.
func Describe(body []byte) (subject, text string) {
	if title, message, ok := workflowMessage(body); ok {
		return oneLine(title), message
	}
	var findings []struct {
		Finding struct {
			CheckID  string `json:"check_id"`
			Path     string `json:"path"`
			Line     int64  `json:"line"`
			Message  string `json:"message"`
			Severity int64  `json:"severity"`
			Ref      string `json:"ref"`
			RepoName string `json:"repo_name"`
		} `json:"semgrep_finding"`
	}
	if !bytes.HasPrefix(body, []byte{'['}) || json.Unmarshal(body, &findings) != nil || len(findings) == 0 {
		return "A message from Palisade", string(body)
	}
	first := findings[0].Finding
	noun := "1 new finding"
	if len(findings) > 1 {
		noun = fmt.Sprintf("%d new findings", len(findings))
	}
	subject = fmt.Sprintf("%s in %s (%s)", noun, oneLine(first.RepoName), strings.TrimPrefix(oneLine(first.Ref), "refs/heads/"))
	var out strings.Builder
	for _, f := range findings[:min(len(findings), maxDescribed)] {
		fmt.Fprintf(&out, "%s: %s at %s:%d\n    %s\n", severities[f.Finding.Severity], oneLine(f.Finding.CheckID), oneLine(f.Finding.Path),
			f.Finding.Line, oneLine(f.Finding.Message))
	}
	if more := len(findings) - maxDescribed; more > 0 {
		fmt.Fprintf(&out, "and %d more\n", more)
	}
	return subject, out.String()
}

// oneLine brings a text from elsewhere into one line of bounded length.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxLine {
		return text
	}
	return strings.ToValidUTF8(text[:maxLine], "") + "…"
}
