package schedule_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/workflows/schedule"
)

// builder generates random structured plans: each fork has its join, and the branches of each switch meet again.
type builder struct {
	t     *rapid.T
	steps []*storev1.PlannedStep
}

func (b *builder) add(kind string) *storev1.PlannedStep {
	s := &storev1.PlannedStep{Name: fmt.Sprintf("s%d", len(b.steps)), Type: kind, ContinueOnError: rapid.Bool().Draw(b.t, "goes on")}
	if kind == schedule.Foreach || kind == schedule.Switch {
		s.ContinueOnError = false
	}
	b.steps = append(b.steps, s)
	return s
}

// sequence generates consecutive steps. It returns the first step and a function that links the open ends to a
// successor. A branch of a fork may be empty: then first is "".
func (b *builder) sequence(depth, least int) (first string, link func(next string)) {
	link = func(string) {}
	for range rapid.IntRange(least, 3).Draw(b.t, "length") {
		from, to := b.element(depth)
		if first == "" {
			first = from
		}
		link(from)
		link = to
	}
	return first, link
}

func (b *builder) element(depth int) (first string, link func(next string)) {
	kinds := []string{schedule.Linear}
	if depth > 0 {
		kinds = append(kinds, schedule.Split, schedule.Foreach, schedule.Parallel, schedule.Switch)
	}
	s := b.add(rapid.SampledFrom(kinds).Draw(b.t, "type"))
	follow := func(of *storev1.PlannedStep) func(string) { return func(next string) { of.Next = []string{next} } }
	switch s.Type {
	case schedule.Switch:
		s.SwitchCases = map[string]string{}
		var ends []func(string)
		for _, value := range []string{"0", "1", schedule.DefaultCase} {
			first, end := b.sequence(depth-1, 1)
			s.SwitchCases[value] = first
			ends = append(ends, end)
		}
		return s.Name, func(next string) {
			for _, end := range ends {
				end(next)
			}
		}
	case schedule.Split:
		join := &storev1.PlannedStep{Type: schedule.Join}
		var ends []func(string)
		for range rapid.IntRange(2, 3).Draw(b.t, "branches") {
			first, end := b.sequence(depth-1, 1)
			s.Next = append(s.Next, first)
			ends = append(ends, end)
		}
		b.join(s, join)
		for _, end := range ends {
			end(join.Name)
		}
		return s.Name, follow(join)
	case schedule.Foreach, schedule.Parallel:
		join := &storev1.PlannedStep{Type: schedule.Join}
		s.NumParallel = int32(rapid.IntRange(1, 4).Draw(b.t, "copies"))
		first, end := b.sequence(depth-1, 0)
		b.join(s, join)
		if first == "" {
			first = join.Name
		}
		s.Next = []string{first}
		end(join.Name)
		return s.Name, follow(join)
	}
	return s.Name, follow(s)
}

func (b *builder) join(fork, join *storev1.PlannedStep) {
	join.Name, join.ContinueOnError = fmt.Sprintf("s%d", len(b.steps)), true
	fork.MatchingJoin = join.Name
	b.steps = append(b.steps, join)
}

func plan(t *rapid.T) *storev1.WorkflowPlan {
	b := &builder{t: t}
	b.add(schedule.Linear)
	first, link := b.sequence(3, 1)
	b.steps[0].Next = []string{first}
	link(b.add(schedule.Linear).Name)
	return &storev1.WorkflowPlan{Steps: b.steps}
}

// taskResults determines the result of each task, independent of the order of tasks.
type taskResults struct{ seed uint64 }

func (w taskResults) number(what string, s *storev1.PlannedStep, path string, n uint64) uint64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, w.seed, what, s.GetName(), "@", path)
	return hash.Sum64() >> 8 % n
}

