package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

const (
	// maxDescribed is the maximum number of findings in a text.
	maxDescribed = 20
	// maxLine is the maximum length of a finding's message in it, in bytes.
	maxLine = 200
)

// severities maps severity numbers to words.
var severities = map[int64]string{0: "info", 1: "warning", 2: "error"}

// Describe returns subject and plain text for a body made by this package.
func Describe(body []byte) (subject, text string) {
	if message, ok := ownMessage(body); ok {
		return oneLine(message.Title), message.Message
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

// aFinding is the end of a line about a finding in a message of an automation or a policy.
var aFinding = regexp.MustCompile(`(?m), finding ([0-9]+)$`)

// Place is where a body made by this package leads to, and its text with that link. Bodies without a link of their own
// lead to their scan, or to each finding, in the console of the deployment. The link is empty if there is none.
func Place(body []byte, text, console string) (link, linked string) {
	message, ok := ownMessage(body)
	switch {
	case !ok || message.Link != "":
		return message.Link, text
	case message.ScanID != 0:
		link = fmt.Sprintf("%s/scans/%d", console, message.ScanID)
		return link, strings.TrimRight(text, "\n") + "\n" + link + "\n"
	}
	for _, key := range []string{automationKey, policyKey} {
		if bytes.HasPrefix(body, []byte(`{"`+key+`":`)) {
			text = aFinding.ReplaceAllString(text, "$0\n    "+console+"/findings/$1")
		}
	}
	return "", text
}

// oneLine reduces external text to one line of limited length.
func oneLine(text string) string { return oneLineOf(text, maxLine) }

// oneLineOf reduces external text to one line of at most so many bytes.
func oneLineOf(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
