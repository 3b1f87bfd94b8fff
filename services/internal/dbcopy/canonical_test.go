package dbcopy

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCanonicalJSON(t *testing.T) {
	for _, same := range [][]string{
		{`{"b":1,"a":[1.50,2e2,-0]}`, `{ "a": [1.5, 200, 0], "b": 1 }`, `{"a":[15e-1,2.00E+2,0.0],"b":2,"b":1}`},
		{`"<"`, `"\u003c"`},
		{`100000000000000000000`, `1e20`},
		{`[]`, ` [ ] `},
		{`null`},
	} {
		first, err := canonicalJSON(same[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range same[1:] {
			if got, err := canonicalJSON(text); err != nil || strings.TrimSpace(got) != strings.TrimSpace(first) {
				t.Errorf("%s: %q, %v; want %q", text, got, err, first)
			}
		}
	}
	for _, text := range []string{"", "{", "1 2", "[1,]"} {
		if got, err := canonicalJSON(text); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
	for _, pair := range [][2]string{{"1", "2"}, {"1.5", "1.25"}, {`"1"`, "1"}, {"9007199254740993", "9007199254740992"}} {
		a, _ := canonicalJSON(pair[0])
		b, _ := canonicalJSON(pair[1])
		if a == b {
			t.Errorf("%s and %s have the same canonical form", pair[0], pair[1])
		}
	}
}

// TestReplacedText: replaced text can be stored, and other text stays unchanged.
func TestReplacedText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{"a", "\x00", `\`, `\\`, "u0000", `\u0000`, `\\u0000`, "\xff", "ü", `"`}))
		text := strings.Join(pieces.Draw(t, "pieces"), "")
		for _, k := range []kind{kindText, kindJSON} {
			refuse := normalizer{forPostgres: true}
			replace := normalizer{forPostgres: true, replace: true}
			kept, err := refuse.text(k, text)
			changed, replaceErr := replace.text(k, text)
			if replaceErr != nil || (err == nil) != (replace.replaced == 0) || err == nil && (kept != text || changed != text) {
				t.Fatalf("%q: %q %v, %q %v", text, kept, err, changed, replaceErr)
			}
			if _, err := refuse.text(k, changed); err != nil {
				t.Fatalf("%q became %q: %v", text, changed, err)
			}
		}
	})
}

// TestEscapedNUL: escapes of NUL are found exactly where a JSON decoder finds them.
func TestEscapedNUL(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"\x00", `\`, "u0000", "a", `"`})).Draw(t, "value"), "")
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if got := escapesNUL(string(text), nil); got != strings.Contains(value, "\x00") {
			t.Fatalf("%s: %t", text, got)
		}
		var out strings.Builder
		escapesNUL(string(text), &out)
		var replaced string
		if err := json.Unmarshal([]byte(out.String()), &replaced); err != nil || replaced != strings.ReplaceAll(value, "\x00", replacement) {
			t.Fatalf("%s became %s: %q %v", text, out.String(), replaced, err)
		}
	})
}

// TestTimesOfTheQueue: the job queue writes times in several formats.
func TestTimesOfTheQueue(t *testing.T) {
	want := time.Date(2026, 11, 21, 15, 8, 44, 587_000_000, time.UTC)
	for _, raw := range []any{"2026-11-21 15:08:44.587", "2026-11-21 15:08:44.586629909+00:00", "2026-11-21 16:08:44.5866+01:00", want.In(time.FixedZone("", 3600))} {
		if got, err := (&normalizer{}).value(&column{kind: kindTime}, raw); err != nil || got != any(want) {
			t.Errorf("%v: %v %v", raw, got, err)
		}
	}
}

func TestInvalidValues(t *testing.T) {
	n := &normalizer{forPostgres: true}
	for want, c := range map[string]struct {
		kind kind
		raw  any
	}{
		"32 bits":    {kindInt32, int64(math.MaxInt32 + 1)},
		"NaN":        {kindFloat, math.NaN()},
		"UTF-8":      {kindText, "\xff"},
		"NUL":        {kindJSON, `"\u0000"`},
		"int64":      {kindInt, "one"},
		"bool":       {kindBool, int64(2)},
		"not a time": {kindTime, "yesterday"},
		"[]uint8":    {kindBytes, int64(1)},
		"a float64":  {kindText, 1.5},
	} {
		_, err := n.value(&column{kind: c.kind}, c.raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", c.raw, err, want)
		}
	}
}
