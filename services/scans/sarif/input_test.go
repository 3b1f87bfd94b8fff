package sarif

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMeterFollowsStrings compares the meter, on text in pieces of any size, with a walk byte by byte: a bracket that it takes for a
// part of a string would let a report recurse as deeply as it likes.
func TestMeterFollowsStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{`"`, `\`, `\"`, `\\`, "[", "]", "{", "}", "word", " "})).Draw(t, "text"), "")
		limit := rapid.IntRange(0, 4).Draw(t, "limit")
		want, depth, inString, escaped := true, 0, false, false
		for _, c := range []byte(text) {
			switch {
			case escaped:
				escaped = false
			case inString:
				escaped, inString = c == '\\', c != '"'
			case c == '"':
				inString = true
			case c == '{' || c == '[':
				depth++
			case c == '}' || c == ']':
				depth--
			}
			want = want && depth <= limit
		}
		m, got := &meter{maxDepth: limit}, true
		for rest := []byte(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			got = got && m.scan(rest[:n])
			rest = rest[n:]
		}
		if got != want {
			t.Fatalf("scan of %q within %d: %v, want %v", text, limit, got, want)
		}
		if got && (m.inString != inString || m.escaped != escaped) {
			t.Fatalf("after %q: in a string %v, escaped %v, want %v, %v", text, m.inString, m.escaped, inString, escaped)
		}
	})
}
