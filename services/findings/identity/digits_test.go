package identity

import (
	"encoding/binary"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// The hand-written scanners have to agree with these expressions.
var (
	lineNumbersExpression  = regexp.MustCompile(`(?m)^[ \t]*\d+[:|][ \t]`)
	numberedLineExpression = regexp.MustCompile(`^[ \t]*(\d+)[:|][ \t]?(.*)$`)
	namedExpression        = regexp.MustCompile(`\S*(?:[a-z][A-Z]|[_()\[\]{}*.$0-9])\S*`)
)

// texts is built of pieces that the expressions match.
var texts = rapid.Custom(func(t *rapid.T) string {
	pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
		" ", "\t", "\n", "\r\n", "\v", "\f", "0", "12", "7", ":", "|", "#", "-", "line", "Lines", "LINE ", "col.", "Column", "ſ", "K", "to", "–", "and",
		"x", "aB", "foo_bar", "f(x)", "a.b", "\"", "'", "`", "\\", "\u00a0", "é", "\xff", "$", "[1]", "in:", "lin", "collapse",
	}), 0, 14).Draw(t, "pieces")
	return strings.Join(pieces, "")
})

func TestWrittenOutExpressions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := texts.Draw(t, "text")
		same := func(what, got, want string) {
			if got != want {
				t.Errorf("%s of %q: got %q, want %q", what, text, got, want)
			}
		}
		same("withoutPositions", withoutPositions(text), position.ReplaceAllString(text, "#"))
		same("withoutLineNumbers", withoutLineNumbers(text), lineNumbersExpression.ReplaceAllString(text, ""))
		same("collapse", collapse(text), strings.Join(strings.Fields(text), " "))
		same("messageShape", messageShape(text), namedExpression.ReplaceAllString(quoted.ReplaceAllString(text, `""`), "i"))
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			number, code, ok := numberedLine(line)
			m := numberedLineExpression.FindStringSubmatch(line)
			if ok != (m != nil) || ok && (number != m[1] || code != m[2]) {
				t.Errorf("numberedLine of %q: got %q, %q, %v, want %q", line, number, code, ok, m)
			}
		}
		code := collapse(text)
		same("shape", shape(code), slowShape(code))
	})
}

// slowShape is shape as it was when its version was introduced.
func slowShape(code string) string {
	var b strings.Builder
	open := map[rune]bool{}
	for i := 0; i < len(code); {
		c, size := utf8.DecodeRuneInString(code[i:])
		end := i + size
		switch {
		case c == '"' || c == '\'' || c == '`':
			if !open[c] {
				if end = closing(code, i); end > 0 {
					b.WriteString(`""`)
					i = end
					continue
				}
				open[c] = true
			}
			end = i + size
		case c >= '0' && c <= '9':
			end = i + prefix(code[i:], func(r rune) bool { return r == '.' || nameRune(r) })
			b.WriteByte('0')
			i = end
			continue
		case nameRune(c):
			end = i + prefix(code[i:], nameRune)
			if strings.HasPrefix(strings.TrimPrefix(code[end:], " "), "(") || strings.HasSuffix(b.String(), ".") {
				b.WriteString(code[i:end])
			} else {
				b.WriteByte('i')
			}
			i = end
			continue
		}
		b.WriteString(code[i:end])
		i = end
	}
	return b.String()
}

// occurrences counts like a map, however its tables grow.
func TestOccurrences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var counted occurrences
		seen := map[[16]byte]int{}
		for range rapid.IntRange(0, 300).Draw(t, "keys") {
			var key [16]byte
			// Few tables and slots, so that hashes collide.
			binary.BigEndian.PutUint64(key[:], rapid.Uint64Range(0, 3).Draw(t, "top")<<62|rapid.Uint64Range(1, 100).Draw(t, "rest"))
			if got := counted.count(key); got != seen[key] {
				t.Fatalf("%x: got %d, want %d", key, got, seen[key])
			}
			seen[key]++
		}
	})
}

var benchmarkText = Text{
	Rule: "go.lang.security.injection.rule-017", Path: "services/billing/token_412.go", Line: 120, Column: 2, EndLine: 122,
	Snippet: "rows, err := db.Query(\"without being checked escaped or bound\" + session_4021983)\n",
	Message: "the value of this parameter comes from an untrusted request and reaches a query without being checked",
}

func BenchmarkEvidenceOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		EvidenceOf(benchmarkText)
	}
}

func BenchmarkAssign(b *testing.B) {
	names := NewAssigner()
	b.ReportAllocs()
	for b.Loop() {
		names.Assign("benchscan", benchmarkText)
	}
}
