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
			Fingerprints:    rapid.SampledFrom([][]string{nil, {"p:1"}, {"p:2"}, {"p:1", "q/v1:1"}, {"q/v1:2"}, {"p:2", "q/v2:1"}}).Draw(t, "prints"),
			Logical:         rapid.SampledFrom([]string{"", "", "Pod/a", "Pod/b", "A.a()", "A.b()"}).Draw(t, "logical"),
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

// Matching a report with itself joins each result with itself.
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

// unique generates results that are distinguishable.
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
		// Either all of a file moves, or nothing.
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

// Removing some findings does not change the matches of the others.
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

// Findings with distinct code never swap when they move within their file and other findings appear or disappear.
func TestDistinctCodeNeverSwaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := unique().Draw(t, "before")
		lines := rapid.Permutation(linesOf(before)).Draw(t, "lines")
		after := slices.Clone(before)
		for i := range after {
			after[i].Line = lines[i]
		}
		checkAll(t, before, after)
	})
}

func linesOf(all []identity.Text) []int {
	lines := make([]int, len(all))
	for i, text := range all {
		lines[i] = text.Line
	}
	return lines
}

// Other files and the order of the arguments do not change the matches.
func TestOtherFilesDoNotCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inFile := func(path string, all []identity.Text) []identity.Text {
			for i := range all {
				all[i].Path = path
			}
			return all
		}
		before := inFile("src/main.go", rapid.SliceOfN(texts(), 1, 30).Draw(t, "before"))
		after := inFile("src/main.go", rapid.SliceOfN(texts(), 1, 30).Draw(t, "after"))
		others := inFile("src/other.go", rapid.SliceOfN(texts(), 1, 30).Draw(t, "others"))
		alone := joined(identity.Match(knownOf(before), evidenceOf(after), identity.Options{}))
		together := identity.Match(knownOf(append(slices.Clone(before), others...)), evidenceOf(append(slices.Clone(after), others...)), identity.Options{})
		if got := joined(together[:len(after)]); got != alone {
			t.Fatalf("alone %s\nwith another file %s", alone, got)
		}
		first := identity.Match(knownOf(append(slices.Clone(others), before...)), evidenceOf(append(slices.Clone(others), after...)), identity.Options{})
		for i := range first {
			if first[i].Known >= 0 {
				first[i].Known -= len(others)
			}
		}
		if got := joined(first[len(others):]); got != alone {
			t.Fatalf("alone %s\nafter another file %s", alone, got)
		}
	})
}

// Equal results that all move by the same number of lines keep their identities, although nothing else is in the file.
func TestShiftedEqualHitsKeepAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfNDistinct(rapid.IntRange(1, 2000), 1, 60, rapid.ID).Draw(t, "lines")
		slices.Sort(lines)
		var before, after []identity.Text
		shift := rapid.IntRange(0, 500).Draw(t, "shift")
		for _, line := range lines {
			before, after = append(before, at("a", "f.go", line, "x()")), append(after, at("a", "f.go", line+shift, "x()"))
		}
		checkAll(t, before, after)
	})
}
