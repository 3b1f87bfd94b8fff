package jsonstream

import (
	"strings"
	"unicode/utf8"
)

// Clean makes a text safe to store and to show: valid UTF-8 (PostgreSQL rejects anything else) without NUL.
func Clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return s
}

// Cut shortens a text to at most max bytes at a character boundary, and marks the cut. The copy does not keep the
// original alive.
func Cut(s string, max int) string {
	const mark = "…"
	if len(s) <= max {
		return s
	}
	keep := max - len(mark)
	if keep < 0 {
		keep = 0
	}
	for keep > 0 && !utf8.RuneStart(s[keep]) {
		keep--
	}
	return s[:keep] + mark
}

// OneLine collapses all white space, for texts in lists. The copy does not keep the original alive, which may be mostly
// white space.
func OneLine(s string) string { return strings.Clone(strings.Join(strings.Fields(s), " ")) }
