package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/ent/workflowtask"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/schedule"
)

// Begin creates the first task of a new run, in the run's transaction.
func (e *Engine) Begin(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, run *ent.WorkflowRun) error {
	p, err := e.program(ctx, run.VersionID)
	if err != nil {
		return err
	}
	if err := e.ready(ctx, tx, p); err != nil {
		return err
	}
	w := &transition{engine: e, tx: tx, queue: queueOf(ctx, queue), leasedAttempt: &leasedAttempt{program: p}, run: run}
	return w.begin(ctx, []newTask{{step: p.graph.Start()}})
}

// Ready returns an error that a caller understands if a run of the version could not begin now.
func (e *Engine) Ready(ctx context.Context, tx *ent.Tx, versionID int64) error {
	p, err := e.program(ctx, versionID)
	if err != nil {
		return err
	}
	return e.ready(ctx, tx, p)
}

// Needs is the minimum number of tasks of a run of a version: the initial plan of a new run. It is an error if that
// exceeds the limit.
func (e *Engine) Needs(ctx context.Context, versionID int64) (int64, error) {
	p, err := e.program(ctx, versionID)
	if err != nil {
		return 0, err
	}
	needs := p.graph.Needs()
	if needs > e.maxTasks {
		return 0, apierr.FailedPrecondition("the workflow needs at least %d tasks, want at most %d (workflow-max-tasks): do the work in several runs",
			needs, e.maxTasks)
	}
	return needs, nil
}

