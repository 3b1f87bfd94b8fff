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

// DefaultCase is the case of a switch for values without a case of their own.
const DefaultCase = "default"

// MaxItems limits the list of a foreach.
const MaxItems = 10_000

// MaxActive is the maximum number of attempts of one run that wait or run at a time. It includes unclaimed external
// steps and attempts that wait for their backoff. It exceeds what the workers of twenty nodes take at once, and is
// small enough to write, and to cancel, in one short transaction. Forks of any depth share it: see [Graph.After].
const MaxActive = 200

// Graph is a plan with its steps by name.
type Graph struct {
	steps      map[string]*storev1.PlannedStep
	before     map[string][]string
	needs      map[string]int64
	start, end string
}

// New takes a valid plan: its first step is the start and its last one the end.
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

// successors returns the distinct steps that can follow a step.
func successors(s *storev1.PlannedStep) []string {
	names := slices.Clone(s.GetNext())
	for _, name := range s.GetSwitchCases() {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Start is the name of the first step.
func (g *Graph) Start() string { return g.start }

// Step returns a step; nil for an unknown name.
func (g *Graph) Step(name string) *storev1.PlannedStep { return g.steps[name] }

// Before lists the predecessors of a step. For a join they are the last steps of its branches.
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

// BranchNames lists the branches of a split step's fork in the order of the definition; nil for other types.
func (g *Graph) BranchNames(fork string) []string {
	if s := g.steps[fork]; s.GetType() == Split {
		return s.GetNext()
	}
	return nil
}

// Fork is the progress of a fork's branches.
type Fork struct {
	// Step is the step that forked. Join is the step that waits for the branches.
	Step, Join string
	// Branches is the total, Started the number that have begun, Arrived the number that have reached the join.
	Branches, Started, Arrived int
}

// Ended is a completed task: it succeeded, or its step continues on errors.
type Ended struct {
	Step, Path string
	// Fork is the innermost fork around the task, in its state before the task ended; nil outside of all forks.
	Fork *Fork
	// Items is the length of a foreach's list.
	Items int
	// Value is the result of a switch's condition, as text.
	Value string
	// Room is how many attempts may begin until the run has MaxActive. It matters only if branches can begin (see
	// [Graph.Begins]).
	Room int
}

// Level says which fork a task belongs to.
type Level int

// Levels of a task that begins.
const (
	// Here is the fork of the task that ended.
	Here Level = iota
	// Inner is the fork that Moves.Open opens.
	Inner
	// Outer is the fork around the fork of the task that ended.
	Outer
)

// Start is a task that begins.
type Start struct {
	Step, Path string
	Level      Level
}

// Moves is the next state of a run.
type Moves struct {
	Start []Start
	// Open is a fork that the ended task opens; nil if there is none.
	Open *Fork
	// Update is the new state of the task's fork; nil if it has not changed.
	Update *Fork
	// Needs is the increase of the minimum number of tasks of the run.
	Needs int64
	// Completed is true after the end step.
	Completed bool
}

// Begins reports whether branches can begin when a task of a step ends: the step forks, or its fork (nil outside of
// all) has branches that have not begun.
func (g *Graph) Begins(step string, fork *Fork) bool {
	switch g.steps[step].GetType() {
	case Split, Foreach, Parallel:
		return true
	}
	return fork != nil && fork.Started < fork.Branches
}

// After decides what follows a task. It returns an error if the plan is invalid.
//
// Branches of a fork begin as far as there is room, and at least one if none is running. So each fork makes progress
// even without room, and a run never has more than MaxActive attempts that wait or run: the ended task has left room
// for one.
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
		m.Needs = g.remaining(next, until(e.Fork)) - g.shortest(s, until(e.Fork))
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

// choose returns the next step of a switch.
func choose(s *storev1.PlannedStep, value string) (string, error) {
	if next, ok := s.GetSwitchCases()[value]; ok {
		return next, nil
	}
	if next, ok := s.GetSwitchCases()[DefaultCase]; ok {
		return next, nil
	}
	return "", fmt.Errorf("the switch %s has no case for %q and no default", s.GetName(), value)
}

// until is the step that ends a fork's branches; "" outside of all forks.
func until(fork *Fork) string {
	if fork == nil {
		return ""
	}
	return fork.Join
}

// follow continues on the same path, unless the path ends there at the join of its fork.
func (g *Graph) follow(m *Moves, e Ended, next string) {
	if e.Fork == nil || e.Fork.Join != next {
		m.Start = append(m.Start, Start{Step: next, Path: e.Path, Level: Here})
		return
	}
	fork := *e.Fork
	fork.Arrived++
	m.Update = &fork
	if fork.Started-fork.Arrived <= MaxActive/2 { // start many at a time, not one after each
		m.Start = g.begin(m.Start, &fork, Parent(e.Path), e.Room, Here)
	}
	if fork.Arrived >= fork.Branches {
		m.Start = append(m.Start, Start{Step: next, Path: Parent(e.Path), Level: Outer})
	}
}

// fork opens a fork.
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
		m.Needs = int64(e.Items) * g.remaining(s.GetNext()[0], fork.Join)
	}
	m.Open = fork
	m.Start = g.begin(m.Start, fork, e.Path, e.Room, Inner)
	if fork.Arrived >= fork.Branches {
		m.Start = append(m.Start, Start{Step: fork.Join, Path: e.Path, Level: Here})
	}
	return nil
}

// begin starts more branches of a fork, as far as there is room, and at least one if none is running. path is the path
// of the step that forked. Branches without a step take no room: they arrive at once.
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

// branch returns the first step of a branch of a fork, and its path.
func (g *Graph) branch(fork *Fork, path string, index int) (first, place string) {
	s := g.steps[fork.Step]
	if s.GetType() == Split {
		first = s.GetNext()[index]
		return first, Named(path, fork.Step, first)
	}
	return s.GetNext()[0], Indexed(path, fork.Step, index)
}
