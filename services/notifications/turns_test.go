package notifications

import (
	"testing"

	"pgregory.net/rapid"
)

// For any sequence of takes and releases, the limits hold, a receiver without a slot never waits while one is free, and
// the next slot goes to a deployment with the fewest.
func TestSlotsAreShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSlots(rapid.IntRange(1, 70).Draw(t, "total"), rapid.IntRange(1, 10).Draw(t, "of a rule"))
		var waiting, taken []receiver
		for d := range int64(rapid.IntRange(1, 8).Draw(t, "deployments")) {
			for r := range int64(rapid.IntRange(1, 12).Draw(t, "rules")) {
				waiting = append(waiting, receiver{d + 1, 100*d + r + 1})
			}
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if len(taken) > 0 && rapid.IntRange(0, 3).Draw(t, "gives back") == 0 {
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
				s.release(taken[i])
				taken = append(taken[:i], taken[i+1:]...)
				continue
			}
			among := rapid.SliceOfNDistinct(rapid.SampledFrom(waiting), 1, len(waiting), rapid.ID).Draw(t, "among")
			i, ok := s.choose(among)
			fewest := s.total
			for _, r := range among {
				if has := s.ofDeployment[r.deploymentID]; has < s.total-s.used && s.rules[r.ruleID] < s.ofRule {
					fewest = min(fewest, has)
				}
			}
			if ok != (fewest < s.total) {
				t.Fatalf("chosen: %v, the fewest slots of one that may take another: %d", ok, fewest)
			}
			if !ok {
				continue
			}
			if has := s.ofDeployment[among[i].deploymentID]; has != fewest {
				t.Fatalf("one with %d slots goes before one with %d", has, fewest)
			}
			s.take(among[i])
			taken = append(taken, among[i])
			if s.used != len(taken) || s.used > s.total || s.rules[among[i].ruleID] > s.ofRule {
				t.Fatalf("%d slots are used of %d, %d of the rule", s.used, s.total, s.rules[among[i].ruleID])
			}
		}
	})
}

// A single deployment fills half of the slots, and a later one finds slots at once.
func TestOneAloneFillsHalf(t *testing.T) {
	s := newSlots(maxFlights, maxFlightsOfRule)
	fill := func(deploymentID int64) (n int) {
		var rules []receiver
		for r := range int64(100) {
			rules = append(rules, receiver{deploymentID, 1000*deploymentID + r})
		}
		for {
			i, ok := s.choose(rules)
			if !ok {
				return n
			}
			s.take(rules[i])
			n++
		}
	}
	for i, want := range []int{32, 16, 8, 4, 2, 1} {
		if got := fill(int64(i + 1)); got != want {
			t.Errorf("deployment %d got %d slots, want %d", i+1, got, want)
		}
	}
}

// Fast receivers take turns, within and among deployments, for any number of rules.
func TestTurns(t *testing.T) {
	s := newSlots(8, 2)
	waiting := []receiver{{1, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 5}, {3, 6}}
	got := map[receiver]int{}
	for range 18 * 10 {
		i, ok := s.choose(waiting)
		if !ok {
			t.Fatal("nobody may take a slot")
		}
		got[waiting[i]]++
		s.take(waiting[i])
		s.release(waiting[i])
	}
	for r, want := range map[receiver]int{{1, 1}: 20, {1, 2}: 20, {1, 3}: 20, {2, 4}: 60, {3, 5}: 30, {3, 6}: 30} {
		if got[r] != want {
			t.Errorf("%v got %d turns, want %d", r, got[r], want)
		}
	}
}
