package graph

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
)

const (
	pending   = workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_PENDING
	running   = workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_RUNNING
	succeeded = workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_SUCCEEDED
	failed    = workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_FAILED
	skipped   = workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_SKIPPED
	broken    = workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_ERROR
)

// choice is start → switch → (left | right) → end.
var choice = []Step{
	{Name: "start", Next: []string{"choose"}}, {Name: "choose", Next: []string{"left", "right"}},
	{Name: "left", Next: []string{"end"}}, {Name: "right", Next: []string{"end"}}, {Name: "end"},
}

// each is a foreach with two steps per branch.
var each = []Step{
	{Name: "units", Next: []string{"read"}}, {Name: "read", Next: []string{"judge"}, ContinueOnError: true},
	{Name: "judge", Next: []string{"all"}}, {Name: "all", Next: []string{"end"}}, {Name: "end"},
}

func TestStatuses(t *testing.T) {
	one := Tasks{Succeeded: 1}
	open := []Fork{{Step: "units", Join: "all"}}
	for _, c := range []struct {
		name string
		run  Run
		want []workflowsv1.WorkflowStepStatus
	}{
		{"nothing yet", Run{Steps: choice}, all(5, pending)},
		{"the first waits", Run{Steps: choice, Tasks: map[string]Tasks{"start": {Pending: 1}}}, all(5, pending)},
		{"the switch works", Run{Steps: choice, Tasks: map[string]Tasks{"start": one, "choose": {Running: 1}}},
			list(succeeded, running, pending, pending, pending)},
		{"the switch has chosen", Run{Steps: choice, Tasks: map[string]Tasks{"start": one, "choose": one, "left": {Pending: 1}}},
			list(succeeded, succeeded, pending, skipped, pending)},
		{"completed", Run{Steps: choice, Tasks: map[string]Tasks{"start": one, "choose": one, "left": one, "end": one}, Ended: true},
			list(succeeded, succeeded, succeeded, skipped, succeeded)},
		{"cancelled before anything", Run{Steps: choice, Tasks: map[string]Tasks{"start": {Skipped: 1}}, Ended: true}, all(5, skipped)},
		{"failed", Run{Steps: choice, Tasks: map[string]Tasks{"start": one, "choose": {Failed: 1}}, Ended: true},
			list(succeeded, failed, skipped, skipped, skipped)},
		{"an error weighs more", Run{Steps: choice, Tasks: map[string]Tasks{"start": {Failed: 1, Error: 1}}, Ended: true},
			list(broken, skipped, skipped, skipped, skipped)},
		{"other branches still come", Run{Steps: each, Open: open, Tasks: map[string]Tasks{"units": one, "read": {Succeeded: 1, Running: 2}, "judge": one}},
			list(succeeded, running, running, pending, pending)},
		{"branches that have not begun", Run{Steps: each, Open: []Fork{{Step: "units", Join: "all", Unstarted: true}}, Tasks: map[string]Tasks{"units": one, "read": {Succeeded: 3}, "judge": {Succeeded: 3}}},
			list(succeeded, running, running, pending, pending)},
		{"the last branch", Run{Steps: each, Open: open, Tasks: map[string]Tasks{"units": one, "read": {Succeeded: 3}, "judge": {Succeeded: 2, Running: 1}}},
			list(succeeded, succeeded, running, pending, pending)},
		{"tolerated failures", Run{Steps: each, Open: open, Tasks: map[string]Tasks{"units": one, "read": {Succeeded: 2, Failed: 1}, "judge": {Running: 3}}},
			list(succeeded, succeeded, running, pending, pending)},
		{"nothing but tolerated failures", Run{Steps: each, Tasks: map[string]Tasks{"units": one, "read": {Failed: 2, Error: 1}, "judge": {Error: 3}, "all": {Running: 1}}},
			list(succeeded, failed, broken, running, pending)},
		{"a foreach over nothing", Run{Steps: each, Tasks: map[string]Tasks{"units": one, "all": {Pending: 1}}},
			list(succeeded, skipped, skipped, pending, pending)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.run.Statuses()
			for i, step := range c.run.Steps {
				if got[step.Name] != c.want[i] {
					t.Errorf("%s is %v, want %v", step.Name, got[step.Name], c.want[i])
				}
			}
		})
	}
	if got := (Run{}).Statuses(); len(got) != 0 {
		t.Errorf("no steps: %v", got)
	}
}

func list(statuses ...workflowsv1.WorkflowStepStatus) []workflowsv1.WorkflowStepStatus {
	return statuses
}

func all(n int, status workflowsv1.WorkflowStepStatus) (statuses []workflowsv1.WorkflowStepStatus) {
	for range n {
		statuses = append(statuses, status)
	}
	return statuses
}

// Types of steps of the interpreter below.
const (
	linear = iota
	choose
	fanOut
	join
)

// machine executes a random plan one move at a time.
type machine struct {
	t     *rapid.T
	steps []Step
	kinds map[string]int
	joins map[string]string
	tasks map[string]Tasks
	live  []*task
	forks []*fork
	ended bool
}

