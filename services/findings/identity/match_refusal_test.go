package identity_test

import (
	"strings"
	"testing"

	"github.com/palisade/palisade/services/findings/identity"
)

// Each case differs in one fact from a case that would be joined.
func TestMatchRefuses(t *testing.T) {
	message := func(rule, path string, line int, text string) identity.Text {
		return identity.Text{Rule: rule, Path: path, Line: line, Column: 4, Message: text}
	}
	column := func(t identity.Text, column int) identity.Text { t.Column = column; return t }
	hashed := func(t identity.Text, code string) identity.Text { t.CodeHash = code; return t }
	looked := func(paths ...string) func(uint64) bool {
		return func(path uint64) bool {
			for _, p := range paths {
				if identity.PathHash(p) == path {
					return true
				}
			}
			return false
		}
	}
	for name, c := range map[string]struct {
		known, results []identity.Text
		options        identity.Options
		want           string
	}{
		"a message alone does not go to another file": {
			known:   []identity.Text{message("a", "f.go", 3, "error is not checked"), message("b", "f.go", 9, "mode is wide")},
			results: []identity.Text{message("b", "f.go", 9, "mode is wide"), message("a", "g.go", 70, "error is not checked")},
			want:    "1 message, new",
		},
		"one weak finding does not make a file that moved": {
			known:   []identity.Text{message("a", "x/f.go", 3, "error is not checked")},
			results: []identity.Text{message("a", "y/g.go", 70, "error is not checked")},
			want:    "new",
		},
		"the name of the file does not help it, as a rule often has one message": {
			known:   []identity.Text{message("a", "x/f.go", 3, "error is not checked")},
			results: []identity.Text{message("a", "y/f.go", 70, "error is not checked")},
			want:    "new",
		},
		"it helps if the rule has other messages, and this one is nowhere else": {
			known:   []identity.Text{message("a", "x/f.go", 3, "x is not checked"), message("a", "g.go", 3, "y is not checked")},
			results: []identity.Text{message("a", "y/f.go", 70, "x is not checked"), message("a", "g.go", 3, "y is not checked")},
			want:    "0 moved_file:message, 1 message",
		},
		"another Dockerfile with the same problems": {
			known: []identity.Text{column(message("a", "x/Dockerfile", 1, "tag it"), 1), column(message("b", "x/Dockerfile", 3, "pin it"), 1),
				column(message("c", "x/Dockerfile", 3, "clean up"), 1)},
			results: []identity.Text{column(message("a", "y/Dockerfile", 1, "tag it"), 1), column(message("b", "y/Dockerfile", 3, "pin it"), 1),
				column(message("c", "y/Dockerfile", 3, "clean up"), 1)},
			want: "new, new, new",
		},
		"another Dockerfile, which is surely the same": {
			known:   []identity.Text{column(message("a", "x/Dockerfile", 1, "tag it"), 1), column(message("b", "x/Dockerfile", 3, "pin it"), 1)},
			results: []identity.Text{column(message("a", "y/Dockerfile", 1, "tag it"), 1), column(message("b", "y/Dockerfile", 3, "pin it"), 1)},
			options: identity.Options{LookedAt: looked("y/Dockerfile"), NewFile: looked("y/Dockerfile")},
			want:    "0 moved_file:message, 1 moved_file:message",
		},
		"the same file name, line and column": {
			known:   []identity.Text{message("a", "x/f.go", 3, "error is not checked")},
			results: []identity.Text{message("a", "y/f.go", 3, "error is not checked")},
			want:    "0 moved_file:message",
		},
		"code does not go to a file that was there, if nobody looked whether it is still where it was": {
			known:   []identity.Text{at("a", "f.go", 3, md5), at("b", "g.go", 9, shell)},
			results: []identity.Text{at("b", "g.go", 9, shell), at("a", "g.go", 3, md5)},
			want:    "1 snippet, new",
		},
		"code goes to a file that was there, if it is certainly not where it was": {
			known:   []identity.Text{at("a", "f.go", 3, md5), at("b", "g.go", 9, shell)},
			results: []identity.Text{at("b", "g.go", 9, shell), at("a", "g.go", 3, md5)},
			options: identity.Options{LookedAt: looked("f.go", "g.go")},
			want:    "1 snippet, 0 moved:snippet",
		},
		"a message is nothing where there are hashes of the code": {
			known:   []identity.Text{hashed(message("a", "f.go", 3, "not checked"), "c1"), hashed(message("a", "f.go", 90, "not checked"), "c2")},
			results: []identity.Text{hashed(message("a", "f.go", 3, "not checked"), "c2"), hashed(message("a", "f.go", 400, "not checked"), "c3")},
			want:    "1 code, new",
		},
		"two on a line, of which one is left with other code: nothing tells which": {
			known:   []identity.Text{at("a", "f.go", 3, "x := md5.New()"), at("a", "f.go", 3, "y := sha1.New()")},
			results: []identity.Text{at("a", "f.go", 3, "return des.NewCipher(key)")},
			want:    "new",
		},
		"the column tells": {
			known:   []identity.Text{column(at("a", "f.go", 3, "x := md5.New()"), 2), column(at("a", "f.go", 3, "y := sha1.New()"), 40)},
			results: []identity.Text{column(at("a", "f.go", 3, "return des.NewCipher(key)"), 40)},
			want:    "1 line",
		},
		"another rule on the expected line": {
			known:   []identity.Text{at("a", "f.go", 3, md5)},
			results: []identity.Text{at("b", "f.go", 3, md5)},
			want:    "new",
		},
		"one line off, and there is another one": {
			known:   []identity.Text{at("a", "f.go", 3, md5), at("a", "f.go", 30, shell)},
			results: []identity.Text{at("a", "f.go", 4, "return 1"), at("a", "f.go", 31, "x = y")},
			want:    "new, new",
		},
		"one line off, and nothing else competes": {
			known:   []identity.Text{at("a", "f.go", 3, md5)},
			results: []identity.Text{at("a", "f.go", 4, "return 1")},
			want:    "0 line",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := joined(identity.Match(knownOf(c.known), evidenceOf(c.results), c.options)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Some equal results of a file came or went: the fewest edits tell which.
func TestEqualHitsAreToldApart(t *testing.T) {
	hits := func(lines ...int) (all []identity.Text) {
		for _, line := range lines {
			all = append(all, at("a", "f.go", line, "x()"))
		}
		return all
	}
	for name, c := range map[string]struct {
		before, after []int
		want          string
	}{
		"a block with two was deleted":           {[]int{10, 20, 30, 40, 50}, []int{10, 25, 35}, "0 snippet, 3 snippet, 4 snippet"},
		"a block with one was inserted":          {[]int{10, 40, 50}, []int{10, 22, 55, 65}, "0 snippet, new, 1 snippet, 2 snippet"},
		"some were renamed in their place":       {[]int{182, 224, 266, 490}, []int{266}, "2 snippet"},
		"lines were duplicated":                  {[]int{182, 224, 266, 490}, []int{182, 183, 225, 268, 493}, "0 snippet, new, 1 snippet, 2 snippet, 3 snippet"},
		"as many as before keep their order":     {[]int{10, 20, 30}, []int{90, 91, 300}, "0 snippet, 1 snippet, 2 snippet"},
		"a file that lost its beginning":         {[]int{10, 50, 70}, []int{20, 40}, "1 snippet, 2 snippet"},
		"one was added on the line of another":   {[]int{10, 20}, []int{10, 20, 20}, "0 snippet, 1 snippet, new"},
		"a single one that is left stays itself": {[]int{100, 130}, []int{130}, "1 snippet"},
	} {
		t.Run(name, func(t *testing.T) {
			joins := identity.Match(knownOf(hits(c.before...)), evidenceOf(hits(c.after...)), identity.Options{})
			if got := joined(joins); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Functions that change their order keep their findings, even if their code is equal.
func TestReorderedFunctions(t *testing.T) {
	function := func(start int, name string) []identity.Text {
		return []identity.Text{
			at("b", "f.go", start, "open("+name+")"), at("a", "f.go", start+2, "x()"), at("b", "f.go", start+5, "close("+name+")"),
		}
	}
	before := append(function(10, "first"), function(50, "second")...)
	after := append(function(11, "second"), function(44, "first")...)
	got := joined(identity.Match(knownOf(before), evidenceOf(after), identity.Options{}))
	if want := strings.Join([]string{"3 snippet", "4 snippet", "5 snippet", "0 snippet", "1 snippet", "2 snippet"}, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
