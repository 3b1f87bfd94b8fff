package columns

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/findings/lifecycle"
)

// rowsOf returns the content of a snapshot.
func rowsOf(s *Snapshot) map[int64]string {
	rows := map[int64]string{}
	last := int64(-1)
	for _, c := range s.chunks {
		for i := range c.id {
			at, status := c.history(i)
			id := c.idOf(i)
			if id <= last {
				panic("ids are not in order")
			}
			last = id
			rows[id] = fmt.Sprint(c.place[i], c.rule[i], c.kind[i], c.attr[i], c.since[i], at, status)
		}
	}
	return rows
}

func drawRow(t *rapid.T, id int64) Row {
	r := Row{ID: id, Place: rapid.Uint32Range(0, 9).Draw(t, "place"), Rule: rapid.Uint32Range(0, 9).Draw(t, "rule"), Attr: Attr(rapid.Uint16().Draw(t, "attr"))}
	r.Kind, r.Since = rapid.Uint32Range(0, 9).Draw(t, "kind"), rapid.Int64Range(1, 99).Draw(t, "since")
	at := rapid.Uint32Range(1000, 2000).Draw(t, "at")
	for range rapid.IntRange(0, 3).Draw(t, "transitions") {
		at += rapid.Uint32Range(0, 50).Draw(t, "later")
		r.Transitions = append(r.Transitions, Transition{at, Status(rapid.IntRange(1, 7).Draw(t, "status"))})
	}
	return r
}

func text(r Row) string {
	at, status := []uint32{}, []Status{}
	for _, t := range r.Transitions {
		at, status = append(at, t.At), append(status, t.Status)
	}
	return fmt.Sprint(r.Place, r.Rule, r.Kind, r.Attr, r.Since, at, status)
}

func ascending(rows map[int64]Row) func() (Row, bool) {
	ids := slices.Sorted(maps.Keys(rows))
	return func() (Row, bool) {
		if len(ids) == 0 {
			return Row{}, false
		}
		r := rows[ids[0]]
		ids = ids[1:]
		return r, true
	}
}

// A snapshot after many changes equals one built from the same rows, and earlier snapshots are unchanged.
func TestWithEqualsBuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		far := rapid.SampledFrom([]int64{1, 1, 7, 1 << 31}).Draw(t, "distance of ids")
		table, model := NewTable(), map[int64]Row{}
		snapshot := table.Build(ascending(model))
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			before, kept := snapshot, rowsOf(snapshot)
			var rows []Row
			first := rapid.Int64Range(1, 12_000).Draw(t, "first")
			one, step := drawRow(t, 0), rapid.SampledFrom([]int64{1, 1, 2}).Draw(t, "step")
			for i := range rapid.SampledFrom([]int64{1, 3, 40, 40, 40, 40, 40, 9000}).Draw(t, "rows") {
				one.ID = (first + i*step) * far
				if i%1000 == 0 {
					one = drawRow(t, one.ID)
				}
				if _, twice := model[one.ID]; i > 0 && twice && len(rows) > 0 && rows[len(rows)-1].ID == one.ID {
					continue
				}
				if !slices.ContainsFunc(rows[max(0, len(rows)-3):], func(r Row) bool { return r.ID >= one.ID }) {
					rows = append(rows, one)
					model[one.ID] = one
				}
			}
			snapshot = table.With(snapshot, rows)
			if !maps.Equal(rowsOf(before), kept) {
				t.Fatal("the snapshot before has changed")
			}
		}
		want := map[int64]string{}
		for id, r := range model {
			want[id] = text(r)
		}
		if got := rowsOf(snapshot); !maps.Equal(got, want) || snapshot.Len() != len(want) {
			t.Fatalf("%d rows, want %d", len(got), len(want))
		}
		built := NewTable().Build(ascending(model))
		if !maps.Equal(rowsOf(built), want) {
			t.Fatal("what is built differs")
		}
		for _, c := range snapshot.chunks {
			if c.len() > 2*chunkSize || c.len() == 0 {
				t.Fatalf("a chunk of %d", c.len())
			}
		}
	})
}

