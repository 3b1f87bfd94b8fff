package identity_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/findings/identity"
)

// at is a result of a rule at a line of a file.
func at(rule, path string, line int, snippet string) identity.Text {
	return identity.Text{Rule: rule, Path: path, Line: line, EndLine: line, Column: 2, Snippet: snippet, Message: "about " + rule}
}

func evidenceOf(all []identity.Text) []identity.Evidence {
	list := make([]identity.Evidence, len(all))
	for i, t := range all {
		list[i] = identity.EvidenceOf(t)
	}
	return list
}

func knownOf(all []identity.Text) []identity.Known {
	list := make([]identity.Known, len(all))
	for i, e := range evidenceOf(all) {
		list[i] = identity.Known{Evidence: e, ID: int64(i + 1), Name: fmt.Sprint(i), Open: true}
	}
	return list
}

// joined renders joins: for each result the known finding and the rung.
func joined(joins []identity.Join) string {
	var parts []string
	for _, j := range joins {
		if j.Known < 0 {
			parts = append(parts, "new")
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", j.Known, j.Rung))
	}
	return strings.Join(parts, ", ")
}

const (
	md5   = "hash := md5.New() // of the file's content"
	shell = `exec.Command("sh", "-c", command).Run()`
	query = `db.Query("SELECT * FROM users WHERE name = '" + name + "'")`
)

func TestMatch(t *testing.T) {
	withMessage := func(t identity.Text, message string) identity.Text { t.Message = message; return t }
	noCode := func(rule, path string, line int, message string) identity.Text {
		return withMessage(at(rule, path, line, ""), message)
	}
	withID := func(t identity.Text, id string) identity.Text { t.MatchBasedID = id; return t }
	withTool := func(t identity.Text, id string) identity.Text { t.ToolFingerprint = id; return t }
	for name, c := range map[string]struct {
		known   []identity.Text
		results []identity.Text
		gone    []int // indexes of known
		options identity.Options
		want    string
	}{
		"the same": {
			known:   []identity.Text{at("a", "f.go", 3, md5), at("b", "f.go", 9, shell)},
			results: []identity.Text{at("a", "f.go", 3, md5), at("b", "f.go", 9, shell)},
			want:    "0 snippet, 1 snippet",
		},
		"lines inserted and code indented": {
			known:   []identity.Text{at("a", "f.go", 3, md5), at("b", "f.go", 9, shell)},
			results: []identity.Text{at("b", "f.go", 19, "\t\t"+shell), at("a", "f.go", 13, "    "+md5)},
			want:    "1 snippet, 0 snippet",
		},
		"another rule, another file": {
			known:   []identity.Text{at("a", "f.go", 3, md5)},
			results: []identity.Text{at("b", "f.go", 3, md5), at("a", "g.go", 3, "return nil")},
			want:    "new, new",
		},
		"equal lines keep their order": {
			known:   []identity.Text{at("a", "f.go", 3, md5), at("a", "f.go", 9, md5)},
			results: []identity.Text{at("a", "f.go", 19, md5), at("a", "f.go", 13, md5)},
			want:    "1 snippet, 0 snippet",
		},
		"a copy above equal lines is the new one": {
			known:   []identity.Text{at("b", "f.go", 1, shell), at("a", "f.go", 3, md5), at("a", "f.go", 9, md5)},
			results: []identity.Text{at("b", "f.go", 1, shell), at("a", "f.go", 2, md5), at("a", "f.go", 4, md5), at("a", "f.go", 10, md5)},
			want:    "0 snippet, new, 1 snippet, 2 snippet",
		},
		"one of equal lines is gone": {
			known: []identity.Text{
				at("b", "f.go", 1, shell), at("a", "f.go", 3, md5), at("a", "f.go", 9, md5), at("a", "f.go", 20, md5), at("c", "f.go", 30, query),
			},
			results: []identity.Text{at("b", "f.go", 1, shell), at("a", "f.go", 3, md5), at("a", "f.go", 19, md5), at("c", "f.go", 29, query)},
			want:    "0 snippet, 1 snippet, 3 snippet, 4 snippet",
		},
		"a match-based id counts without its number": {
			known:   []identity.Text{withID(at("a", "f.go", 3, md5), "abc_0"), withID(at("a", "f.go", 9, shell), "def_0")},
			results: []identity.Text{withID(at("a", "f.go", 8, shell+" "), "def_4"), withID(at("a", "f.go", 2, "x"), "abc_7")},
			want:    "1 match_based_id, 0 match_based_id",
		},
		"equal fingerprints are told apart by the code": {
			known:   []identity.Text{withTool(at("a", "f.go", 3, md5), "x:1"), withTool(at("a", "f.go", 9, shell), "x:1")},
			results: []identity.Text{withTool(at("a", "f.go", 3, shell), "x:1"), withTool(at("a", "f.go", 9, md5), "x:1")},
			want:    "1 tool_fingerprint, 0 tool_fingerprint",
		},
		"a numbered snippet counts without its neighbours": {
			known:   []identity.Text{at("a", "f.go", 3, "2: a := 1\n3: "+md5+"\n4: b := 2\n")},
			results: []identity.Text{at("a", "f.go", 8, "7: other()\n8: "+md5+"\n9: }\n")},
			want:    "0 snippet",
		},
		"without code the message counts": {
			known:   []identity.Text{noCode("a", "f.go", 3, "func parse is unused"), noCode("a", "f.go", 9, "func format is unused")},
			results: []identity.Text{noCode("a", "f.go", 13, "func format is unused"), noCode("a", "f.go", 7, "func parse is unused")},
			want:    "1 message, 0 message",
		},
		"a variable was renamed": {
			known:   []identity.Text{at("b", "f.go", 1, shell), at("a", "f.go", 5, "sum := md5.New()")},
			results: []identity.Text{at("b", "f.go", 3, shell), at("a", "f.go", 7, "digest := md5.New()")},
			want:    "0 snippet, 1 shape",
		},
		"code was changed in its place": {
			known:   []identity.Text{at("b", "f.go", 1, shell), at("a", "f.go", 5, "sum := md5.New()")},
			results: []identity.Text{at("b", "f.go", 3, shell), at("a", "f.go", 7, "return md5.Sum(data), nil")},
			want:    "0 snippet, 1 line",
		},
		"other code elsewhere in the file is new": {
			known:   []identity.Text{at("b", "f.go", 1, shell), at("a", "f.go", 5, "sum := md5.New()")},
			results: []identity.Text{at("b", "f.go", 3, shell), at("a", "f.go", 40, "return md5.Sum(data), nil")},
			want:    "0 snippet, new",
		},
		"a tool has new messages": {
			known:   []identity.Text{noCode("a", "f.go", 3, "weak hash"), noCode("a", "f.go", 9, "weak hash"), noCode("b", "f.go", 9, "bad mode")},
			results: []identity.Text{noCode("a", "f.go", 3, "MD5 is weak"), noCode("a", "f.go", 9, "MD5 is weak"), noCode("b", "f.go", 9, "permissions are wide")},
			want:    "0 line, 1 line, 2 line",
		},
		"a file moved": {
			known:   []identity.Text{at("a", "old/f.go", 3, md5), at("b", "old/f.go", 9, "x()"), at("a", "g.go", 1, query)},
			results: []identity.Text{at("a", "new/f.go", 3, md5), at("b", "new/f.go", 9, "x()"), at("a", "g.go", 1, query)},
			want:    "0 moved_file:snippet, 1 moved_file:snippet, 2 snippet",
		},
		"a file was renamed, and lines inserted, and code changed": {
			known:   []identity.Text{at("a", "f.go", 3, md5), at("b", "f.go", 9, shell), at("c", "f.go", 12, "x := 1")},
			results: []identity.Text{at("a", "h.go", 7, md5), at("b", "h.go", 13, shell), at("c", "h.go", 16, "return x, 2")},
			want:    "0 moved_file:snippet, 1 moved_file:snippet, 2 moved_file:line",
		},
		"two files of one name moved: the directory does not help, the content does": {
			known:   []identity.Text{at("a", "x/f.go", 3, md5), at("a", "y/f.go", 3, query)},
			results: []identity.Text{at("a", "v/f.go", 3, query), at("a", "w/f.go", 3, md5)},
			want:    "1 moved_file:snippet, 0 moved_file:snippet",
		},
		"two equal files moved: ambiguous": {
			known:   []identity.Text{at("a", "x/f.go", 3, md5), at("a", "y/f.go", 3, md5)},
			results: []identity.Text{at("a", "v/f.go", 3, md5), at("a", "w/f.go", 3, md5)},
			want:    "new, new",
		},
		"equal contents say which one moved where": {
			known:   []identity.Text{at("a", "x/f.go", 3, md5), at("a", "y/f.go", 3, md5)},
			results: []identity.Text{at("a", "v/f.go", 3, md5), at("a", "w/f.go", 3, md5)},
			options: identity.Options{Moved: map[uint64]uint64{
				identity.PathHash("x/f.go"): identity.PathHash("w/f.go"), identity.PathHash("y/f.go"): identity.PathHash("v/f.go"),
			}},
			want: "1 moved_file:snippet, 0 moved_file:snippet",
		},
		"a file that was skipped did not move": {
			known:   []identity.Text{at("a", "x/f.go", 3, md5)},
			results: []identity.Text{at("a", "v/f.go", 3, md5)},
			options: identity.Options{Skipped: map[uint64]bool{identity.PathHash("x/f.go"): true}},
			want:    "new",
		},
		"a function went to a new file": {
			known:   []identity.Text{at("a", "f.go", 3, md5), at("b", "f.go", 9, shell), at("c", "f.go", 12, query)},
			results: []identity.Text{at("a", "f.go", 3, md5), at("b", "g.go", 4, shell), at("c", "f.go", 9, query)},
			want:    "0 snippet, 1 moved:snippet, 2 snippet",
		},
		"a copy in a new file is new": {
			known:   []identity.Text{at("b", "f.go", 9, shell)},
			results: []identity.Text{at("b", "f.go", 9, shell), at("b", "g.go", 4, shell)},
			want:    "0 snippet, new",
		},
		"short code is not recognised elsewhere": {
			known:   []identity.Text{at("a", "f.go", 3, md5), at("b", "f.go", 9, "x()")},
			results: []identity.Text{at("a", "f.go", 3, md5), at("b", "g.go", 9, "x()")},
			want:    "0 snippet, new",
		},
		"what is gone comes back": {
			known: []identity.Text{at("a", "f.go", 3, md5)}, gone: []int{0},
			results: []identity.Text{at("a", "f.go", 30, md5)},
			want:    "0 snippet",
		},
		"what is there comes before what is gone": {
			known: []identity.Text{at("a", "f.go", 3, md5), at("a", "f.go", 9, md5)}, gone: []int{0},
			results: []identity.Text{at("a", "f.go", 3, md5)},
			want:    "1 snippet",
		},
		"what is gone does not come back as other code": {
			known: []identity.Text{at("a", "f.go", 3, md5)}, gone: []int{0},
			results: []identity.Text{at("a", "f.go", 3, shell)},
			want:    "new",
		},
	} {
		t.Run(name, func(t *testing.T) {
			known := knownOf(c.known)
			for _, i := range c.gone {
				known[i].Open = false
			}
			joins := identity.Match(known, evidenceOf(c.results), c.options)
			if got := joined(joins); got != c.want {
				t.Errorf("got  %s\nwant %s\n%+v", got, c.want, joins)
			}
		})
	}
}

func TestMatchTellsWhatItConsidered(t *testing.T) {
	known := knownOf([]identity.Text{at("b", "f.go", 1, shell), at("a", "f.go", 5, "sum := md5.New()")})
	joins := identity.Match(known, evidenceOf([]identity.Text{at("b", "f.go", 1, shell), at("a", "f.go", 40, "return md5.Sum(data), nil")}), identity.Options{})
	if len(joins[0].Considered) != 0 {
		t.Errorf("an exact join considered %+v", joins[0].Considered)
	}
	if got := joins[1].Considered; len(got) != 1 || got[0].Known != 1 || got[0].Refused == "" {
		t.Errorf("considered %+v, want finding 1, refused", got)
	}
	joins = identity.Match(knownOf([]identity.Text{at("a", "x/f.go", 3, md5), at("a", "y/f.go", 3, md5)}),
		evidenceOf([]identity.Text{at("a", "v/f.go", 3, md5), at("a", "w/f.go", 3, md5)}), identity.Options{})
	for _, j := range joins {
		if len(j.Considered) != 2 || !strings.Contains(j.Considered[0].Refused, "ambiguous") {
			t.Errorf("considered %+v, want both, as ambiguous", j.Considered)
		}
	}
}