func (w taskResults) fails(s *storev1.PlannedStep, path string) bool {
	return w.seed%3 != 0 && w.number("fails", s, path, 40) == 0
}
func (w taskResults) items(s *storev1.PlannedStep, path string) int {
	if w.number("wide", s, path, 8) == 0 && !strings.Contains(path, "[") {
		return schedule.MaxActive*2 + 37
	}
	return int(w.number("items", s, path, 5)) // may be empty
}
func (w taskResults) value(s *storev1.PlannedStep, path string) string {
	return fmt.Sprint(w.number("value", s, path, 4))
}

// interpreter executes a plan sequentially: the reference for the scheduler.
type interpreter struct {
	taskResults
	steps map[string]*storev1.PlannedStep
	done  map[string]string
}

// run executes steps up to the join where the branch ends; false if a task failed finally.
func (i *interpreter) run(name, until, path string) bool {
	for name != "" && name != until {
		s := i.steps[name]
		status := "succeeded"
		if i.fails(s, path) {
			status = "failed"
		}
		key := name + " " + path
		if i.done[key] != "" {
			panic("done twice: " + key)
		}
		i.done[key] = status
		if status == "failed" && !s.GetContinueOnError() {
			return false
		}
		name = ""
		switch s.GetType() {
		case schedule.Switch:
			var ok bool
			if name, ok = s.GetSwitchCases()[i.value(s, path)]; !ok {
				name = s.GetSwitchCases()[schedule.DefaultCase]
			}
		case schedule.Split:
			for _, next := range s.GetNext() {
				if !i.run(next, s.GetMatchingJoin(), schedule.Named(path, s.GetName(), next)) {
					return false
				}
			}
			name = s.GetMatchingJoin()
		case schedule.Foreach, schedule.Parallel:
			n := int(s.GetNumParallel())
			if s.GetType() == schedule.Foreach {
				n = i.items(s, path)
			}
			for index := range n {
				if !i.run(s.GetNext()[0], s.GetMatchingJoin(), schedule.Indexed(path, s.GetName(), index)) {
					return false
				}
			}
			name = s.GetMatchingJoin()
		default:
			if len(s.GetNext()) > 0 {
				name = s.GetNext()[0]
			}
		}
	}
	return true
}

// token is a task of the simulated engine; node is one of its forks.
type token struct {
	step, path string
	fork       *node
}

type node struct {
	schedule.Fork
	parent *node
}

// simulate executes a plan like the engine does. It picks any ready task; at most bound tasks are ready at a time.
func simulate(t *rapid.T, g *schedule.Graph, w taskResults, bound int) (done map[string]string, completed bool) {
	done = map[string]string{}
	ready := []token{{step: g.Start()}}
	planned := g.Needs()
	for len(ready) > 0 {
		at := rapid.IntRange(0, len(ready)-1).Draw(t, "next")
		if len(ready) > 50 { // random draws are slow: a wide fork uses a fixed shuffle
			at = len(ready) / 2
		}
		task := ready[at]
		ready = slices.Delete(ready, at, at+1)
		s, key := g.Step(task.step), task.step+" "+task.path
		if done[key] != "" {
			t.Fatalf("done twice: %s", key)
		}
		ended := schedule.Ended{
			Step: task.step, Path: task.path, Items: w.items(s, task.path), Value: w.value(s, task.path), Room: max(bound-len(ready), 0),
		}
		done[key] = "succeeded"
		if w.fails(s, task.path) {
			done[key] = "failed"
			if !s.GetContinueOnError() {
				return done, false
			}
		}
		if task.fork != nil {
			fork := task.fork.Fork
			ended.Fork = &fork
		}
		if !g.Begins(task.step, ended.Fork) {
			ended.Room = -1 // the engine does not count room here
		}
		moves, err := g.After(ended)
		if err != nil {
			t.Fatal(err)
		}
		if moves.Completed {
			if len(ready) > 0 || len(moves.Start) > 0 {
				t.Fatalf("the end was reached while %d tasks were left", len(ready))
			}
			if int(planned) != len(done) {
				t.Fatalf("%d tasks were planned, %d were made", planned, len(done))
			}
			return done, true
		}
		if moves.Update != nil {
			task.fork.Fork = *moves.Update
		}
		ready = append(ready, follow(task, moves)...)
		if len(ready) > bound {
			t.Fatalf("%d tasks are ready, want at most %d", len(ready), bound)
		}
		if planned += moves.Needs; moves.Needs < 0 || int(planned) < len(done)+len(ready) {
			t.Fatalf("%d tasks are planned (%d more), but %d were made and %d are ready", planned, moves.Needs, len(done), len(ready))
		}
	}
	t.Fatal("no task is left, and the end was not reached")
	return nil, false
}

