package jsonstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// pieces provides a text in pieces of a few bytes.
type pieces struct {
	*strings.Reader
	size int
}

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.size)]) }

// TestShortenedTokens compares a stream that shortens long tokens with a decoder that does not: all short tokens, and
// the offsets of all tokens in the file, are the same.
func TestShortenedTokens(t *testing.T) {
	parts := []string{"a", "é", "0123456789", "abcdef", `\n`, `\"`, `\\`, `\u00e9`, `\ud83d\ude00`, " ", "[", "}"}
	text := rapid.Custom(func(t *rapid.T) string {
		return `"` + strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 40).Draw(t, "parts"), "") + `"`
	})
	number := rapid.Custom(func(t *rapid.T) string { return "1" + strings.Repeat("7", rapid.IntRange(0, 150).Draw(t, "digits")) })
	rapid.Check(t, func(t *rapid.T) {
		var doc strings.Builder
		doc.WriteString("[")
		for i, v := range rapid.SliceOfN(rapid.OneOf(text, number), 0, 12).Draw(t, "values") {
			if i > 0 {
				doc.WriteString("," + strings.Repeat(" ", rapid.IntRange(0, 90).Draw(t, "space")))
			}
			doc.WriteString(v)
		}
		doc.WriteString("]")
		size := rapid.IntRange(8, 40).Draw(t, "size")
		const limit = 50
		limits := Limits{MaxBytes: 1 << 20, MaxDepth: 100, MaxValues: 100, MaxValueBytes: 1 << 20, MaxTokenBytes: limit}
		got, err := Open(context.Background(), pieces{strings.NewReader(doc.String()), size}, limits)
		if err != nil {
			t.Fatal(err)
		}
		full := jsontext.NewDecoder(strings.NewReader(doc.String()), Options)
		for {
			want, wantErr := full.ReadToken()
			token, err := got.Token()
			if (err != nil) != (wantErr != nil) || got.Offset() != full.InputOffset() {
				t.Fatalf("%s: at byte %d, %v; want %d, %v", doc.String(), got.Offset(), err, full.InputOffset(), wantErr)
			}
			if err != nil {
				return
			}
			whole, short := want.String(), token.String()
			if len(whole) <= limit/6 && short != whole || len(short) > limit+size+10 {
				t.Fatalf("%s: token %q, want %q", doc.String(), short, whole)
			}
		}
	})
}

// TestALongTextCostsItsValueOnly reads a document with a text of twice the limit in constant memory.
func TestALongTextCostsItsValueOnly(t *testing.T) {
	const limit = 1 << 20
	long := strings.Repeat(`x\u00e9\"`, 2*limit/9)
	doc := `[{"a":1},{"b":"` + long + `"},{"c":2},` + strings.Repeat("9", 2*limit) + `,{"d":3}]`
	s, err := Open(context.Background(), strings.NewReader(doc), Limits{
		MaxBytes: 1 << 30, MaxDepth: 10, MaxValues: 100, MaxValueBytes: limit, MaxTokenBytes: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	err = s.Array(func(i int) error {
		v, ok, err := s.Value()
		if ok {
			kept = append(kept, fmt.Sprint(i, string(v), doc[s.Offset()-int64(len(v)):s.Offset()]))
		}
		return err
	})
	if err != nil || s.End() != nil || strings.Join(kept, " ") != `0{"a":1}{"a":1} 2{"c":2}{"c":2} 4{"d":3}{"d":3}` {
		t.Errorf("kept %q, error %v", kept, err)
	}
	if s.Bytes() != int64(len(doc)) {
		t.Errorf("%d bytes, want %d", s.Bytes(), len(doc))
	}
	// An error behind a long text is located in the file.
	broken := `["` + long + `" ! ]`
	s, err = Open(context.Background(), strings.NewReader(broken), s.limits)
	if err != nil {
		t.Fatal(err)
	}
	var syntax *SyntaxError
	if err := s.Locate(s.Skip()); !errors.As(err, &syntax) || syntax.Offset != int64(len(broken)-3) {
		t.Errorf("error %v, want one at byte %d", err, len(broken)-3)
	}
}

var _ io.ReadSeeker = pieces{}
