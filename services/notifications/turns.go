package notifications

import "cmp"

// receiver is a rule of a deployment: where a message goes.
type receiver struct{ deploymentID, ruleID int64 }

// slots are places for messages that deployments, and the rules of each, take in turns. A deployment gets another one
// only while it has fewer than are free (the dynamic threshold of Choudhury and Hahne): one alone fills half, and
// whoever comes later finds some. Slots of messages that take long are not taken back, so the threshold is what keeps
// them from filling everything.
type slots struct {
	total, ofRule int

	used         int
	ofDeployment map[int64]int
	rules        map[int64]int

	// turn counts what was given; the others say when a deployment and a rule were given something last.
	turn                         uint64
	deploymentServed, ruleServed map[int64]uint64
}

// maxServed bounds the memory of who was served when. What is forgotten counts as served never, which is in nobody's
// way for long.
const maxServed = 10_000

func newSlots(total, ofRule int) *slots {
	return &slots{
		total: total, ofRule: ofRule, ofDeployment: map[int64]int{}, rules: map[int64]int{},
		deploymentServed: map[int64]uint64{}, ruleServed: map[int64]uint64{},
	}
}

// free says whether a receiver may take a slot now.
func (s *slots) free(r receiver) bool {
	return s.ofDeployment[r.deploymentID] < s.total-s.used && s.rules[r.ruleID] < s.ofRule
}

// choose returns which of the receivers takes the next slot: one of the deployment with the fewest slots, and in it the
// one with the fewest; among equals the one that was served the longest ago. ok is false when none may take one.
func (s *slots) choose(among []receiver) (index int, ok bool) {
	for i, r := range among {
		if s.free(r) && (!ok || s.before(r, among[index])) {
			index, ok = i, true
		}
	}
	return index, ok
}

func (s *slots) before(a, b receiver) bool {
	return cmp.Or(
		cmp.Compare(s.ofDeployment[a.deploymentID], s.ofDeployment[b.deploymentID]),
		cmp.Compare(s.deploymentServed[a.deploymentID], s.deploymentServed[b.deploymentID]),
		cmp.Compare(s.rules[a.ruleID], s.rules[b.ruleID]),
		cmp.Compare(s.ruleServed[a.ruleID], s.ruleServed[b.ruleID]),
	) < 0
}

func (s *slots) take(r receiver) {
	s.used++
	s.ofDeployment[r.deploymentID]++
	s.rules[r.ruleID]++
	s.serve(r)
}

// serve notes that a receiver had its turn, also when it had no use for it.
func (s *slots) serve(r receiver) {
	if len(s.ruleServed) > maxServed {
		clear(s.deploymentServed)
		clear(s.ruleServed)
	}
	s.turn++
	s.deploymentServed[r.deploymentID], s.ruleServed[r.ruleID] = s.turn, s.turn
}

func (s *slots) release(r receiver) {
	s.used--
	if s.ofDeployment[r.deploymentID]--; s.ofDeployment[r.deploymentID] == 0 {
		delete(s.ofDeployment, r.deploymentID)
	}
	if s.rules[r.ruleID]--; s.rules[r.ruleID] == 0 {
		delete(s.rules, r.ruleID)
	}
}
