package columns

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The first findings of any order, page by page, are all matching findings in that order, and numbers count them.
func TestFirstAndCountEqualModel(t *testing.T) {
	kinds := []Facts{
		FactsOf(map[string]string{"severity": "low", "issue_type": "sca"}), FactsOf(map[string]string{"severity": "critical", "issue_type": "sca"}),
		FactsOf(map[string]string{"severity": "high", "issue_type": "sca"}),
	}
	rapid.Check(t, func(t *rapid.T) {
		table, model := NewTable(), map[int64]Row{}
		for i := range uint32(4) {
			table.Place(int64(i), "main")
			table.Rule(int64(i))
		}
		for id := range int64(rapid.IntRange(0, 300).Draw(t, "findings")) {
			n := rapid.Uint32().Draw(t, "row")
			kind, attr := table.Kind(kinds[n%3])
			model[id+1] = Row{ID: id + 1, Place: n / 3 % 4, Rule: n / 12 % 4, Kind: kind, Attr: attr, Since: int64(n / 48 % 9)}
		}
		s := table.Build(ascending(model))
		flags := func(name string, n int) []bool {
			list := make([]bool, n)
			for i := range list {
				list[i] = rapid.IntRange(0, 3).Draw(t, name) > 0
			}
			return list
		}
		f := &Filter{Places: flags("places", 4)}
		if rapid.Bool().Draw(t, "limited") {
			f.Rules, f.Kinds = flags("rules", 4), flags("kinds", len(table.kinds))
			f.Since, f.Until = rapid.Int64Range(0, 4).Draw(t, "since"), rapid.Int64Range(4, 9).Draw(t, "until")
		}
		some := rapid.SliceOfNDistinct(rapid.Int64Range(1, 310), 0, 50, rapid.ID[int64])
		if rapid.Bool().Draw(t, "by id") {
			f.IDs = append([]int64{}, slices.Sorted(slices.Values(some.Draw(t, "ids")))...)
		}
		if rapid.Bool().Draw(t, "except") {
			f.Except = slices.Sorted(slices.Values(some.Draw(t, "except ids")))
		}
		o := &Order{OldestFirst: rapid.Bool().Draw(t, "oldest first")}
		if rapid.Bool().Draw(t, "ranked") {
			o.Place, o.Kind = []int32{3, 1, 1, 0}, []int32{0, -5, 9}[:len(table.kinds)]
		}
		var want []Key
		numbers := Numbers{make([]int32, 4), make([]int32, 4), make([]int32, len(table.kinds))}
		for id, r := range model {
			if !f.Places[r.Place] || f.Rules != nil && !f.Rules[r.Rule] || f.Kinds != nil && !f.Kinds[r.Kind] || r.Since < f.Since ||
				f.Until != 0 && r.Since > f.Until || f.IDs != nil && !slices.Contains(f.IDs, id) || slices.Contains(f.Except, id) {
				continue
			}
			key := Key{Since: r.Since, ID: id}
			if o.Place != nil {
				key.Rank = o.Place[r.Place] + o.Kind[r.Kind]
			}
			want = append(want, key)
			numbers.Places[r.Place]++
			numbers.Rules[r.Rule]++
			numbers.Kinds[r.Kind]++
		}
		slices.SortFunc(want, o.compare)
		got, size := []Key{}, rapid.IntRange(1, 40).Draw(t, "size")
		for {
			page := s.First(f, o, size)
			if got = append(got, page...); len(page) < size {
				break
			}
			last := page[size-1]
			o.After = &last
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
		o.After, o.Skip = nil, rapid.IntRange(0, 310).Draw(t, "skip")
		if jumped, rest := s.First(f, o, size), want[min(o.Skip, len(want)):]; !slices.Equal(jumped, rest[:min(size, len(rest))]) {
			t.Fatalf("after %d: got %v\nwant %v", o.Skip, jumped, rest)
		}
		counted, groups, places := s.Count(f), s.ByRule(f), s.ByPlace(f)
		if !slices.Equal(counted.Places, numbers.Places) || !slices.Equal(counted.Rules, numbers.Rules) || !slices.Equal(counted.Kinds, numbers.Kinds) {
			t.Fatalf("got %v, want %v", counted, numbers)
		}
		all := func(g Group) (n int32) {
			for _, of := range g.Severities {
				n += of
			}
			return n
		}
		for place, n := range numbers.Places {
			if all(places[place]) != n {
				t.Fatalf("place %d: %v, want %d", place, places[place], n)
			}
		}
		for rule, n := range numbers.Rules {
			if all := all(groups[rule]); all != n || groups[rule].Has("sca") != (n > 0) || groups[rule].Has("sast") {
				t.Fatalf("rule %d: %v, want %d", rule, groups[rule], n)
			}
		}
	})
}

// manyFindings returns a snapshot of findings with random times and ranks, and their keys in order.
func manyFindings(n int, o *Order) (*Snapshot, []Key) {
	random := rand.New(rand.NewPCG(1, 2))
	table := NewTable()
	for i := range uint32(4) {
		table.Place(int64(i), "main")
		table.Rule(int64(i))
	}
	kind, attr := table.Kind(FactsOf(map[string]string{"severity": "low", "issue_type": "sca"}))
	var all []Key
	s := table.Build(func() (Row, bool) {
		id := int64(len(all) + 1)
		row := Row{ID: id, Place: random.Uint32N(4), Rule: random.Uint32N(4), Kind: kind, Attr: attr, Since: id/3 + random.Int64N(1000)}
		key := Key{Since: row.Since, ID: id}
		if o.Place != nil {
			key.Rank = o.Place[row.Place]
		}
		if len(all) == n {
			return Row{}, false
		}
		all = append(all, key)
		return row, true
	})
	slices.SortFunc(all, o.compare)
	return s, all
}

// A jump far into a list finds the same as reading all of it, also where the sample encloses too few findings.
func TestFarJumps(t *testing.T) {
	f := &Filter{Places: []bool{true, true, true, true}}
	const total = 40_000
	for _, o := range []*Order{{}, {OldestFirst: true}, {Place: []int32{3, 1, 1, 0}}} {
		s, want := manyFindings(total, o)
		for _, after := range []int{-1, 777} {
			if o.After = nil; after >= 0 {
				o.After = &want[after]
			}
			for _, n := range []int{1, 101, 3000} {
				for _, o.Skip = range []int{farJump, farJump + 1, 12_345, total / 2, total - n - 1, total - 1, total, total + 100_000} {
					rest := want[min(after+1+o.Skip, total):]
					if got := s.First(f, o, n); !slices.Equal(got, rest[:min(n, len(rest))]) {
						t.Fatalf("%+v, %d findings: got %d from %v", o, n, len(got), got[:min(1, len(got))])
					}
				}
			}
		}
		o.Skip, o.After = total/2, nil
		for _, bounds := range [][2]*Key{{&want[total/2+1], nil}, {&want[total/2-10], &want[total/2+1]}} {
			if keys, enclosed := s.between(f, o, bounds[0], bounds[1], 2); enclosed {
				t.Errorf("bounds that leave out what is wanted: %v", keys)
			}
		}
	}
}

// BenchmarkFarJump: a page of a list of a million findings.
func BenchmarkFarJump(b *testing.B) {
	o := &Order{}
	s, _ := manyFindings(1_000_000, o)
	f := &Filter{Places: []bool{true, true, true, true}}
	for _, o.Skip = range []int{0, 100_000, 500_000, 999_000} {
		b.Run(fmt.Sprint(o.Skip), func(b *testing.B) {
			for b.Loop() {
				s.First(f, o, 101)
			}
		})
	}
}
