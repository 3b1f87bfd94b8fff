package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/palisade/palisade/services/findings/verdict"
)

// ErrNoFix: the answer has no replacement lines.
var ErrNoFix = errors.New("the model proposes no fix in these lines")

// contextLines is the number of lines before and after the match in the prompt for a fix.
const contextLines = 120

// Fix builds the question for lines that replace lines first to last (from 1) of a file.
func Fix(f Finding, lines []string, first, last int) Question {
	f.Code, f.Around = strings.Join(lines[first-1:last], "\n"), Window(lines, first, last, contextLines)
	b := newBlocks()
	b.finding(f)
	system := fmt.Sprintf("You fix findings of application-security scanners. Answer with one JSON object of the given schema.\n"+
		"replacement: the lines that replace lines %d to %d of the file, whole, without line numbers, in the style of the file, and "+
		"changed no more than the fix needs; empty when it cannot be fixed there. explanation: one to three sentences on why it is fixed.", first, last)
	text := map[string]any{"type": "string"}
	return Question{
		System: system + "\n\n" + b.warning(), Prompt: fmt.Sprintf("Finding of type %s, severity %s.\n\n%s", f.Type, f.Severity, b.text.String()),
		Schema: object(map[string]any{"replacement": text, "explanation": text}), Name: "finding_fix",
	}
}

// ReadFix parses the answer to Fix and returns the whole file with the lines replaced. The error is ErrNoFix.
func ReadFix(answer []byte, lines []string, first, last int) (content, explanation string, err error) {
	var said struct{ Replacement, Explanation string }
	if json.Unmarshal(answer, &said) != nil || len(said.Replacement) > verdict.MaxFix {
		return "", "", ErrNoFix
	}
	old := strings.Join(lines[first-1:last], "\n")
	replacement := strings.TrimRight(verdict.Text(strings.ReplaceAll(said.Replacement, "\r\n", "\n"), verdict.MaxFix), "\n")
	if strings.TrimSpace(replacement) == "" || replacement == old {
		return "", "", ErrNoFix
	}
	all := append(append(append([]string(nil), lines[:first-1]...), strings.Split(replacement, "\n")...), lines[last:]...)
	return strings.Join(all, "\n"), verdict.Text(said.Explanation, verdict.MaxExplanation), nil
}

// FindLines finds the lines of a match in a file that may have changed since the scan: at the scanned position, or at
// their only other position. ok is false if they are gone or ambiguous.
func FindLines(lines []string, code string, first, last int) (from, to int, ok bool) {
	wanted := trimmed(strings.Split(strings.Trim(code, "\r\n"), "\n"))
	if strings.TrimSpace(code) == "" {
		return first, last, first >= 1 && first <= last && last <= len(lines)
	}
	have := trimmed(lines)
	if first >= 1 && matches(have, wanted, first-1) {
		return first, first + len(wanted) - 1, true
	}
	found := 0
	for n := range have {
		if matches(have, wanted, n) {
			found++
			from, to = n+1, n+len(wanted)
		}
	}
	return from, to, found == 1
}

// matches compares whole lines without indentation. The first and the last wanted line may be parts of a line.
func matches(have, wanted []string, at int) bool {
	if at+len(wanted) > len(have) {
		return false
	}
	for i, line := range wanted {
		if line != have[at+i] && (i > 0 && i < len(wanted)-1 || line == "" || !strings.Contains(have[at+i], line)) {
			return false
		}
	}
	return true
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimSpace(line)
	}
	return out
}

// Diff is a unified diff of one change in a file; empty without a fix.
func Diff(path string, line int32, before, after string) string {
	if after == "" || path == "" {
		return ""
	}
	old, fresh := strings.Split(strings.Trim(before, "\n"), "\n"), strings.Split(strings.Trim(after, "\n"), "\n")
	var out strings.Builder
	path, line = oneLine(path), max(line, 1)
	fmt.Fprintf(&out, "--- a/%s\n+++ b/%s\n@@ -%d,%d +%d,%d @@\n", path, path, line, len(old), line, len(fresh))
	for _, l := range old {
		out.WriteString("-" + l + "\n")
	}
	for _, l := range fresh {
		out.WriteString("+" + l + "\n")
	}
	return out.String()
}
