package identity_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

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
		gone    []int // of known
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

func TestEvidenceIsStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := identity.EvidenceOf(texts().Draw(t, "text"))
		back, version, err := identity.Decode(e.Encode())
		if err != nil || version != identity.Version || back != e {
			t.Fatalf("read back %+v (version %d, %v), want %+v", back, version, err, e)
		}
	})
}

func texts() *rapid.Generator[identity.Text] {
	return rapid.Custom(func(t *rapid.T) identity.Text {
		code := rapid.SampledFrom([]string{"", md5, shell, query, "x()", "a := b", "a := c"})
		return identity.Text{
			Rule: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "rule"), Path: rapid.SampledFrom([]string{"f", "g", "d/f", "h"}).Draw(t, "path"),
			MatchBasedID:    rapid.SampledFrom([]string{"", "", "", "m_0", "m_1", "n_0"}).Draw(t, "match"),
			ToolFingerprint: rapid.SampledFrom([]string{"", "", "t:1", "t:2"}).Draw(t, "tool"),
			Snippet:         code.Draw(t, "snippet"), Message: rapid.SampledFrom([]string{"m", "n"}).Draw(t, "message"),
			Line: rapid.IntRange(1, 60).Draw(t, "line"), Column: rapid.IntRange(1, 3).Draw(t, "column"),
		}
	})
}

func checkOneToOne(t interface{ Fatalf(string, ...any) }, known []identity.Known, joins []identity.Join) {
	taken := map[int]bool{}
	for i, j := range joins {
		if j.Known < 0 {
			if j.Rung != "" {
				t.Fatalf("result %d is new by %s", i, j.Rung)
			}
			continue
		}
		if j.Known >= len(known) || taken[j.Known] {
			t.Fatalf("result %d takes %d again", i, j.Known)
		}
		taken[j.Known] = true
		if j.Rung == "" {
			t.Fatalf("result %d has no rung", i)
		}
	}
}

func TestMatchIsOneToOneAndRepeatable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known := knownOf(rapid.SliceOfN(texts(), 0, 40).Draw(t, "known"))
		for i := range known {
			known[i].Open = rapid.IntRange(0, 3).Draw(t, "gone") > 0
		}
		results := evidenceOf(rapid.SliceOfN(texts(), 0, 40).Draw(t, "results"))
		once := identity.Match(known, results, identity.Options{})
		checkOneToOne(t, known, once)
		if again := identity.Match(known, results, identity.Options{}); joined(once) != joined(again) {
			t.Fatalf("once %s\nagain %s", joined(once), joined(again))
		}
	})
}

// The same report joins everything, each result with itself.
func TestMatchOfTheSameReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(texts(), 1, 60).Draw(t, "results")
		joins := identity.Match(knownOf(all), evidenceOf(all), identity.Options{})
		for i, j := range joins {
			if !identity.Exact(j.Rung) || identity.EvidenceOf(all[j.Known]) != identity.EvidenceOf(all[i]) {
				t.Fatalf("result %d: %+v", i, j)
			}
		}
	})
}

// unique are results that can be told apart.
func unique() *rapid.Generator[[]identity.Text] {
	return rapid.Custom(func(t *rapid.T) []identity.Text {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		all := make([]identity.Text, n)
		for i := range all {
			path := fmt.Sprintf("src/file%d.go", rapid.IntRange(0, 6).Draw(t, "file"))
			all[i] = at(fmt.Sprint("rule", i%3), path, 1+7*i, fmt.Sprintf("call%d(argument%d, another%d)", i, i, i))
		}
		return all
	})
}

func TestShiftedLinesKeepAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := unique().Draw(t, "before")
		shift, from := rapid.IntRange(0, 500).Draw(t, "shift"), rapid.IntRange(0, 300).Draw(t, "from")
		after := slices.Clone(before)
		for i := range after {
			if after[i].Line >= from {
				after[i].Line += shift
			}
		}
		checkAll(t, before, after)
	})
}

func TestRenamedFilesKeepAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := unique().Draw(t, "before")
		after := slices.Clone(before)
		for i := range after {
			if strings.HasSuffix(after[i].Path, rapid.SampledFrom([]string{"3.go", "4.go"}).Draw(t, "which")) {
				after[i].Path = "pkg/" + after[i].Path
			}
		}
		// All of a file moves, or none.
		moved := map[string]bool{}
		for i := range after {
			moved[before[i].Path] = moved[before[i].Path] || after[i].Path != before[i].Path
		}
		for i := range after {
			if moved[before[i].Path] {
				after[i].Path = "pkg/" + before[i].Path
			}
		}
		checkAll(t, before, after)
	})
}

func checkAll(t *rapid.T, before, after []identity.Text) {
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(after))
	shuffled := make([]identity.Text, len(after))
	for i, j := range order {
		shuffled[i] = after[j]
	}
	for i, j := range identity.Match(knownOf(before), evidenceOf(shuffled), identity.Options{}) {
		if j.Known != order[i] {
			t.Fatalf("result %+v was joined with %+v", shuffled[i], j)
		}
	}
}

// Without some of the findings the others stay what they are.
func TestRemovalMovesNoOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := unique().Draw(t, "before")
		var after []identity.Text
		var index []int
		for i, text := range before {
			if rapid.Bool().Draw(t, "stays") {
				after, index = append(after, text), append(index, i)
			}
		}
		for i, j := range identity.Match(knownOf(before), evidenceOf(after), identity.Options{}) {
			if j.Known != index[i] {
				t.Fatalf("result %d is %d, want %d", i, j.Known, index[i])
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(identity.EvidenceOf(at("a", "f.go", 3, md5)).Encode())
	f.Add([]byte{identity.Version, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, _, err := identity.Decode(b)
		if err != nil {
			return
		}
		if back, _, err := identity.Decode(e.Encode()); err != nil || back != e {
			t.Fatalf("%+v became %+v: %v", e, back, err)
		}
	})
}

func FuzzMatch(f *testing.F) {
	f.Add([]byte("abcabcabc"), []byte("abdabcabd"), uint8(3))
	f.Fuzz(func(t *testing.T, before, after []byte, skipped uint8) {
		make := func(b []byte) (all []identity.Evidence) {
			for ; len(b) >= 3 && len(all) < 2000; b = b[3:] {
				all = append(all, identity.Evidence{
					Rule: uint64(b[0]&3) + 1, Path: uint64(b[0]>>2&7) + 1, Base: uint64(b[0] >> 5), Snippet: uint64(b[1] & 15), Shape: uint64(b[1]&3) + 1,
					Message: uint64(b[1] >> 4), Line: int32(b[2]), Specific: b[1]&16 != 0,
				})
			}
			return all
		}
		var known []identity.Known
		for i, e := range make(before) {
			known = append(known, identity.Known{Evidence: e, ID: int64(i), Open: e.Message != 3})
		}
		o := identity.Options{Skipped: map[uint64]bool{uint64(skipped & 7): true}, Moved: map[uint64]uint64{1: 2, 2: 3}}
		joins := identity.Match(known, make(after), o)
		checkOneToOne(t, known, joins)
	})
}

// BenchmarkMatch joins reports of 300,000 results: the same again, all shifted, and one in which all lines are equal.
func BenchmarkMatch(b *testing.B) {
	const n = 300_000
	report := func(shift int, code func(i int) string) []identity.Text {
		all := make([]identity.Text, n)
		for i := range all {
			all[i] = at(fmt.Sprint("rule", i%50), fmt.Sprintf("src/dir%d/file%d.go", i%70, i%3000), i/3000*5+shift, code(i))
		}
		return all
	}
	distinct := func(i int) string { return fmt.Sprintf("call%d(argument)", i) }
	equal := func(int) string { return "call(argument)" }
	for name, texts := range map[string][2][]identity.Text{
		"same":    {report(1, distinct), report(1, distinct)},
		"shifted": {report(1, distinct), report(12, distinct)},
		"equal":   {report(1, equal), report(4, equal)[:n-5000]},
	} {
		known, results := knownOf(texts[0]), evidenceOf(texts[1])
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				identity.Match(known, results, identity.Options{})
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "results/s")
		})
	}
}
