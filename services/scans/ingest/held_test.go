package ingest

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
)

// Held closes are stored without loss.
func TestHoldIsStored(t *testing.T) {
	ids := rapid.Map(rapid.SliceOfDistinct(rapid.Int64Range(1, 1<<40), rapid.ID[int64]), func(ids []int64) []int64 { return slices.Sorted(slices.Values(ids)) })
	rapid.Check(t, func(t *rapid.T) {
		all := ids.Draw(t, "ids")
		h := &hold{}
		for n, f := range []decision{goneReport, goneScanned, ruleGone} {
			var some []int64
			for _, id := range all {
				if int(id%3) == n {
					some = append(some, id)
				}
			}
			h.add(f, some)
		}
		h.rejected = slices.DeleteFunc(slices.Clone(all), func(id int64) bool { return id%2 == 0 })
		h.leave(func(id int64) bool { return id%5 == 0 })
		content, err := h.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeHold(&ent.HeldClose{Content: content})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.waiting, h.waiting) || !slices.Equal(got.left, h.left) || !slices.Equal(got.rejected, h.rejected) {
			t.Fatalf("waiting %v, left %v, rejected %v; want %v, %v, %v", got.waiting, got.left, got.rejected, h.waiting, h.left, h.rejected)
		}
		for n, d := range h.decisions {
			if got.decisions[n].decision != d.decision || !slices.Equal(got.decisions[n].ids, d.ids) {
				t.Fatalf("decision %v, want %v", got.decisions[n], d)
			}
		}
	})
}

// A hold of 300,000 findings takes little space.
func TestLargeHoldIsSmall(t *testing.T) {
	ids := make([]int64, 300_000)
	for n := range ids {
		ids[n] = int64(3 * n)
	}
	h := &hold{}
	h.add(goneReport, ids)
	content, err := h.encode()
	if err != nil || len(content) > 100_000 {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}
