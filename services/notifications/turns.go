package notifications

import "cmp"

// receiver is a rule of a deployment.
type receiver struct{ deploymentID, ruleID int64 }

// slots is a fair pool of message slots. Deployments, and the rules of each, take turns. A deployment gets another slot
// only if it has fewer than are free (dynamic threshold, Choudhury and Hahne): a single deployment fills half, and
// later ones find free slots. Slots of slow messages cannot be taken back, so only the threshold keeps them from
// filling the pool.
type slots struct {
	total, ofRule int

	used         int
	ofDeployment map[int64]int
	rules        map[int64]int

	// turn counts the assigned slots. The maps hold the last turn of each deployment and rule.
	turn                         uint64
	deploymentServed, ruleServed map[int64]uint64
}

// maxServed limits the size of these maps. A forgotten entry counts as never served, which gives it one early turn.
const maxServed = 10_000

func newSlots(total, ofRule int) *slots {
	return &slots{
		total: total, ofRule: ofRule, ofDeployment: map[int64]int{}, rules: map[int64]int{},
		deploymentServed: map[int64]uint64{}, ruleServed: map[int64]uint64{},
	}
}

// free reports whether a receiver may take a slot.
func (s *slots) free(r receiver) bool {
	return s.ofDeployment[r.deploymentID] < s.total-s.used && s.rules[r.ruleID] < s.ofRule
}

// choose returns which receiver takes the next slot: the deployment with the fewest slots, then its rule with the
// fewest; ties go to the least recently served. ok is false if none may take one.
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

// serve records that a receiver had its turn, even if it took no slot.
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
