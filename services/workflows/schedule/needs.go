package schedule

import storev1 "github.com/palisade/palisade/gen/palisade/store/v1"

// tooMany stands for all larger numbers of tasks. Multiplying it by MaxItems does not overflow.
const tooMany = 1 << 40

// Needs is the minimum number of tasks of a run: each list is empty and each switch takes the shortest path.
// Moves.Needs adds the tasks of actual lists and switches. Their sum is the number of tasks that the run has made and
// will make at least; when the run is completed, it is the exact number.
func (g *Graph) Needs() int64 { return g.remaining(g.start, "") }

// countNeeds computes for each step the number of tasks from it to the end of its branch, both included. The join of
// the innermost fork around it is not included.
func (g *Graph) countNeeds() {
	g.needs = make(map[string]int64, len(g.steps))
	g.count(g.start, "")
}

func (g *Graph) count(name, until string) int64 {
	s := g.steps[name]
	if name == until || s == nil {
		return 0
	}
	if n, known := g.needs[name]; known {
		return n
	}
	g.needs[name] = 0 // ends the recursion for a plan with a cycle, which the linter rejects
	n := int64(1)
	switch join := s.GetMatchingJoin(); s.GetType() {
	case Switch:
		for _, next := range s.GetSwitchCases() {
			g.count(next, until)
		}
		n += g.shortest(s, until)
	case Split:
		for _, next := range s.GetNext() {
			n += g.count(next, join)
		}
		n += g.count(join, until)
	case Foreach, Parallel:
		for _, next := range s.GetNext() {
			branch := g.count(next, join)
			if s.GetType() == Parallel {
				n += int64(s.GetNumParallel()) * branch
			}
		}
		n += g.count(join, until)
	default:
		for _, next := range s.GetNext() {
			n += g.count(next, until)
		}
	}
	g.needs[name] = min(n, tooMany)
	return g.needs[name]
}

// remaining is the number of tasks from a step to the end of its branch, before the step until.
func (g *Graph) remaining(name, until string) int64 {
	if name == until {
		return 0
	}
	return g.needs[name]
}

// shortest is the number of tasks on the shortest path out of a switch.
func (g *Graph) shortest(s *storev1.PlannedStep, until string) int64 {
	least := int64(tooMany)
	for _, next := range s.GetSwitchCases() {
		least = min(least, g.remaining(next, until))
	}
	return least
}
