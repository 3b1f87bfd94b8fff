package identity

import (
	"slices"
	"strings"
	"testing"
)

// world is a report of four results after an edit, and the list of a correct server: findings 1 to 3 belong to the old
// problems, 9 to a new one; 4 is fixed, because its problem is gone; problem 5 was not covered.
type world struct {
	problems []Problem
	truth    []Truth
	report   *Report
	listed   []Finding
}

func newWorld() *world {
	at := func(line int) Place { return Place{"a.go", line} }
	decision := func(note string) *Decision { return &Decision{"ignored", note} }
	result := func(line int) Result { return Result{Rule: "r", Place: at(line), Column: 2, Message: "m"} }
	finding := func(id int64, line int, status, note string) Finding {
		return Finding{ID: id, Rule: "r", Place: at(line), Column: 2, Message: "m", Status: status, Note: note}
	}
	return &world{
		problems: []Problem{
			{Finding: 1, Decision: decision("one")}, {Finding: 2, Decision: decision("two")}, {Finding: 3}, {Finding: 4, Decision: decision("four")},
			{Finding: 5, Decision: decision("five")},
		},
		truth: []Truth{
			{State: Here, Result: 0, Touched: true}, {State: Here, Result: 1, Touched: true}, {State: Here, Result: 2, Touched: true},
			{State: Gone, Touched: true}, {State: Unseen, Touched: true},
		},
		report: &Report{Results: []Result{result(10), result(20), result(30), result(40)}},
		listed: []Finding{
			finding(1, 10, "ignored", "one"), finding(2, 20, "ignored", "two"), finding(3, 30, "open", ""), finding(4, 7, "fixed", ""),
			finding(5, 77, "ignored", "five"), finding(9, 40, "open", ""),
		},
	}
}

func (w *world) finding(id int64) *Finding {
	return &w.listed[slices.IndexFunc(w.listed, func(f Finding) bool { return f.ID == id })]
}

func (w *world) remove(id int64) {
	w.listed = slices.DeleteFunc(w.listed, func(f Finding) bool { return f.ID == id })
}

// TestEveryCounterCounts: each counter counts its own fault and nothing else, on a server with exactly one fault.
func TestEveryCounterCounts(t *testing.T) {
	good := Counts{Findings: 5, Touched: 3, Kept: 3}
	cases := []struct {
		name string
		err  func(*world)
		want func(*Counts)
		// notOld is true for a fault that is not an old problem's.
		notOld bool
	}{
		{"no fault", func(*world) {}, func(*Counts) {}, false},
		{"two decisions swapped", func(w *world) {
			w.finding(1).Place, w.finding(2).Place = w.finding(2).Place, w.finding(1).Place
		}, func(c *Counts) { c.Kept, c.WrongMerges, c.WrongDecisions, c.AsNew = 1, 2, 2, 2 }, false},
		{"an undecided finding on a new problem", func(w *world) {
			w.finding(3).Place, w.finding(9).Place = w.finding(9).Place, w.finding(3).Place
		}, func(c *Counts) { c.WrongMerges, c.AsNew = 1, 1 }, false},
		{"a new finding for an old problem, the old one fixed", func(w *world) {
			w.finding(1).Status = "fixed"
			w.listed = append(w.listed, Finding{ID: 10, Rule: "r", Place: Place{"a.go", 10}, Status: "open"})
		}, func(c *Counts) { c.Kept, c.AsNew = 2, 1 }, false},
		{"the decision forgotten", func(w *world) { w.finding(2).Status = "open" }, func(c *Counts) { c.Kept, c.WrongReopens = 2, 1 }, false},
		{"the note of another", func(w *world) { w.finding(2).Note = "one" }, func(c *Counts) { c.Kept = 2 }, false},
		{"fixed although it is there", func(w *world) { w.finding(1).Status = "fixed" }, func(c *Counts) { c.Kept, c.WrongCloses = 2, 1 }, false},
		{"removed although it is there", func(w *world) { w.remove(1) }, func(c *Counts) { c.Kept, c.WrongCloses = 2, 1 }, false},
		{"undecided, and fixed although it is there", func(w *world) { w.finding(3).Status = "fixed" }, func(c *Counts) { c.WrongCloses = 1 }, false},
		{"fixed although nobody looked", func(w *world) { w.finding(5).Status = "fixed" }, func(c *Counts) { c.Kept, c.WrongCloses = 2, 1 }, false},
		{"removed although nobody looked", func(w *world) { w.remove(5) }, func(c *Counts) { c.Kept, c.WrongCloses = 2, 1 }, false},
		{"not looked at, and on another problem", func(w *world) {
			w.finding(5).Place, w.finding(9).Place = Place{"a.go", 40}, Place{"a.go", 41}
			w.remove(9)
		}, func(c *Counts) { c.Kept, c.WrongMerges, c.WrongDecisions = 2, 1, 1 }, false},
		{"open although it is gone", func(w *world) { w.finding(4).Status, w.finding(4).Note = "ignored", "four" }, func(c *Counts) { c.MissedCloses = 1 }, false},
		{"gone, and on a copy", func(w *world) {
			*w.finding(4) = Finding{ID: 4, Rule: "r", Place: Place{"a.go", 40}, Column: 2, Message: "m", Status: "ignored", Note: "four"}
			w.remove(9)
		}, func(c *Counts) { c.WrongMerges, c.WrongDecisions = 1, 1 }, false},
		{"closed before, gone, and reopened", func(w *world) {
			w.problems[3].Closed = true
			w.finding(4).Status = "ignored"
		}, func(c *Counts) { c.MissedCloses, c.WrongReopens = 1, 1 }, false},
		{"closed before, there again, and reopened: right", func(w *world) { w.problems[0].Closed = true }, func(*Counts) {}, false},
		{"on its copy", func(w *world) {
			w.truth[0].Ambiguous = []int{3}
			w.finding(1).Place, w.finding(9).Place = w.finding(9).Place, w.finding(1).Place
		}, func(*Counts) {}, false},
		{"on a copy of another one", func(w *world) {
			w.truth[1].Ambiguous = []int{3}
			w.finding(1).Place, w.finding(9).Place = w.finding(9).Place, w.finding(1).Place
		}, func(c *Counts) { c.Kept, c.WrongMerges, c.WrongDecisions, c.AsNew = 2, 1, 1, 1 }, false},
		{"a new finding without a problem", func(w *world) {
			w.listed = append(w.listed, Finding{ID: 11, Rule: "r", Place: Place{"a.go", 99}, Status: "open"})
		}, func(c *Counts) { c.MissedCloses = 1 }, true},
		{"a second finding for one problem", func(w *world) {
			w.listed = append(w.listed, Finding{ID: 11, Rule: "r", Place: Place{"a.go", 10}, Column: 2, Message: "m", Status: "open"})
		}, func(c *Counts) { c.MissedCloses = 1 }, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w, want := newWorld(), good
			c.err(w)
			c.want(&want)
			got, faults := Count(w.problems, w.truth, w.report, w.listed)
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if wrong := got != good && !c.notOld; wrong != (len(faults) > 0) {
				t.Errorf("faults: %+v", faults)
			}
		})
	}
}

