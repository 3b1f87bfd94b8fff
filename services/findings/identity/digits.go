package identity

import (
	"regexp"
	"strings"
)

// position finds the line numbers that messages speak of ("declared at 5959:23", "see line 12"): they move with the
// code.
var position = regexp.MustCompile(`(?i)\b\d+:\d+\b|:\d+\b|\b(?:lines?|columns?|col\.?)[ :#]+\d+(?:\s*(?:-|to|and|–)\s*\d+)?`)

// withoutPositions replaces them. Most messages have none, which is seen much faster than by the expression.
func withoutPositions(message string) string {
	if !mayHavePosition(message) {
		return message
	}
	return position.ReplaceAllString(message, "#")
}

// mayHavePosition is false only if there is none: each has a digit behind a colon, or behind a space, colon or # that a
// word with "lin" or "col" is in front of.
func mayHavePosition(message string) bool {
	apart := 0 // where a digit is behind a space or #, if one is
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

// withoutLineNumbers leaves those out that some tools write before each line of a snippet ("156: x := y").
func withoutLineNumbers(snippet string) string {
	if !strings.ContainsAny(snippet, "0123456789") {
		return snippet
	}
	var b strings.Builder
	kept := 0 // up to here snippet is in b
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

// lineNumber is where the number ends that a line begins with, and the colon or bar behind it; 0 if there is none.
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

// collapse makes texts equal that differ in white space only.
func collapse(s string) string {
	if s = strings.TrimSpace(s); collapsed(s) {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

// collapsed reports whether all white space of a text is single spaces between words. It may say no where it is; then
// nothing is saved.
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
