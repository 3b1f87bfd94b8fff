package server

import "testing"

// ticks passes r the allocations of each tick in MiB, and returns the numbers of the ticks at which a release was due.
func ticks(r *idleDetector, allocated *uint64, mebibytes ...float64) []int {
	var due []int
	for i, n := range mebibytes {
		*allocated += uint64(n * (1 << 20))
		if r.due(*allocated) {
			due = append(due, i)
		}
	}
	return due
}

func TestMemoryIsReleasedAfterTheStart(t *testing.T) {
	var allocated uint64
	r := newIdleDetector()
	if got := ticks(r, &allocated, 40, 3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1); len(got) != 1 || got[0] != 6 {
		t.Errorf("a start that takes two ticks: releases %v, want one after five idle ticks", got)
	}
	allocated = 40 << 20
	r = newIdleDetector()
	r.last = allocated
	if got := ticks(r, &allocated, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1); len(got) != 1 || got[0] != 0 {
		t.Errorf("a start that has ended: releases %v, want one at once", got)
	}
}

func TestMemoryIsReleasedAfterWork(t *testing.T) {
	for name, c := range map[string]struct {
		mebibytes []float64
		want      []int
	}{
		"no work":           {[]float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, nil},
		"little work":       {[]float64{10, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, nil},
		"an import":         {[]float64{300, 200, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, []int{6}},
		"requests go on":    {[]float64{30, 0.1, 0.1, 0.1, 0.1, 2, 0.1, 0.1, 0.1, 0.1, 2, 0.1}, nil},
		"two loads":         {[]float64{30, 0, 0, 0, 0, 0, 30, 0, 0, 0, 0, 0}, []int{5, 11}},
		"many small things": {[]float64{0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9}, []int{17}},
	} {
		t.Run(name, func(t *testing.T) {
			allocated := uint64(40 << 20)
			r := newIdleDetector()
			r.last = allocated
			if got := ticks(r, &allocated, 0); len(got) != 1 {
				t.Fatal("the start has not ended")
			}
			got := ticks(r, &allocated, c.mebibytes...)
			if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] || len(got) > 1 && got[1] != c.want[1] {
				t.Errorf("releases at %v, want %v", got, c.want)
			}
		})
	}
}
