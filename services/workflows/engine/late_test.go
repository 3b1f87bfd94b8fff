package engine

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/ent/workflowtask"
)

// A result after the run was canceled is dropped, but its cost is counted.
func TestCostOfDroppedAttempt(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.run(workflow(`
  - {name: fork, type: split, next: [slow, cheap], matchingJoin: end}
  - {name: slow, uses: late, next: [end]}
  - {name: cheap, with: {cost: 0.01}, next: [end]}
  - {name: end, type: join}
`), 0)
		<-f.kinds.begun
		f.eventually("the other step has ended", func() bool {
			return f.store.Reader.WorkflowTask.Query().Where(workflowtask.Step("cheap"), workflowtask.Status(Succeeded)).CountX(f.ctx) == 1
		})
		err := f.store.Write(f.ctx, func(ctx context.Context, tx *ent.Tx) error {
			_, _, err := f.engine.Cancel(ctx, tx, f.queue, run.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := f.ended(run, Cancelled)
		f.eventually("the cost is counted", func() bool {
			ended = f.store.Reader.WorkflowRun.GetX(f.ctx, run.ID)
			return math.Abs(ended.CostCredits-4) < 1e-9
		})
		if err := f.stop(testTimeout); err != nil { // no more results can arrive
			t.Fatal(err)
		}
		attempt := f.store.Reader.WorkflowAttempt.Query().Where(workflowattempt.Step("slow")).OnlyX(f.ctx)
		task := f.store.Reader.WorkflowTask.GetX(f.ctx, attempt.TaskID)
		last := f.store.Reader.WorkflowRun.GetX(f.ctx, run.ID)
		if attempt.CostCredits != 3 || task.CostCredits != 3 || math.Abs(last.CostUsd-0.04) > 1e-9 || last.Status != Cancelled {
			t.Errorf("attempt %g, task %g, run %g of a run that is %s", attempt.CostCredits, task.CostCredits, last.CostUsd, last.Status)
		}
		f.same("attempts", f.attempts(run, "slow"), []string{"0 error: the run was cancelled"})
	})
}

// A step that succeeds while the server stops counts as succeeded.
func TestSuccessDuringStop(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.run(workflow(`
  - {name: start, with: {output: [0]}, next: [each]}
  - {name: each, type: foreach, uses: late, foreach: steps.start.output + steps.each.output, next: [work], matchingJoin: end}
  - {name: work, with: {output: "${{ item }}"}, next: [end]}
  - {name: end, type: join, with: {output: "${{ branches.map(b, b.output) }}"}}
`), 0)
		<-f.kinds.begun
		if err := f.stop(10 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		f.same("attempts", f.attempts(run, "each"), []string{"0 succeeded: "})
		f.start(f.store)
		run = f.ended(run, Completed)
		if got := f.output(run, "end", ""); got != "[0,1,2]" {
			t.Errorf("end: %s", got)
		}
	})
}

// A read error of the server is not a failure of the step: the attempt is repeated without using a retry.
func TestUnreadableScope(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		if err := f.stop(testTimeout); err != nil {
			t.Fatal(err)
		}
		run := f.run(workflow("  - {name: only, with: {output: \"${{ inputs.n }}\"}}\n"), 0)
		_, writer := f.store.DB()
		if _, err := writer.ExecContext(f.ctx, "UPDATE workflow_runs SET inputs = 'x'"); err != nil {
			t.Fatal(err)
		}
		f.start(f.store)
		f.ended(run, Failed)
		unread := " error: " + errTransient.Error()
		f.same("attempts", f.attempts(run, "only"), []string{"0" + unread, "1" + unread, "2" + unread})
	})
}

// A run without a budget ends at the attempt limit.
func TestMaxAttempts(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		if err := f.stop(testTimeout); err != nil {
			t.Fatal(err)
		}
		run := f.run(workflow("  - {name: begin, next: [end]}\n  - {name: end}\n"), 0)
		_, writer := f.store.DB()
		if _, err := writer.ExecContext(f.ctx, "UPDATE workflow_runs SET revision = 2000000"); err != nil {
			t.Fatal(err)
		}
		f.start(f.store)
		run = f.ended(run, Failed)
		f.same("tasks", f.tasks(run), []string{"begin succeeded"})
		if run.Error != "the run has made more than 1000000 attempts" {
			t.Errorf("error: %q", run.Error)
		}
	})
}
