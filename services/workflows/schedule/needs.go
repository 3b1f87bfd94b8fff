package schedule

import storev1 "github.com/palisade/palisade/gen/palisade/store/v1"

// tooMany stands for all larger numbers of tasks: numbers up to it can be multiplied by MaxItems.
const tooMany = 1 << 40

// Needs is how many tasks a run needs at least: as if every list were empty and every switch took the shortest way.
// What lists and switches add is in Moves.Needs, so that both together are what a run has made and will make at least;
// when it is completed, they are the number of its tasks.
func (g *Graph) Needs() int64 { return g.rest(g.start, "") }

// countNeeds finds for every step how many tasks are needed from it to the end of its place, both included: to the join
// of the innermost fork around it, which is not.
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
	g.needs[name] = 0 // a plan with a cycle, which no linter lets through, must not count without end
	n := int64(1)
	switch join := s.GetMatchingJoin(); s.GetType() {
	case Switch:
		for _, next := range s.GetSwitchCases() {
			g.count(next, until)
		}
		n += g.least(s, until)
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

// rest is how many tasks are needed from a step to the end of its place, which is the step until.
func (g *Graph) rest(name, until string) int64 {
	if name == until {
		return 0
	}
	return g.needs[name]
}

// least is how many tasks the shortest way out of a switch needs.
func (g *Graph) least(s *storev1.PlannedStep, until string) int64 {
	least := int64(tooMany)
	for _, next := range s.GetSwitchCases() {
		least = min(least, g.rest(next, until))
	}
	return least
}
