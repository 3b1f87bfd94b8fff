package jsonstream

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// TestMeterFollowsStrings compares the meter with a scan byte by byte, on text in pieces of any size. If the meter took
// a bracket for a part of a string, the nesting of a report would be unlimited.
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

// TestElements compares the values that elements finds with the values that a decoder reads. Arrays in the array are
// read through.
func TestElements(t *testing.T) {
	value := rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		drawValue(t, &b, 3)
		return b.String()
	})
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		text.WriteString("[")
		for i, v := range rapid.SliceOf(value).Draw(t, "values") {
			if i > 0 {
				text.WriteString(",")
			}
			text.WriteString(v)
		}
		text.WriteString("] , [7]")
		most := rapid.Int64Range(1, 40).Draw(t, "most")
		dec := jsontext.NewDecoder(strings.NewReader(text.String()))
		if _, err := dec.ReadToken(); err != nil {
			t.Fatal(err)
		}
		got, err := NewElements(iotest.OneByteReader(strings.NewReader(text.String())), most)
		if err != nil {
			t.Fatal(err)
		}
		for dec.PeekKind() != ']' || dec.StackDepth() > 1 {
			if k := dec.PeekKind(); k == '[' || k == ']' {
				if _, err := dec.ReadToken(); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := dec.ReadValue()
			if err != nil {
				t.Fatalf("%s: %v", text.String(), err)
			}
			v, ok, err := got.Next()
			if err != nil || ok != (int64(len(want)) <= most) || ok && string(v) != string(want) {
				t.Fatalf("%s: got %q, %v, %v; want %q", text.String(), v, ok, err, want)
			}
		}
		for range 2 {
			if v, _, err := got.Next(); !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %q, %v behind the end", text.String(), v, err)
			}
		}
	})
}

// drawValue writes any JSON value, with white space around it.
func drawValue(t *rapid.T, b *strings.Builder, depth int) {
	space := rapid.SampledFrom([]string{"", " ", "\n\t"})
	b.WriteString(space.Draw(t, "before"))
	kinds := []string{"null", "-1.5e3", `"a"`, `"]},\\\"["`, "[", "{"}
	kind := rapid.SampledFrom(kinds[:len(kinds)-2+2*min(depth, 1)]).Draw(t, "kind")
	b.WriteString(kind)
	if kind == "[" || kind == "{" {
		for i := range rapid.IntRange(0, 3).Draw(t, "members") {
			if i > 0 {
				b.WriteString(",")
			}
			if kind == "{" {
				b.WriteString(`"` + string(rune('a'+i)) + `":`)
			}
			drawValue(t, b, depth-1)
		}
		b.WriteString(map[string]string{"[": "]", "{": "}"}[kind])
	}
	b.WriteString(space.Draw(t, "after"))
}