type task struct {
	step    string
	running bool
	fork    *fork
}

type fork struct {
	step, join              string
	branches, begun, joined int
	parent                  *fork
}

// block appends steps with one first and one last step, and returns their names.
func (m *machine) block(depth int) (first, last string) {
	step := func(kind int) string {
		name := fmt.Sprintf("s%d", len(m.steps))
		m.steps = append(m.steps, Step{Name: name})
		m.kinds[name] = kind
		return name
	}
	first = step(linear)
	last = first
	for range rapid.IntRange(0, 3-depth).Draw(m.t, "blocks") {
		kind := rapid.IntRange(linear, fanOut).Draw(m.t, "kind")
		begin := step(kind)
		m.follow(last, begin)
		last = begin
		if kind == linear {
			continue
		}
		paths := 1
		if kind == choose {
			paths = 2
		}
		var ends []string
		for range paths {
			from, to := m.block(depth + 1)
			m.follow(begin, from)
			ends = append(ends, to)
		}
		last = step(map[int]int{choose: linear, fanOut: join}[kind])
		m.joins[begin] = last
		for _, end := range ends {
			m.follow(end, last)
		}
	}
	return first, last
}

func (m *machine) follow(from, to string) {
	for i := range m.steps {
		if m.steps[i].Name == from {
			m.steps[i].Next = append(m.steps[i].Next, to)
		}
	}
}

func (m *machine) nextOf(name string) []string {
	for _, step := range m.steps {
		if step.Name == name {
			return step.Next
		}
	}
	return nil
}

func (m *machine) begin(step string, in *fork) {
	counts := m.tasks[step]
	counts.Pending++
	m.tasks[step] = counts
	m.live = append(m.live, &task{step: step, fork: in})
}

// move starts or ends a random task, or starts another branch of a fork.
func (m *machine) move() {
	for _, f := range m.forks {
		if f.begun < f.branches && rapid.Bool().Draw(m.t, "begin a branch") {
			f.begun++
			m.begin(m.nextOf(f.step)[0], f)
			return
		}
	}
	if len(m.live) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.live)-1).Draw(m.t, "task")
	at := m.live[i]
	counts := m.tasks[at.step]
	if !at.running {
		at.running = true
		counts.Pending--
		counts.Running++
		m.tasks[at.step] = counts
		return
	}
	counts.Running--
	counts.Succeeded++
	m.tasks[at.step] = counts
	m.live = append(m.live[:i], m.live[i+1:]...)
	m.after(at)
}

func (m *machine) after(at *task) {
	next := m.nextOf(at.step)
	switch {
	case len(next) == 0:
		m.ended = true
		return
	case m.kinds[at.step] == fanOut:
		f := &fork{step: at.step, join: m.joins[at.step], branches: rapid.IntRange(0, 3).Draw(m.t, "branches"), parent: at.fork}
		if f.branches == 0 {
			m.begin(f.join, at.fork)
			return
		}
		m.forks = append(m.forks, f)
		return
	}
	to := next[rapid.IntRange(0, len(next)-1).Draw(m.t, "way")]
	if m.kinds[to] != join {
		m.begin(to, at.fork)
		return
	}
	if at.fork.joined++; at.fork.joined == at.fork.branches {
		m.begin(to, at.fork.parent)
	}
}

func (m *machine) state() Run {
	run := Run{Steps: m.steps, Tasks: m.tasks, Ended: m.ended}
	for _, f := range m.forks {
		if f.joined < f.branches {
			run.Open = append(run.Open, Fork{Step: f.step, Join: f.join, Unstarted: f.begun < f.branches})
		}
	}
	return run
}

// A step that is done or skipped never gets another task. At the end no step is open.
func TestStatusesOfRandomRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{t: t, kinds: map[string]int{}, joins: map[string]string{}, tasks: map[string]Tasks{}}
		start, end := m.block(0)
		final := map[string]workflowsv1.WorkflowStepStatus{}
		m.begin(start, nil)
		for moves := 0; !m.ended; moves++ {
			if moves > 10000 {
				t.Fatal("the run does not end")
			}
			for name, status := range m.state().Statuses() {
				if before, ok := final[name]; ok && before != status {
					t.Fatalf("%s was %v and is %v", name, before, status)
				}
				if status == succeeded || status == skipped {
					final[name] = status
				}
			}
			m.move()
		}
		for name, status := range m.state().Statuses() {
			if before, ok := final[name]; ok && before != status || status != succeeded && status != skipped {
				t.Fatalf("at the end %s is %v (before: %v)", name, status, before)
			}
			if (m.tasks[name].All() > 0) != (status == succeeded) {
				t.Fatalf("%s has %d tasks and is %v", name, m.tasks[name].All(), status)
			}
		}
		if m.tasks[end].Succeeded != 1 {
			t.Fatalf("the end has %v", m.tasks[end])
		}
	})
}
