// Package command parses the commands with which people triage findings in replies to review comments.
package command

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/palisade/palisade/services/findings/lifecycle"
)

// maxComment is in runes, as for notes of the API (contract facts 2.5).
const maxComment = 3000

// Command is a triage decision about the findings of a review comment.
type Command struct {
	// State and Reason are triage words.
	State, Reason string
	// Comment is the reason given; it may be empty only for the state reopened.
	Comment string
}

// form is one syntax of a command.
type form struct {
	words  []string
	state  string
	reason string
}

// forms lists the commands of contract facts 3.14. Only reopening needs no comment.
var forms = []form{
	{[]string{"/fp"}, lifecycle.Ignored, "false_positive"},
	{[]string{"/ar"}, lifecycle.Ignored, "acceptable_risk"},
	{[]string{"/other"}, lifecycle.Ignored, lifecycle.NoTriageReason},
	{[]string{"/ignore"}, lifecycle.Ignored, lifecycle.NoTriageReason},
	{[]string{"/open"}, lifecycle.Reopened, ""},
	{[]string{"/semgrep", "ignore"}, lifecycle.Ignored, lifecycle.NoTriageReason},
	{[]string{"/semgrep", "open"}, lifecycle.Reopened, ""},
}

// Error is an invalid command. Its text is for the author.
type Error struct{ text string }

// Error returns the text.
func (e *Error) Error() string { return e.text }

// Parse parses a text that may begin with a command. The rest, including further lines, is the comment. ok is false for
// other texts. The error is an *Error.
func Parse(text string) (c Command, ok bool, err error) {
	rest := strings.TrimSpace(clean(text))
	if !strings.HasPrefix(rest, "/") {
		return Command{}, false, nil
	}
	for _, f := range forms {
		comment, matches := f.match(rest)
		if !matches {
			continue
		}
		c := Command{State: f.state, Reason: f.reason, Comment: comment}
		name := strings.Join(f.words, " ")
		switch n := utf8.RuneCountInString(comment); {
		case n > maxComment:
			return c, true, &Error{fmt.Sprintf("the comment behind `%s` may have at most %d characters, it has %d", name, maxComment, n)}
		case n == 0 && f.state == lifecycle.Ignored:
			return c, true, &Error{fmt.Sprintf("say why behind the command: `%s <comment>`", name)}
		}
		return c, true, nil
	}
	return Command{}, false, nil
}

// match returns the text after the form's words, which are case-insensitive.
func (f form) match(text string) (rest string, ok bool) {
	rest = text
	for _, word := range f.words {
		end := strings.IndexFunc(rest, unicode.IsSpace)
		if end < 0 {
			end = len(rest)
		}
		if !strings.EqualFold(rest[:end], word) {
			return "", false
		}
		rest = strings.TrimSpace(rest[end:])
	}
	return rest, true
}

// clean removes invalid UTF-8 and control characters except line ends and tabs: databases do not store them, or
// terminals act on them.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// maxMarkers is the maximum number of findings in one comment.
const maxMarkers = 100

var marker = regexp.MustCompile(`palisade:finding=([0-9]{1,18})\b`)

// Findings returns the finding ids in a review comment of ours, from markers such as palisade:finding=42. An id may be
// repeated.
func Findings(text string) []int64 {
	var ids []int64
	for _, match := range marker.FindAllStringSubmatch(text, maxMarkers) {
		if id, err := strconv.ParseInt(match[1], 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
