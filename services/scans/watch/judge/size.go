package judge

import (
	"slices"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

const (
	// window is how many days with scans before the last one are usual, and minWindow how many of them have to say a
	// number.
	window, minWindow = 10, 3
	// unknown is a number that a scan does not say.
	unknown = -1
)

// Size is a number of the last successful scan, and the median of those before; -1 when unknown.
type Size struct{ Now, Before int64 }

// Sizes are the numbers of an analysis.
type Sizes struct{ Results, Files, Rules Size }

// SizesOf returns the numbers of an analysis.
func SizesOf(h *storev1.Freshness) Sizes {
	return Sizes{
		sizeOf(h, (*storev1.FreshnessDay).GetResults), sizeOf(h, (*storev1.FreshnessDay).GetFiles), sizeOf(h, (*storev1.FreshnessDay).GetRules),
	}
}

func sizeOf(h *storev1.Freshness, number func(*storev1.FreshnessDay) int64) Size {
	n := len(h.GetDays())
	if n == 0 {
		return Size{unknown, unknown}
	}
	s := Size{Now: number(h.GetDays()[n-1]), Before: unknown}
	var before []int64
	for _, d := range h.GetDays()[max(0, n-1-window) : n-1] {
		if v := number(d); v >= 0 {
			before = append(before, v)
		}
	}
	if len(before) >= minWindow {
		slices.Sort(before)
		s.Before = before[(len(before)-1)/2]
	}
	return s
}

// dropped reports whether a number dropped sharply: from ten or more to none, or from many to less than a share of
// them, in percent.
func (s Size) dropped(many, share int64) bool {
	if s.Now < 0 || s.Before < 0 {
		return false
	}
	return s.Now == 0 && s.Before >= 10 || s.Before >= many && s.Now*100 < s.Before*share
}

// Drop is a number that dropped sharply.
type Drop struct {
	What string
	Size
}

// Drops returns what dropped sharply. The limits of results are the default limits from which closes are held.
func Drops(h *storev1.Freshness) (drops []Drop) {
	s := SizesOf(h)
	for _, d := range []struct {
		Drop
		many, share int64
	}{{Drop{"results", s.Results}, 50, 40}, {Drop{"files", s.Files}, 20, 50}, {Drop{"rules", s.Rules}, 20, 50}} {
		if d.dropped(d.many, d.share) {
			drops = append(drops, d.Drop)
		}
	}
	return drops
}
