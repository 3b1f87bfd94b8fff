package schedule

import (
	"fmt"
	"slices"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// The types of steps.
const (
	Linear   = "linear"
	Split    = "split"
	Foreach  = "foreach"
	Parallel = "parallel"
	Switch   = "switch"
	Join     = "join"
)

// DefaultCase is the case of a switch for values that none other has.
const DefaultCase = "default"

// MaxItems bounds the list of a foreach.
const MaxItems = 10_000

// MaxActive is how many attempts of one run wait or run at a time: also those of external steps that nobody has
// claimed, and those that wait for their time after a failure. It is more than the workers of twenty nodes take at
// once, and few enough to be written, and taken back, in one short transaction. Forks of any depth share it: see
// [Graph.After].
const MaxActive = 200

// Graph is a plan whose steps are found by name.
type Graph struct {
	steps      map[string]*storev1.PlannedStep
	before     map[string][]string
	needs      map[string]int64
	start, end string
}

// New takes a plan that the linter has let through: its first step is the start and its last one the end.
func New(plan *storev1.WorkflowPlan) (*Graph, error) {
	steps := plan.GetSteps()
	if len(steps) == 0 {
		return nil, fmt.Errorf("the plan has no steps")
	}
	g := &Graph{
		steps: make(map[string]*storev1.PlannedStep, len(steps)), before: map[string][]string{},
		start: steps[0].GetName(), end: steps[len(steps)-1].GetName(),
	}
	for _, s := range steps {
		g.steps[s.GetName()] = s
	}
	for _, s := range steps {
		for _, next := range successors(s) {
			if g.steps[next] == nil {
				return nil, fmt.Errorf("step %s is followed by %s, which the plan does not have", s.GetName(), next)
			}
			g.before[next] = append(g.before[next], s.GetName())
		}
	}
	g.countNeeds()
	return g, nil
}

// successors are the steps that a step can lead to, each once.
func successors(s *storev1.PlannedStep) []string {
	names := slices.Clone(s.GetNext())
	for _, name := range s.GetSwitchCases() {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Start is the name of the step that a run begins with.
func (g *Graph) Start() string { return g.start }

// Step finds a step; nil for an unknown name.
func (g *Graph) Step(name string) *storev1.PlannedStep { return g.steps[name] }

// Before lists the steps that can lead to a step: at a join, those that its branches end with.
func (g *Graph) Before(name string) []string { return g.before[name] }

// Names lists all steps.
func (g *Graph) Names() []string {
	names := make([]string, 0, len(g.steps))
	for name := range g.steps {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// BranchNames lists the branches of a fork of a split step in the order of the definition; nil for other types.
func (g *Graph) BranchNames(fork string) []string {
	if s := g.steps[fork]; s.GetType() == Split {
		return s.GetNext()
	}
	return nil
}

// Fork is where the branches of a fork stand.
type Fork struct {
	// Step is the one that forked, Join the one that waits for the branches.
	Step, Join string
	// Branches is how many there are, Started how many have begun, Arrived how many have reached the join.
	Branches, Started, Arrived int
}

// Ended is a task that was done: it succeeded, or its step goes on in spite of errors.
type Ended struct {
	Step, Path string
	// Fork is the innermost one that the task is in a branch of, as it is before this task ended; nil outside of all.
	Fork *Fork
	// Items is how long the list of a foreach is.
	Items int
	// Value is what the condition of a switch gave, as text.
	Value string
	// Room is how many attempts may begin until the run has MaxActive. It counts where branches can begin (see
	// [Graph.Begins]).
	Room int
}

// Level says in which fork a task is.
type Level int

// The levels.
const (
	// Here is the fork of the task that ended.
	Here Level = iota
	// Inner is the fork that Moves.Open opens.
	Inner
	// Outer is the fork around that of the task that ended.
	Outer
)

// Start is a task that begins.
type Start struct {
	Step, Path string
	Level      Level
}

// Moves is how a run goes on.
type Moves struct {
	Start []Start
	// Open is the fork of the task that ended; nil when it is none.
	Open *Fork
	// Update is the fork that the task is in, as it is now; nil when nothing about it has changed.
	Update *Fork
	// Needs is how many more tasks the run needs at least than was known before the task ended.
	Needs int64
	// Completed says that it was the end step.
	Completed bool
}

// Begins reports whether branches can begin when a task of a step ends: it forks, or its fork (nil outside of all) has
// branches that have not begun.
func (g *Graph) Begins(step string, fork *Fork) bool {
	switch g.steps[step].GetType() {
	case Split, Foreach, Parallel:
		return true
	}
	return fork != nil && fork.Started < fork.Branches
}

// After decides what follows a task. An error says that the plan cannot be followed.
//
// The branches of a fork begin as far as there is room, and at least one while none of them is on its way. So every
// fork goes on, however little room there is, and a run never has more than MaxActive attempts that wait or run: the
// task that ended has left room for one, and more begin only where there is more.
func (g *Graph) After(e Ended) (Moves, error) {
	s := g.steps[e.Step]
	if s == nil {
		return Moves{}, fmt.Errorf("the plan has no step %s", e.Step)
	}
	var m Moves
	switch s.GetType() {
	case Split, Foreach, Parallel:
		if err := g.fork(&m, s, e); err != nil {
			return Moves{}, err
		}
	case Switch:
		next, err := choose(s, e.Value)
		if err != nil {
			return Moves{}, err
		}
		m.Needs = g.rest(next, until(e.Fork)) - g.least(s, until(e.Fork))
		g.follow(&m, e, next)
	default:
		if len(s.GetNext()) == 0 {
			m.Completed = true
			return m, nil
		}
		g.follow(&m, e, s.GetNext()[0])
	}
	return m, nil
}

// choose finds the way out of a switch.
func choose(s *storev1.PlannedStep, value string) (string, error) {
	if next, ok := s.GetSwitchCases()[value]; ok {
		return next, nil
	}
	if next, ok := s.GetSwitchCases()[DefaultCase]; ok {
		return next, nil
	}
	return "", fmt.Errorf("the switch %s has no case for %q and no default", s.GetName(), value)
}

// until is the step that ends the place of a fork's branches; "" outside of all.
func until(fork *Fork) string {
	if fork == nil {
		return ""
	}
	return fork.Join
}

// follow goes on in the same place, unless that place ends there: at the join of its fork.
func (g *Graph) follow(m *Moves, e Ended, next string) {
	if e.Fork == nil || e.Fork.Join != next {
		m.Start = append(m.Start, Start{Step: next, Path: e.Path, Level: Here})
		return
	}
	fork := *e.Fork
	fork.Arrived++
	m.Update = &fork
	if fork.Started-fork.Arrived <= MaxActive/2 { // many at a time, not one after each
		m.Start = g.begin(m.Start, &fork, Parent(e.Path), e.Room, Here)
	}
	if fork.Arrived >= fork.Branches {
		m.Start = append(m.Start, Start{Step: next, Path: Parent(e.Path), Level: Outer})
	}
}

// fork opens one.
func (g *Graph) fork(m *Moves, s *storev1.PlannedStep, e Ended) error {
	fork := &Fork{Step: s.GetName(), Join: s.GetMatchingJoin()}
	switch s.GetType() {
	case Split:
		fork.Branches = len(s.GetNext())
	case Parallel:
		fork.Branches = int(s.GetNumParallel())
	case Foreach:
		fork.Branches = e.Items
	}
	if fork.Branches > MaxItems {
		return fmt.Errorf("the list of the foreach %s has %d items, want at most %d", s.GetName(), fork.Branches, MaxItems)
	}
	if g.steps[fork.Join] == nil || len(s.GetNext()) == 0 {
		return fmt.Errorf("the step %s forks and has no join or no branch", s.GetName())
	}
	if s.GetType() == Foreach {
		m.Needs = int64(e.Items) * g.rest(s.GetNext()[0], fork.Join)
	}
	m.Open = fork
	m.Start = g.begin(m.Start, fork, e.Path, e.Room, Inner)
	if fork.Arrived >= fork.Branches {
		m.Start = append(m.Start, Start{Step: fork.Join, Path: e.Path, Level: Here})
	}
	return nil
}

// begin begins more branches of a fork, as far as there is room, and one more where none is on its way; path is that of
// the step that forked. Branches without a step take no room: they arrive at once.
func (g *Graph) begin(starts []Start, fork *Fork, path string, room int, level Level) []Start {
	for fork.Started < fork.Branches && (room > 0 || fork.Started == fork.Arrived) {
		first, place := g.branch(fork, path, fork.Started)
		fork.Started++
		if first == fork.Join {
			fork.Arrived++
			continue
		}
		starts = append(starts, Start{Step: first, Path: place, Level: level})
		room--
	}
	return starts
}

// branch is the first step of a branch of a fork, and its place.
func (g *Graph) branch(fork *Fork, path string, index int) (first, place string) {
	s := g.steps[fork.Step]
	if s.GetType() == Split {
		first = s.GetNext()[index]
		return first, Named(path, fork.Step, first)
	}
	return s.GetNext()[0], Indexed(path, fork.Step, index)
}
