package etag

import "testing"

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		header, tag string
		want        bool
	}{
		{`"a"`, `"a"`, true},
		{`W/"a"`, `"a"`, true},
		{`"a"`, `W/"a"`, true},
		{`"b", W/"a"`, `W/"a"`, true},
		{`"b","a"`, `"a"`, true},
		{` * `, `"a"`, true},
		{`"a, b", "c"`, `"c"`, true},
		{`"a, b"`, `"b"`, false},
		{`"b"`, `"a"`, false},
		{`a`, `"a"`, false},
		{`"a`, `"a"`, false},
		{`x, "a"`, `"a"`, false},
		{``, `"a"`, false},
		{`*`, ``, false},
		{`,,,`, `"a"`, false},
	} {
		if got := Matches(c.header, c.tag); got != c.want {
			t.Errorf("Matches(%q, %q) = %v", c.header, c.tag, got)
		}
	}
}

func TestMatchesStrongly(t *testing.T) {
	for _, c := range []struct {
		header, tag string
		want        bool
	}{
		{`"a"`, `"a"`, true},
		{`"b", "a"`, `"a"`, true},
		{`W/"b", "a"`, `"a"`, true},
		{`*`, `"a"`, true},
		{`W/"a"`, `"a"`, false},
		{`W/"a"`, `W/"a"`, false},
		{`"a"`, `W/"a"`, false},
		{`"b", W/"a"`, `"a"`, false},
		{`a`, `"a"`, false},
		{``, `"a"`, false},
	} {
		if got := MatchesStrongly(c.header, c.tag); got != c.want {
			t.Errorf("MatchesStrongly(%q, %q) = %v", c.header, c.tag, got)
		}
	}
}

func FuzzMatches(f *testing.F) {
	f.Add(`"b", W/"a"`)
	f.Add(`W/`)
	f.Fuzz(func(t *testing.T, header string) {
		Matches(header, `W/"a"`)
		if !Matches(`"x", "a",`+header, `"a"`) {
			t.Errorf("what follows a match changes it: %q", header)
		}
	})
}