// TestMatchRenamedRules: for a renamed rule, a finding with the present name is preferred over one with the former
// name.
func TestMatchRenamedRules(t *testing.T) {
	report := &Report{Results: []Result{{Rule: "now", Place: Place{"a.go", 1}}}, Aliases: map[string]string{"now": "former"}}
	old, fresh := Finding{ID: 1, Rule: "former", Place: Place{"a.go", 1}, Status: "open"}, Finding{ID: 2, Rule: "now", Place: Place{"a.go", 1}, Status: "open"}
	if got := MatchFindings(report, []Finding{old}); got[0] != 1 {
		t.Errorf("the former name alone: got %v", got)
	}
	if got := MatchFindings(report, []Finding{old, fresh}); got[0] != 2 {
		t.Errorf("both names: got %v", got)
	}
}

// TestBars: each limit is exceeded just above it.
func TestBars(t *testing.T) {
	cases := []struct {
		counts Counts
		bar    int
		missed string
	}{
		{Counts{Findings: 1000, Touched: 100, Kept: 99}, 990, ""},
		{Counts{Findings: 1000, Touched: 100, Kept: 98}, 990, "kept"},
		{Counts{Findings: 1000, Touched: 100, Kept: 95}, 950, ""},
		{Counts{Findings: 1000, Touched: 100, Kept: 94}, 950, "kept"},
		{Counts{Findings: 1000, Touched: 100}, 0, ""},
		{Counts{Findings: 1000, WrongMerges: 1}, 0, ""},
		{Counts{Findings: 999, WrongMerges: 1}, 0, ""},
		{Counts{Findings: 999, WrongMerges: 2}, 0, "merges"},
		{Counts{Findings: 1999, WrongMerges: 2}, 0, "merges"},
		{Counts{Findings: 2000, WrongMerges: 2}, 0, ""},
		{Counts{Findings: 1000, WrongCloses: 1}, 0, "closes"},
		{Counts{Findings: 1000, WrongReopens: 1}, 0, "reopens"},
		{Counts{Findings: 1000, AsNew: 5, MissedCloses: 5}, 0, ""},
	}
	for _, c := range cases {
		o := Outcome{Edit: Edit{Name: "e", Bar: c.bar}, Source: "s", Counts: c.counts}
		if got := strings.Join(o.Missed(), " "); got != c.missed {
			t.Errorf("%+v against %d: missed %q, want %q", c.counts, c.bar, got, c.missed)
		}
		var out strings.Builder
		ok, err := WriteTable(&out, []Outcome{o})
		if err != nil || ok != (c.missed == "") || ok == strings.Contains(out.String(), "MISS: "+c.missed) && c.missed != "" {
			t.Errorf("%+v: ok is %v, %v\n%s", c.counts, ok, err, out.String())
		}
	}
}

func TestTheTableSumsUp(t *testing.T) {
	edit := Edit{Name: "e", Bar: 990}
	var out strings.Builder
	ok, err := WriteTable(&out, []Outcome{
		{Edit: edit, Source: "first", Counts: Counts{Findings: 10, Touched: 4, Kept: 4}},
		{Edit: edit, Source: "second", Scanned: true, Counts: Counts{Findings: 20, Touched: 4, Kept: 2, AsNew: 2}},
	})
	if err != nil || ok {
		t.Fatalf("ok is %v, %v", ok, err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"first | carried | 10 | 4 of 4, 100 %", "second | scanned | 20 | 2 of 4, 50 %", "**all** | | 30 | 6 of 8, 75 %"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
