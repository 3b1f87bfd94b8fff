// Package command reads the commands by which people triage findings in answers to review comments.
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

// Command is a decision about the findings that a review comment is about.
type Command struct {
	// State and Reason are in the words of triage.
	State, Reason string
	// Comment is why; empty only for State reopened.
	Comment string
}

// form is one way to write a command.
type form struct {
	words  []string
	state  string
	reason string
}

// forms are those of contract facts 3.14. Reopening alone needs no comment.
var forms = []form{
	{[]string{"/fp"}, lifecycle.Ignored, "false_positive"},
	{[]string{"/ar"}, lifecycle.Ignored, "acceptable_risk"},
	{[]string{"/other"}, lifecycle.Ignored, lifecycle.NoTriageReason},
	{[]string{"/open"}, lifecycle.Reopened, ""},
	{[]string{"/semgrep", "ignore"}, lifecycle.Ignored, lifecycle.NoTriageReason},
	{[]string{"/semgrep", "open"}, lifecycle.Reopened, ""},
}

// Error is a command that cannot be carried out. Its text is for the person who wrote it.
type Error struct{ text string }

// Error returns the text.
func (e *Error) Error() string { return e.text }

// Parse reads a text that may begin with a command: the comment is all that follows, on more lines too. ok is false for
// a text that begins otherwise. The error is an *Error.
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

// match returns what follows the words of the form, which may be in any case.
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

// clean drops what databases do not store or terminals act on: other control characters than line ends and tabs, and
// bytes that are no text.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// maxMarkers bounds how many findings one comment can be about.
const maxMarkers = 100

var marker = regexp.MustCompile(`palisade:finding=([0-9]{1,18})\b`)

// Findings returns the ids of the findings that a review comment of ours says it is about, by markers of the form
// palisade:finding=42 in it. An id may stand there twice.
func Findings(text string) []int64 {
	var ids []int64
	for _, match := range marker.FindAllStringSubmatch(text, maxMarkers) {
		if id, err := strconv.ParseInt(match[1], 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
