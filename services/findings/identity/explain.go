package identity

import "slices"

// maxConsidered bounds the candidates of a join.
const maxConsidered = 5

// refuse records the findings that a result could have been, and why they were not chosen.
func (m *matcher) refuse(r int32, known []int32, rung, why string) {
	if m.ambiguous == nil {
		m.ambiguous = map[int32][]Candidate{}
	}
	for _, k := range known[:min(len(known), maxConsidered)] {
		m.ambiguous[r] = append(m.ambiguous[r], Candidate{int(k), rung, why})
	}
}

// explain adds the candidates to each new result and to each inexact join: unmatched findings of the same rule and
// file, and findings with the same code elsewhere.
func (m *matcher) explain() {
	left := map[uint64][]int32{}
	for k := range m.known {
		if !m.taken[k] && m.known[k].Open {
			place := mix(m.known[k].Rule, m.known[k].Path)
			left[place] = append(left[place], int32(k))
		}
	}
	for r := range m.joins {
		j := &m.joins[r]
		if j.Known >= 0 && Exact(j.Rung) {
			continue
		}
		if j.Known >= 0 {
			j.Considered = []Candidate{{j.Known, j.Rung, ""}}
		}
		e := m.results[r]
		for _, k := range left[mix(e.Rule, e.Path)] {
			j.Considered = append(j.Considered, Candidate{int(k), RungLine, m.whyNot(k, e)})
			if len(j.Considered) == maxConsidered {
				break
			}
		}
		for _, c := range m.ambiguous[int32(r)] {
			if j.Known < 0 && len(j.Considered) < maxConsidered {
				j.Considered = append(j.Considered, c)
			}
		}
		j.Considered = slices.Clip(j.Considered)
	}
	m.ambiguous = nil
}

// whyNot returns the reason why a finding of the same rule and file was not joined with a result.
func (m *matcher) whyNot(k int32, e Evidence) string {
	switch known := m.known[k]; {
	case contradict(&known.Evidence, &e, byPrints):
		return "the same rule and file, but the tool's fingerprints differ"
	case Contradict(&known.Evidence, &e):
		return "the same rule and file, but the logical locations differ"
	case known.Shape == e.Shape:
		return "the same rule and file and code of the same shape, but too far from where it is expected"
	case known.Message == e.Message && known.Snippet != e.Snippet:
		return "the same rule and file, but other code on another line"
	}
	return "the same rule and file, but nothing else is equal"
}
