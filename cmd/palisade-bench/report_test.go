package main

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMedian(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sample(rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 20).Draw(t, "sample"))
		before := slices.Clone(s)
		median := s.median()
		if !slices.Equal(s, before) {
			t.Fatal("the rounds changed their order")
		}
		below, above := 0, 0
		for _, v := range s {
			if v < median {
				below++
			}
			if v > median {
				above++
			}
		}
		if below > len(s)/2 || above > len(s)/2 {
			t.Fatalf("median %v of %v: %d below, %d above", median, s, below, above)
		}
	})
	if got := (sample{}).median(); got != 0 {
		t.Errorf("median of nothing: got %v", got)
	}
}

func TestRatioIsRoundByRound(t *testing.T) {
	// The machine was half as fast in the second round; the ratio is unaffected.
	if got := (sample{10, 20, 10}).over(sample{5, 10, 5}); !slices.Equal(got, sample{2, 2, 2}) {
		t.Errorf("got %v", got)
	}
	if got := (sample{10, 20}).over(sample{0, 10}); !slices.Equal(got, sample{2}) {
		t.Errorf("a round of nothing: got %v", got)
	}
}

// TestAlways: a limit for every round is judged by the worst round.
func TestAlways(t *testing.T) {
	r := row{value: sample{0, 3, 0}, bar: within(0, " ")}
	if r.missed() {
		t.Error("the median counts")
	}
	if r.bar = always(0, " "); !r.missed() {
		t.Error("errors in one round of three are none")
	}
	if r.value = (sample{0, 0, 0}); r.missed() {
		t.Error("no errors are too many")
	}
}

func TestTableJudges(t *testing.T) {
	for _, c := range []struct {
		name  string
		bar   *bar
		ratio sample
		ok    bool
	}{
		{"at most", atMost(25), sample{25}, true},
		{"above", atMost(25), sample{25.1}, false},
		{"the median counts", atMost(25), sample{90, 1, 1}, true},
		{"at least", atLeast(0.25), sample{0.25}, true},
		{"below", atLeast(0.25), sample{0.24}, false},
		{"not measured", atMost(25), nil, false},
		{"no bar", nil, sample{1e9}, true},
		{"a value within its bar", within(1, "ms"), nil, true},
		{"an exponent", atMostPower(0.15), sample{0.1}, true},
		{"a steep one", atMostPower(0.15), sample{0.2}, false},
		{"a value above it", within(0.9, "ms"), sample{0.1}, false},
	} {
		var table bytes.Buffer
		ok, err := writeTable(&table, "title", []row{{what: c.name, value: sample{1}, unit: cpuMicros, ratio: c.ratio, base: "base", bar: c.bar}})
		if err != nil || ok != c.ok {
			t.Errorf("%s: got %v %v, want %v", c.name, ok, err, c.ok)
		}
		if got := strings.Contains(table.String(), "MISS"); got == c.ok {
			t.Errorf("%s: MISS shown: %v\n%s", c.name, got, &table)
		}
	}
}

func TestExponent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, k := rapid.Float64Range(0.1, 1e4).Draw(t, "a"), rapid.Float64Range(-1, 2).Draw(t, "k")
		sizes := []float64{1e4, 1e5, 1e6}
		costs := sample{}
		for _, size := range sizes {
			costs = append(costs, a*math.Pow(size, k))
		}
		if got, ok := exponent(sizes, costs); !ok || math.Abs(got-k) > 1e-9 {
			t.Fatalf("got %v %v, want %v", got, ok, k)
		}
	})
	if _, ok := exponent([]float64{1e4}, sample{1}); ok {
		t.Error("one size: got an exponent")
	}
}
