package jsonstream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

type shape struct {
	Name   string                 `json:"name"`
	Lines  jsonstream.List[line]  `json:"lines"`
	Prints jsonstream.Map[string] `json:"prints"`
	Text   *struct {
		Text string `json:"text"`
	} `json:"message"`
	Flag bool `json:"flag"`
}

type line struct {
	Start jsonstream.Integer `json:"start"`
}

// TestUnmarshalCostsOnlyTheBrokenPart breaks one part at a time, and expects the rest and a report of the change.
func TestUnmarshalCostsOnlyTheBrokenPart(t *testing.T) {
	for _, test := range []struct{ raw, want, fixes string }{
		{`{"name":"n","lines":[{"start":3}],"prints":{"a":"b"},"message":{"text":"m"},"flag":true}`, `n [{3}] map[a:b] m true`, ``},
		{`{"name":7,"lines":[{"start":3}]}`, `7 [{3}] map[]  false`, `/name is a number, want a string: converted`},
		{`{"name":{"x":1},"lines":[{"start":3}]}`, ` [{3}] map[]  false`, `/name is an object, want a string: ignored`},
		{`{"name":"n","lines":[{"start":"3"},{"start":{}},{"start":5}]}`, `n [{3} {0} {5}] map[]  false`,
			`/lines/0/start is a string, want an integer: converted; /lines/1/start is an object, want an integer: ignored`},
		{`{"name":"n","lines":{"start":3}}`, `n [{3}] map[]  false`, `/lines is an object, want an array: converted`},
		{`{"name":"n","lines":[7,{"start":3}]}`, `n [{0} {3}] map[]  false`, `/lines/0 is a number, want an object: ignored`},
		{`{"name":"n","prints":{"a":{"b":1},"c":true,"d":"e"}}`, `n [] map[a: c:true d:e] m false`,
			`/prints/a is an object, want a string: ignored; /prints/c is a boolean, want a string: converted`},
		{`{"name":"n","message":"m","flag":"true"}`, `n [] map[] m true`,
			`/message is a string, want an object: converted; /flag is a string, want a boolean: converted`},
		{`{"name":[],"name":"n"}`, `n [] map[]  false`, `/name is an array, want a string: ignored`},
	} {
		var got shape
		var fixes []string
		err := jsonstream.Unmarshal([]byte(test.raw), &got, func(f jsonstream.Fix) { fixes = append(fixes, f.Pointer+" "+f.Problem) })
		if err != nil {
			t.Errorf("%s: %v", test.raw, err)
			continue
		}
		message := ""
		if got.Text != nil {
			message = got.Text.Text
		}
		if text := fmt.Sprint(got.Name, " ", got.Lines, " ", map[string]string(got.Prints), " ", message, " ", got.Flag); text != strings.Replace(test.want, " m false", " "+message+" false", 1) {
			t.Errorf("%s: got %s, want %s", test.raw, text, test.want)
		}
		if all := strings.Join(fixes, "; "); all != test.fixes {
			t.Errorf("%s: fixes\n%s, want\n%s", test.raw, all, test.fixes)
		}
	}
}

// TestUnmarshalBoundsItsWork ignores the whole list of too many broken parts, and keeps the rest.
func TestUnmarshalBoundsItsWork(t *testing.T) {
	raw := `{"name":"n","lines":[` + strings.TrimSuffix(strings.Repeat(`7,`, 900), ",") + `]}`
	var got shape
	var fixes []jsonstream.Fix
	err := jsonstream.Unmarshal([]byte(raw), &got, func(f jsonstream.Fix) { fixes = append(fixes, f) })
	if err != nil || got.Name != "n" || len(got.Lines) != 0 {
		t.Errorf("got %v, error %v", got, err)
	}
	want := jsonstream.Fix{Pointer: "/lines", Problem: "has many parts of a wrong type: ignored"}
	if len(fixes) > 40 || fixes[len(fixes)-1] != want {
		t.Errorf("%d fixes, the last %v", len(fixes), fixes[len(fixes)-1])
	}
}

// TestTexts reads a text, a number, and lists of these. Other values are skipped.
func TestTexts(t *testing.T) {
	for raw, want := range map[string]string{
		`"a"`: "[a]", `7.5`: "[7.5]", `["a",7,true,{"b":"c"},null," d "]`: "[a 7 d]", `{"a":"b"}`: "[]", `null`: "[]", `[]`: "[]",
	} {
		var got jsonstream.Texts
		err := got.UnmarshalJSONFrom(jsontext.NewDecoder(strings.NewReader(raw)))
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v (%v), want %s", raw, got, err, want)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"name":7,"lines":{"start":"x"},"prints":[1],"message":"m"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got shape
		_ = jsonstream.Unmarshal(raw, &got, nil)
	})
}