// The database and Go pack identically: each word has its own number and is unpacked again.
func TestFactsKeepTheirWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := map[string]string{}
		for _, f := range facts {
			if word := rapid.SampledFrom(append(slices.Clone(f.words), "")).Draw(t, f.column); word != "" {
				words[f.column] = word
			}
		}
		packed := FactsOf(words)
		for _, f := range facts {
			word, null, known := packed.Word(f.column)
			if want, given := words[f.column]; word != want || null == given || !known {
				t.Fatalf("%s: got %q %v %v, want %q", f.column, word, null, known, want)
			}
		}
		got := packed.Attr().Words()
		if got.IssueType != words["issue_type"] || got.Severity != words["severity"] || got.Exposure != strings.ReplaceAll(words["exposure"], "unknown", "") {
			t.Fatalf("got %+v of %v", got, words)
		}
	})
	for state, want := range map[string]string{"confirmed_valid": "valid", "confirmed_invalid": "invalid", "validation_error": "error", "no_validator": ""} {
		if got := FactsOf(map[string]string{"validation_state": state}).Attr().Words().Validation; got != want {
			t.Errorf("%s is %q for reports, want %q", state, got, want)
		}
	}
	last := facts[len(facts)-1]
	if shiftOf[last.column]+last.bits > 50 {
		t.Error("the facts and the position of a row are one number of 60 bits")
	}
	for _, f := range facts {
		if f.bits > 1 && int(f.other()) <= len(f.words) {
			t.Errorf("%s has %d words for %d bits", f.column, len(f.words), f.bits)
		}
		for _, word := range f.words {
			packed := FactsOf(map[string]string{f.column: word})
			if f.bits > 1 && !strings.Contains(FactsSQL(), fmt.Sprintf("WHEN '%s' THEN %d", word, packed)) || !Knows(f.column, word) {
				t.Errorf("%s %s is %d", f.column, word, packed)
			}
		}
		if _, null, known := FactsOf(map[string]string{f.column: "something else"}).Word(f.column); f.bits > 1 && (null || known) {
			t.Errorf("%s: another word is not told from the others", f.column)
		}
	}
	for word, status := range statuses {
		if !strings.Contains(TransitionSQL(), fmt.Sprintf("WHEN '%s' THEN %d", word, status)) {
			t.Errorf("no %s in %s", word, TransitionSQL())
		}
		if open := word == lifecycle.Open || word == lifecycle.Reviewing || word == lifecycle.Fixing; status.Open() != open {
			t.Errorf("%s is open: %v", word, status.Open())
		}
	}
	if got := TransitionOf(1_777_890_030<<3 | int64(Fixed)); got != (Transition{1_777_890_030, Fixed}) {
		t.Errorf("got %v", got)
	}
}

// Ages at the ends of many short buckets over a long time are computed in several passes, with the same results as one
// by one.
func TestMedianAgesInParts(t *testing.T) {
	table := NewTable()
	const begin = 1_600_000_000 / day * day
	n := int64(0)
	snapshot := table.Build(func() (Row, bool) {
		n++
		at := uint32(begin + n*n*977%(4000*day))
		return Row{ID: n, Place: table.Place(1, "main"), Transitions: []Transition{{at, Open}, {at + uint32(n)*day, Fixed}}}, n <= 3000
	})
	all := new([Attrs]bool)
	all[0] = true
	f, one := &Filter{Places: []bool{true}, Attrs: all}, &Grouping{Groups: 1}
	var ends []uint32
	for i := range uint32(2000) {
		ends = append(ends, begin+2*i*day)
	}
	ends[1999] += 7 * 60 * 60
	if snapshot.daysUntil(ends[1999])*len(ends) < maxCells {
		t.Fatal("one pass is enough: the test has lost its way")
	}
	together := snapshot.MedianAges(f, one, ends)[0]
	for i, end := range ends {
		if alone := snapshot.MedianAges(f, one, []uint32{end})[0][0]; alone != together[i] {
			t.Fatalf("at end %d: %d alone, %d together", i, alone, together[i])
		}
	}
}

// BenchmarkMedianAges: 26 weekly buckets over a million findings.
func BenchmarkMedianAges(b *testing.B) {
	table := NewTable()
	const begin = 1_700_000_000
	n := int64(0)
	snapshot := table.Build(func() (Row, bool) {
		n++
		r := Row{ID: n, Place: table.Place(n/500%200, "main"), Attr: Words{IssueType: "sast"}.Attr()}
		r.Transitions = []Transition{{uint32(begin + n*60), Open}}
		if n%2 == 0 {
			r.Transitions = append(r.Transitions, Transition{uint32(begin + n*60 + n%180*day), Fixed})
		}
		return r, n <= 1_000_000
	})
	places := make([]bool, 200)
	for i := range places {
		places[i] = true
	}
	all := new([Attrs]bool)
	for i := range all {
		all[i] = true
	}
	f, one := &Filter{Places: places, Attrs: all}, &Grouping{Groups: 1}
	var ends []uint32
	for i := range uint32(26) {
		ends = append(ends, (begin/day+520+i*7)*day)
	}
	for b.Loop() {
		snapshot.MedianAges(f, one, ends)
	}
}
