package identity

import (
	"regexp"
	"strings"
)

// position matches line numbers in messages ("declared at 5959:23", "see line 12"), which change when code moves.
var position = regexp.MustCompile(`(?i)\b\d+:\d+\b|:\d+\b|\b(?:lines?|columns?|col\.?)[ :#]+\d+(?:\s*(?:-|to|and|–)\s*\d+)?`)

// withoutPositions replaces line numbers by "#". Most messages have none; a scan of the bytes finds that out much
// faster than the expression.
func withoutPositions(message string) string {
	if !mayHavePosition(message) {
		return message
	}
	return position.ReplaceAllString(message, "#")
}

// mayHavePosition returns false only if position cannot match. A position has a digit after a colon, or a digit after a
// space or # that follows a word with "lin" or "col".
func mayHavePosition(message string) bool {
	apart := 0 // the last index of a digit after a space or #, or 0
	for i := 1; i < len(message); i++ {
		if c := message[i]; c < '0' || c > '9' {
			continue
		}
		switch message[i-1] {
		case ':':
			return true
		case ' ', '#':
			apart = i
		}
	}
	for i := 0; i < apart-2; i++ {
		if c := message[i] | 0x20; (c == 'l' || c == 'c') && (strings.EqualFold(message[i:i+3], "lin") || strings.EqualFold(message[i:i+3], "col")) {
			return true
		}
	}
	return false
}

// withoutLineNumbers removes the line numbers that some tools write before each line of a snippet ("156: x := y").
func withoutLineNumbers(snippet string) string {
	if !strings.ContainsAny(snippet, "0123456789") {
		return snippet
	}
	var b strings.Builder
	kept := 0 // snippet[:kept] is processed
	for start := 0; start < len(snippet); {
		if n := lineNumber(snippet[start:]); n > 0 && start+n < len(snippet) && isBlank(snippet[start+n]) {
			b.WriteString(snippet[kept:start])
			kept = start + n + 1
		}
		end := strings.IndexByte(snippet[start:], '\n')
		if end < 0 {
			break
		}
		start += end + 1
	}
	if kept == 0 {
		return snippet
	}
	b.WriteString(snippet[kept:])
	return b.String()
}

// lineNumber returns the length of a leading line number with its colon or bar, or 0 if there is none.
func lineNumber(line string) int {
	i := 0
	for i < len(line) && isBlank(line[i]) {
		i++
	}
	digits := i
	for i < len(line) && line[i] >= '0' && line[i] <= '9' {
		i++
	}
	if i == digits || i == len(line) || line[i] != ':' && line[i] != '|' {
		return 0
	}
	return i + 1
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// collapse replaces each run of white space by one space, and trims the ends.
func collapse(s string) string {
	if s = strings.TrimSpace(s); collapsed(s) {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

// collapsed reports whether a text has only single spaces between words. False negatives only cost time.
func collapsed(s string) bool {
	before := byte(' ')
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x80 || c < ' ' && c >= '\t' && c <= '\r' || c == ' ' && before == ' ' {
			return false
		}
		before = c
	}
	return s == "" || before != ' '
}