// follow returns the tasks that begin after one.
func follow(task token, moves schedule.Moves) (next []token) {
	var opened *node
	if moves.Open != nil {
		opened = &node{Fork: *moves.Open, parent: task.fork}
	}
	for _, s := range moves.Start {
		fork := task.fork
		switch s.Level {
		case schedule.Inner:
			fork = opened
		case schedule.Outer:
			fork = task.fork.parent
		}
		next = append(next, token{step: s.Step, path: s.Path, fork: fork})
	}
	return next
}

// For any order of task ends and any limit of ready tasks, the scheduler runs the same tasks with the same statuses as
// a sequential interpreter. A run that fails stops early: it has run only tasks that the interpreter runs too.
func TestSchedulerAgainstInterpreter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plan(t)
		g, err := schedule.New(p)
		if err != nil {
			t.Fatal(err)
		}
		w := taskResults{seed: rapid.Uint64().Draw(t, "seed")}
		want := &interpreter{taskResults: w, steps: map[string]*storev1.PlannedStep{}, done: map[string]string{}}
		for _, s := range p.GetSteps() {
			want.steps[s.GetName()] = s
		}
		good := want.run(p.GetSteps()[0].GetName(), "", "")
		bound := rapid.SampledFrom([]int{1, 2, 5, 20, schedule.MaxActive, 1 << 30}).Draw(t, "bound")
		done, completed := simulate(t, g, w, bound)
		if completed != good {
			t.Fatalf("completed: %v, want %v", completed, good)
		}
		if !completed {
			failed := false
			for key, status := range done {
				name, path, _ := strings.Cut(key, " ")
				failed = failed || status == "failed" && !g.Step(name).GetContinueOnError() && w.fails(g.Step(name), path)
			}
			if !failed {
				t.Fatal("the run failed and no task did")
			}
			return
		}
		if len(done) != len(want.done) {
			t.Errorf("%d tasks, want %d", len(done), len(want.done))
		}
		for key, status := range want.done {
			if done[key] != status {
				t.Errorf("%s: %q, want %q", key, done[key], status)
			}
		}
	})
}

func TestPaths(t *testing.T) {
	path := schedule.Named(schedule.Indexed("", "units", 3), "checks", "sqli")
	if path != "units[3]/checks.sqli" {
		t.Fatal(path)
	}
	if got := schedule.Enclosing(path); !slices.Equal(got, []string{path, "units[3]", ""}) {
		t.Errorf("enclosing: %q", got)
	}
	if schedule.Branch(path) != "sqli" || schedule.Branch("units[3]") != "3" || schedule.Branch("") != "" {
		t.Error("branches")
	}
	if n, ok := schedule.Index("units[3]"); n != 3 || !ok {
		t.Error("index of a foreach")
	}
	if _, ok := schedule.Index(path); ok {
		t.Error("index of a split")
	}
}

