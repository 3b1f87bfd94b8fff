package feed

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// history is a model of PostgreSQL: transactions get ascending numbers and end in any order.
type history struct {
	next  int64
	open  []int64
	ended []int64
}

func (h *history) snapshot(t *rapid.T) snapshot {
	// As PostgreSQL does, the snapshot ends behind the last ended transaction: open ones may have higher numbers.
	last := int64(0)
	if len(h.ended) > 0 {
		last = slices.Max(h.ended)
	}
	var list []string
	for _, tx := range h.open {
		if tx <= last {
			list = append(list, fmt.Sprint(tx))
		}
	}
	s, err := parseSnapshot(fmt.Sprintf("1:%d:%s", last+1, strings.Join(list, ",")))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// between lists the transactions that source.numbered selects.
func (h *history) between(seen, target snapshot) (list []int64) {
	for _, tx := range h.ended {
		_, open := slices.BinarySearch(target.open, tx)
		if slices.Contains(seen.ended(target), tx) || tx >= seen.next && tx < target.next && !open {
			list = append(list, tx)
		}
	}
	return list
}

// Each transaction is between exactly one reading and the next, however late it ends.
func TestSnapshotsSkipNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{next: 1}
		var seen snapshot
		var delivered []int64
		read := func() {
			target := h.snapshot(t)
			if !target.contains(seen) {
				t.Fatalf("%v is later than %v and does not contain it", target, seen)
			}
			if seen.contains(target) != seen.equal(target) {
				t.Fatalf("%v contains the later %v", seen, target)
			}
			delivered = append(delivered, h.between(seen, target)...)
			seen = target
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch n := rapid.IntRange(0, 3).Draw(t, "step"); {
			case n <= 1:
				h.open = append(h.open, h.next)
				h.next++
			case n == 2 && len(h.open) > 0:
				i := rapid.IntRange(0, len(h.open)-1).Draw(t, "which")
				h.ended = append(h.ended, h.open[i])
				h.open = slices.Delete(h.open, i, i+1)
			default:
				read()
			}
		}
		read()
		slices.Sort(h.ended)
		slices.Sort(delivered)
		if !slices.Equal(h.ended, delivered) {
			t.Fatalf("delivered %v, want %v", delivered, h.ended)
		}
	})
}

func TestParseSnapshot(t *testing.T) {
	got, err := parseSnapshot("730:738:737,730")
	if err != nil || !got.equal(snapshot{next: 738, open: []int64{730, 737}}) {
		t.Errorf("got %v %v", got, err)
	}
	for _, text := range []string{"", "1:2", "1:x:", "1:5:a", "1:2:3:4"} {
		if _, err := parseSnapshot(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