// ready rejects a plan with steps that this server cannot run.
func (e *Engine) ready(ctx context.Context, tx *ent.Tx, p *program) error {
	for _, name := range p.graph.Names() {
		if kind := e.kinds[p.graph.Step(name).GetUses()]; kind.Ready != nil {
			if err := kind.Ready(ctx, tx.Client()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Budget is the default budget for a run of a version, in credits; 0 is unlimited.
func (e *Engine) Budget(ctx context.Context, versionID int64) (float64, error) {
	p, err := e.program(ctx, versionID)
	if err != nil {
		return 0, err
	}
	return p.budget, nil
}

// newTask is a task to be created.
type newTask struct {
	step, path string
	forkID     int64
	upstream   []int64
	preview    string
}

// advance creates the tasks that follow a completed task.
func (w *transition) advance(ctx context.Context, done outcome) error {
	ended := schedule.Ended{Step: w.task.Step, Path: w.task.Path, Items: len(done.items), Value: done.value}
	var err error
	var fork *ent.WorkflowFork
	if w.task.ForkID != 0 {
		if fork, err = w.tx.WorkflowFork.Get(ctx, w.task.ForkID); err != nil {
			return err
		}
		ended.Fork = &schedule.Fork{
			Step: fork.Step, Join: fork.JoinStep, Branches: int(fork.Branches), Started: int(fork.Started), Arrived: int(fork.Arrived),
		}
	}
	if w.graph.Begins(ended.Step, ended.Fork) {
		if ended.Room, err = w.capacity(ctx); err != nil {
			return err
		}
	}
	moves, err := w.graph.After(ended)
	if err != nil {
		return w.end(ctx, Failed, oneLine(fmt.Sprintf("step %s: %s", w.label(), err)))
	}
	if moves.Completed {
		return w.end(ctx, Completed, "")
	}
	if tooMany, err := w.plan(ctx, moves); err != nil {
		return err
	} else if tooMany != "" {
		return w.end(ctx, Failed, tooMany)
	}
	if u := moves.Update; u != nil {
		if err := fork.Update().SetArrived(int32(u.Arrived)).SetStarted(int32(u.Started)).Exec(ctx); err != nil {
			return err
		}
	}
	opened := int64(0)
	if o := moves.Open; o != nil {
		row, err := w.tx.WorkflowFork.Create().SetRunID(w.run.ID).SetTaskID(w.task.ID).SetParentID(w.task.ForkID).SetStep(o.Step).
			SetJoinStep(o.Join).SetBranches(int32(o.Branches)).SetStarted(int32(o.Started)).SetArrived(int32(o.Arrived)).Save(ctx)
		if err != nil {
			return err
		}
		opened = row.ID
	}
	tasks, err := w.prepareTasks(ctx, moves.Start, fork, opened, done)
	if err != nil {
		return err
	}
	return w.begin(ctx, tasks)
}

// capacity is how many more attempts of the run may wait or run. The attempt that just ended no longer counts.
func (w *transition) capacity(ctx context.Context) (int, error) {
	active, err := w.tx.WorkflowAttempt.Query().Where(activeOf(w.run.ID)...).Limit(schedule.MaxActive).IDs(ctx)
	return schedule.MaxActive - len(active), err
}

// plan adds the newly required tasks to the run's plan. tooMany is the reason if that exceeds the limit.
func (w *transition) plan(ctx context.Context, moves schedule.Moves) (tooMany string, err error) {
	if moves.Needs == 0 {
		return "", nil
	}
	needs := w.run.PlannedTasks + moves.Needs
	if needs <= w.engine.maxTasks {
		return "", w.run.Update().SetPlannedTasks(needs).Exec(ctx)
	}
	what := "the way that its condition chose needs"
	if moves.Open != nil {
		what = fmt.Sprintf("its %d branches need at least", moves.Open.Branches)
	}
	return oneLine(fmt.Sprintf("step %s: %s %d more tasks, which makes %d for the run, want at most %d (workflow-max-tasks): do the work in several runs",
		w.label(), what, moves.Needs, needs, w.engine.maxTasks)), nil
}

// activeOf selects the attempts of a run that have not ended, in the form of their index.
func activeOf(runID int64) []predicate.WorkflowAttempt {
	return []predicate.WorkflowAttempt{workflowattempt.RunID(runID), workflowattempt.FinishedAtIsNil()}
}

// prepareTasks prepares the tasks that begin: path, fork, predecessors and preview.
func (w *transition) prepareTasks(ctx context.Context, starts []schedule.Start, fork *ent.WorkflowFork, opened int64, done outcome) ([]newTask, error) {
	tasks := make([]newTask, 0, len(starts))
	for _, s := range starts {
		task := newTask{step: s.Step, path: s.Path, forkID: w.task.ForkID, upstream: []int64{w.task.ID}}
		switch index, _ := schedule.Index(s.Path); {
		case s.Level == schedule.Inner:
			task.forkID = opened
			if index < len(done.items) {
				task.preview = preview(done.items[index])
			}
		case s.Level == schedule.Outer:
			var err error
			task.forkID = fork.ParentID
			if task.upstream, err = w.branchEnds(ctx, fork); err != nil {
				return nil, err
			}
		case s.Path != w.task.Path: // another branch of the same fork
			task.upstream = []int64{fork.TaskID}
		}
		tasks = append(tasks, task)
	}
	return tasks, w.addPreviews(ctx, tasks, fork)
}

// addPreviews fills in the item previews of branches that begin long after their foreach ended.
func (w *transition) addPreviews(ctx context.Context, tasks []newTask, fork *ent.WorkflowFork) error {
	if len(tasks) == 0 || tasks[0].forkID != w.task.ForkID || tasks[0].path == w.task.Path || w.graph.Step(fork.Step).GetType() != schedule.Foreach {
		return nil
	}
	first, _ := schedule.Index(tasks[0].path)
	items, err := itemsOf(ctx, w.tx.Client(), w.run.ID, fork.TaskID, first, first+len(tasks))
	if err != nil {
		return err
	}
	for i := range min(len(tasks), len(items)) {
		tasks[i].preview = preview(items[i])
	}
	return nil
}

// branchEnds returns the predecessors of a join: the last task of each branch. They are read once per fork, when it
// ends.
func (w *transition) branchEnds(ctx context.Context, fork *ent.WorkflowFork) ([]int64, error) {
	before := w.graph.Before(fork.JoinStep)
	ids, err := w.tx.WorkflowTask.Query().Where(
		workflowtask.ForkID(fork.ID), store.OneOf(workflowtask.FieldStep, before), workflowtask.StatusIn(Succeeded, Failed, Error),
	).Order(ent.Asc(workflowtask.FieldID)).IDs(ctx)
	if slices.Contains(before, fork.Step) { // a branch without steps
		ids = append([]int64{fork.TaskID}, ids...)
	}
	return ids, err
}

// begin writes tasks with their first attempts.
func (w *transition) begin(ctx context.Context, tasks []newTask) error {
	for chunk := range slices.Chunk(tasks, 100) {
		creates := make([]*ent.WorkflowTaskCreate, len(chunk))
		for i, t := range chunk {
			creates[i] = w.tx.WorkflowTask.Create().SetRunID(w.run.ID).SetStep(t.step).SetPath(t.path).SetForkID(t.forkID).
				SetBranch(schedule.Branch(t.path)).SetValuePreview(t.preview).SetStatus(Pending).SetExternal(w.external(t.step)).
				SetUpstream(t.upstream).SetAttempts(1).SetCreatedAt(store.Now())
		}
		rows, err := w.tx.WorkflowTask.CreateBulk(creates...).Save(ctx)
		if err != nil {
			return err
		}
		if err := w.attempts(ctx, 0, 0, rows...); err != nil {
			return err
		}
	}
	return nil
}

// external reports whether an internal service runs a step.
func (w *transition) external(name string) bool {
	kind, known := w.engine.kinds[kindName(w.graph.Step(name))]
	return known && kind.Run == nil
}

// attempts creates an attempt with the given index for each task, due after wait.
func (w *transition) attempts(ctx context.Context, wait time.Duration, index int32, tasks ...*ent.WorkflowTask) error {
	due := time.Now().Add(wait)
	creates := make([]*ent.WorkflowAttemptCreate, len(tasks))
	for i, t := range tasks {
		creates[i] = w.tx.WorkflowAttempt.Create().SetRunID(w.run.ID).SetTaskID(t.ID).SetIndex(index).SetStep(t.Step).SetWorkflow(w.run.Workflow).
			SetExternal(t.External).SetStatus(Pending).SetNotBefore(store.Micros(due)).SetCreatedAt(store.Now())
	}
	rows, err := w.tx.WorkflowAttempt.CreateBulk(creates...).Save(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.External {
			continue
		}
		opts := &river.InsertOpts{Queue: attemptQueue, Priority: w.priority(row.Step)}
		if wait > 0 {
			opts.ScheduledAt = due
		}
		if err := w.queue.Enqueue(ctx, argsOf(row), opts); err != nil {
			return err
		}
	}
	return nil
}

// priority runs joins, and the step right after each join, before steps that begin more work. A run that is stopped in
// the middle of a wide foreach then has the results of the branches that it paid for.
func (w *transition) priority(name string) int {
	gathers := func(name string) bool { return w.graph.Step(name).GetType() == schedule.Join }
	if gathers(name) || slices.ContainsFunc(w.graph.Before(name), gathers) {
		return river.PriorityDefault
	}
	return river.PriorityDefault + 1
}

func argsOf(row *ent.WorkflowAttempt) attemptArgs {
	return attemptArgs{DeploymentID: row.DeploymentID, RunID: row.RunID, TaskID: row.TaskID, AttemptID: row.ID}
}