// An invalid plan is an error and not an endless run.
func TestRefusals(t *testing.T) {
	if _, err := schedule.New(&storev1.WorkflowPlan{}); err == nil {
		t.Error("a plan without steps")
	}
	if g, err := schedule.New(&storev1.WorkflowPlan{Steps: []*storev1.PlannedStep{{Name: "a", Next: []string{"a"}}}}); err != nil || g.Needs() < 1 {
		t.Error("a cycle: no linter lets it through, but it must not count without end")
	}
	if _, err := schedule.New(&storev1.WorkflowPlan{Steps: []*storev1.PlannedStep{{Name: "a", Next: []string{"b"}}}}); err == nil {
		t.Error("an unknown successor")
	}
	g, err := schedule.New(&storev1.WorkflowPlan{Steps: []*storev1.PlannedStep{
		{Name: "a", Type: schedule.Switch, SwitchCases: map[string]string{"yes": "b"}},
		{Name: "b", Type: schedule.Foreach, MatchingJoin: "c", Next: []string{"c"}},
		{Name: "c", Type: schedule.Join},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, ended := range map[string]schedule.Ended{
		"unknown step": {Step: "x"},
		"no case":      {Step: "a", Value: "no"},
		"too many":     {Step: "b", Items: schedule.MaxItems + 1},
	} {
		if _, err := g.After(ended); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The minimum size of a run is known before its branches are created, and does not overflow.
func TestNeeds(t *testing.T) {
	for depth, want := range map[int]int64{1: 1002, 2: 1002002, 12: 1 << 40} {
		steps := []*storev1.PlannedStep{{Name: "work", Next: []string{"join 0"}}}
		first, last := steps[0], steps[0]
		for i := range depth {
			fork := &storev1.PlannedStep{Name: fmt.Sprint("fork ", i), Type: schedule.Parallel, NumParallel: 1000,
				Next: []string{first.GetName()}, MatchingJoin: fmt.Sprint("join ", i)}
			join := &storev1.PlannedStep{Name: fork.GetMatchingJoin(), Type: schedule.Join}
			last.Next = []string{join.GetName()}
			first, last, steps = fork, join, append(append([]*storev1.PlannedStep{fork}, steps...), join)
		}
		g, err := schedule.New(&storev1.WorkflowPlan{Steps: steps})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Needs(); got != want {
			t.Errorf("depth %d: %d tasks, want %d", depth, got, want)
		}
	}
}

// Nested lists: the tasks of branches are counted when each list is known.
func TestNeedsOfLists(t *testing.T) {
	g, err := schedule.New(&storev1.WorkflowPlan{Steps: []*storev1.PlannedStep{
		{Name: "a", Type: schedule.Foreach, MatchingJoin: "a all", Next: []string{"b"}},
		{Name: "b", Type: schedule.Foreach, MatchingJoin: "b all", Next: []string{"choose"}},
		{Name: "choose", Type: schedule.Switch, SwitchCases: map[string]string{"short": "b all", "long": "work"}},
		{Name: "work", Type: schedule.Linear, Next: []string{"more"}},
		{Name: "more", Type: schedule.Linear, Next: []string{"b all"}},
		{Name: "b all", Type: schedule.Join, Next: []string{"a all"}},
		{Name: "a all", Type: schedule.Join},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Needs(); got != 2 {
		t.Errorf("the run needs %d tasks at least, want 2: a and its join", got)
	}
	inner := &schedule.Fork{Step: "b", Join: "b all", Branches: 300, Started: 300}
	for _, c := range []struct {
		ended schedule.Ended
		want  int64
	}{
		{schedule.Ended{Step: "a", Items: 300}, 600}, // b and its join
		{schedule.Ended{Step: "b", Items: 300, Fork: &schedule.Fork{Step: "a", Join: "a all", Branches: 300, Started: 1}}, 300},
		{schedule.Ended{Step: "choose", Value: "short", Fork: inner}, 0},
		{schedule.Ended{Step: "choose", Value: "long", Fork: inner}, 2},
	} {
		moves, err := g.After(c.ended)
		if err != nil || moves.Needs != c.want {
			t.Errorf("%s: %d more tasks (%v), want %d", c.ended.Step, moves.Needs, err, c.want)
		}
	}
}
