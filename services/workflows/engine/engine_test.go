package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowartifact"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/ent/workflowfork"
	"github.com/palisade/palisade/ent/workflowtask"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

func workflow(steps string) string {
	return "name: sample\ntargetType: deployment\ninputs:\n  - {name: n, type: integer, default: 3}\nsteps:\n" + steps
}

const everyType = `
  - {name: start, with: {output: [a, b]}, next: [decide]}
  - {name: decide, type: switch, condition: "inputs.n > 2", cases: {"true": units, default: nothing}}
  - {name: nothing, next: [end]}
  - {name: units, type: foreach, foreach: steps.start.output, next: [checks], matchingJoin: collected}
  - {name: checks, type: split, next: [upper, copies], matchingJoin: checked}
  - {name: upper, with: {output: "${{ item.upperAscii() }}${{ index }}"}, next: [checked]}
  - {name: copies, type: parallel, numParallel: 2, next: [copy], matchingJoin: copied}
  - {name: copy, with: {output: "${{ item + string(index) }}"}, next: [copied]}
  - {name: copied, type: join, with: {output: "${{ branches.map(b, b.output) }}"}, next: [checked]}
  - {name: checked, type: join, with: {output: "${{ branches }}"}, next: [collected]}
  - {name: collected, type: join, with: {output: "${{ branches.map(b, b.output) }}"}, next: [end]}
  - {name: end, with: {output: {all: "${{ steps.collected.output.size() }}", run: "${{ run.workflow }}", first: "${{ steps.start.output[0] }}"}}}
`

func TestEveryTypeOfStep(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.ended(f.run(workflow(everyType), 0), Completed)
		f.same("tasks", f.tasks(run), []string{
			"checked units[0] succeeded", "checked units[1] succeeded", "checks units[0] succeeded", "checks units[1] succeeded",
			"collected succeeded", "copied units[0]/checks.copies succeeded", "copied units[1]/checks.copies succeeded",
			"copies units[0]/checks.copies succeeded", "copies units[1]/checks.copies succeeded",
			"copy units[0]/checks.copies/copies[0] succeeded", "copy units[0]/checks.copies/copies[1] succeeded",
			"copy units[1]/checks.copies/copies[0] succeeded", "copy units[1]/checks.copies/copies[1] succeeded",
			"decide succeeded", "end succeeded", "start succeeded", "units succeeded",
			"upper units[0]/checks.upper succeeded", "upper units[1]/checks.upper succeeded",
		})
		if got, want := f.output(run, "end", ""), `{"all":2,"first":"a","run":"sample"}`; got != want {
			t.Errorf("end: %s, want %s", got, want)
		}
		want := `[{"key":"upper","output":"B1","status":"succeeded"},{"key":"copies","output":["b0","b1"],"status":"succeeded"}]`
		if got := f.output(run, "checked", "units[1]"); got != want {
			t.Errorf("checked: %s, want %s", got, want)
		}
		row := f.store.Reader.WorkflowTask.Query().Where(workflowtask.RunID(run.ID), workflowtask.Step("checks"), workflowtask.Path("units[1]")).OnlyX(f.ctx)
		if row.Branch != "1" || row.ValuePreview != `"b"` || len(row.Upstream) != 1 {
			t.Errorf("the second unit: branch %q, value %q, after %v", row.Branch, row.ValuePreview, row.Upstream)
		}
		if twice := f.kinds.twice(); len(twice) > 0 {
			t.Errorf("ran twice: %v", twice)
		}
	})
}

// A list longer than MaxActive, an empty list, and a join that reads all branches.
func TestWideAndEmptyForeach(t *testing.T) {
	testrun.Deep(t) // has very many rows
	onEachStore(t, func(t *testing.T, f *fixture) {
		n := testrun.Size(300, 1500)
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprint(i)
		}
		run := f.ended(f.run(workflow(`
  - {name: start, with: {output: [`+strings.Join(items, ",")+`]}, next: [each]}
  - {name: each, type: foreach, foreach: steps.start.output, next: [work], matchingJoin: all}
  - {name: work, with: {output: "${{ item * 2 }}"}, next: [all]}
  - {name: all, type: join, with: {output: "${{ branches.map(b, b.output) }}"}, next: [none]}
  - {name: none, type: foreach, foreach: "[]", next: [never], matchingJoin: end}
  - {name: never, next: [end]}
  - {name: end, type: join, with: {output: "${{ [branches.size(), steps.all.output.size(), steps.all.output[`+fmt.Sprint(n-1)+`]] }}"}}
`), 0), Completed)
		if got := f.output(run, "end", ""); got != fmt.Sprintf("[0,%d,%d]", n, 2*n-2) {
			t.Errorf("end: %s", got)
		}
		if got := f.store.Reader.WorkflowTask.Query().Where(workflowtask.RunID(run.ID)).CountX(f.ctx); got != n+5 {
			t.Errorf("%d tasks", got)
		}
		fork := f.store.Reader.WorkflowFork.Query().Where(workflowfork.RunID(run.ID), workflowfork.Step("each")).OnlyX(f.ctx)
		if fork.Arrived != int32(n) || fork.Started != int32(n) || fork.Branches != int32(n) {
			t.Errorf("the fork: %+v", fork)
		}
		last := f.store.Reader.WorkflowTask.Query().Where(workflowtask.RunID(run.ID), workflowtask.Path(fmt.Sprintf("each[%d]", n-1))).OnlyX(f.ctx)
		if last.ValuePreview != fmt.Sprint(n-1) || !slices.Equal(last.Upstream, []int64{fork.TaskID}) {
			t.Errorf("the last branch: %q after %v", last.ValuePreview, last.Upstream)
		}
		if twice := f.kinds.twice(); len(twice) > 0 {
			t.Errorf("ran twice: %v", twice)
		}
	})
}

func TestRetries(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.ended(f.run(workflow(`
  - {name: flaky, uses: fail, with: {until: 2}, retries: 2, next: [end]}
  - {name: end}
`), 0), Completed)
		f.same("attempts", f.attempts(run, "flaky"), []string{"0 failed: not this time", "1 failed: not this time", "2 succeeded: "})
		if run.CostUsd < 0.019 || run.CostUsd > 0.021 {
			t.Errorf("failed attempts cost too: %g", run.CostUsd)
		}

		run = f.ended(f.run(workflow(`
  - {name: flaky, uses: fail, retries: 1, next: [end]}
  - {name: end}
`), 0), Failed)
		f.same("attempts", f.attempts(run, "flaky"), []string{"0 failed: not this time", "1 failed: not this time"})
		f.same("tasks", f.tasks(run), []string{"flaky failed"})
		if run.Error != "step flaky failed: not this time" {
			t.Errorf("error: %q", run.Error)
		}

		run = f.ended(f.run(workflow(`
  - {name: broken, uses: fail, with: {permanent: true}, retries: 5, next: [end]}
  - {name: end}
`), 0), Failed)
		f.same("a permanent error is not tried again", f.attempts(run, "broken"), []string{"0 failed: it can never work"})
	})
}

// A timeout and a panic are errors with their own retry limit.
func TestLostAttempts(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.ended(f.run(workflow(`
  - {name: slow, uses: wait, timeout: 1s, next: [end]}
  - {name: end}
`), 0), Failed)
		late := ": the step took longer than its time-out of 1s"
		f.same("attempts", f.attempts(run, "slow"), []string{"0 error" + late, "1 error" + late, "2 error" + late})
		f.same("tasks", f.tasks(run), []string{"slow error"})

		run = f.ended(f.run(workflow(`
  - {name: bad, uses: panic, continueOnError: true, next: [end]}
  - {name: end, with: {output: "${{ [steps.bad.output == null, steps.bad.status] }}"}}
`), 0), Completed)
		if got := len(f.attempts(run, "bad")); got != 3 {
			t.Errorf("%d attempts", got)
		}
		if got := f.output(run, "end", ""); got != `[true,"error"]` {
			t.Errorf("end: %s", got)
		}
	})
}

func TestContinueOnError(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.ended(f.run(workflow(`
  - {name: each, type: foreach, foreach: "[0, 5]", next: [work], matchingJoin: all}
  - {name: work, uses: fail, with: {until: "${{ item }}"}, continueOnError: true, next: [all]}
  - {name: all, type: join, with: {output: "${{ branches.map(b, b.status) }}"}}
`), 0), Completed)
		f.same("tasks", f.tasks(run), []string{"all succeeded", "each succeeded", "work each[0] succeeded", "work each[1] failed"})
		if got := f.output(run, "all", ""); got != `["succeeded","failed"]` {
			t.Errorf("join: %s", got)
		}
	})
}

// A failure stops waiting and running tasks.
func TestFailFast(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.ended(f.run(workflow(`
  - {name: fork, type: split, next: [slow, broken, out], matchingJoin: end}
  - {name: slow, uses: wait, next: [end]}
  - {name: out, uses: external, next: [end]}
  - {name: broken, uses: fail, next: [end]}
  - {name: end, type: join}
`), 0), Failed)
		got := f.tasks(run)
		got = slices.DeleteFunc(got, func(task string) bool { return strings.HasPrefix(task, "slow") }) // started or not
		f.same("tasks", got, []string{"broken fork.broken failed", "fork succeeded", "out fork.out skipped"})
	})
}

func TestBudget(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.ended(f.run(workflow(`
  - {name: cheap, with: {cost: 0.02}, next: [dear]}
  - {name: dear, with: {cost: 0.05}, next: [end]}
  - {name: end}
`), 5), Failed)
		f.same("tasks", f.tasks(run), []string{"cheap succeeded", "dear succeeded"})
		if run.Error != "the budget of 5 credits is used up" || run.CostCredits < 6.99 || run.CostCredits > 7.01 {
			t.Errorf("%q after %g credits", run.Error, run.CostCredits)
		}
	})
}

func TestCancel(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.run(workflow(`
  - {name: slow, uses: wait, next: [end]}
  - {name: end}
`), 0)
		<-f.kinds.begun
		err := f.store.Write(f.ctx, func(ctx context.Context, tx *ent.Tx) error {
			_, _, err := f.engine.Cancel(ctx, tx, f.queue, run.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		run = f.ended(run, Cancelled)
		f.same("tasks", f.tasks(run), []string{"slow error"})
		f.same("attempts", f.attempts(run, "slow"), []string{"0 error: the run was cancelled"})
		close(f.kinds.release) // too late: the result is dropped
		if err := f.stop(testTimeout); err != nil {
			t.Fatal(err)
		}
		f.same("tasks afterwards", f.tasks(run), []string{"slow error"})
	})
}

// A server that stops returns its attempts; another one continues at once.
func TestStop(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.run(workflow(`
  - {name: slow, uses: wait, next: [end]}
  - {name: end, with: {output: "${{ steps.slow.output }}"}}
`), 0)
		<-f.kinds.begun
		if err := f.stop(10 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		f.same("attempts", f.attempts(run, "slow"), []string{"0 error: the server was stopped", "1 pending: "})
		close(f.kinds.release)
		f.start(f.store)
		run = f.ended(run, Completed)
		f.same("attempts", f.attempts(run, "slow"), []string{"0 error: the server was stopped", "1 succeeded: "})
		if task := f.store.Reader.WorkflowTask.Query().Where(workflowtask.RunID(run.ID), workflowtask.Step("slow")).OnlyX(f.ctx); task.Lost != 0 {
			t.Errorf("a stop counts as %d lost attempts", task.Lost)
		}
	})
}

// An attempt is free after its worker's lease expires. A late result of the worker is dropped.
func TestLostLease(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.run(workflow(`
  - {name: slow, uses: deaf, next: [end]}
  - {name: end}
`), 0)
		<-f.kinds.begun
		err := f.store.Write(f.ctx, func(ctx context.Context, tx *ent.Tx) error {
			if err := tx.WorkflowAttempt.Update().Where(workflowattempt.Status(Running)).SetLeaseUntil(1).Exec(ctx); err != nil {
				return err
			}
			return f.queue.Enqueue(ctx, sweepArgs{}, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		<-f.kinds.begun // the second attempt
		close(f.kinds.release)
		run = f.ended(run, Completed)
		f.same("attempts", f.attempts(run, "slow"), []string{"0 error: the worker was not heard of for too long", "1 succeeded: "})
		if twice := f.kinds.twice(); len(twice) > 0 {
			t.Errorf("ran twice: %v", twice)
		}
	})
}

// Artifacts of runs that ended long ago are deleted; others stay.
func TestForget(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		old := f.ended(f.run(workflow("  - {name: only, with: {output: 1}}\n"), 0), Completed)
		between := time.Now()
		young := f.ended(f.run(workflow("  - {name: only, with: {output: 2}}\n"), 0), Completed)
		if err := f.engine.deleteArtifacts(f.ctx, between); err != nil {
			t.Fatal(err)
		}
		for run, want := range map[int64]int{old.ID: 0, young.ID: 1} {
			if got := f.store.Reader.WorkflowArtifact.Query().Where(workflowartifact.RunID(run)).CountX(f.ctx); got != want {
				t.Errorf("run %d has %d artifacts, want %d", run, got, want)
			}
		}
	})
}

// Two servers share the runs of one database: each attempt runs once.
func TestTwoNodes(t *testing.T) {
	testrun.Deep(t) // waits for leases
	t.Parallel()
	f := newFixture(t, store.Options{Database: storetest.Postgres(t), MaxOpen: 12})
	f.start(f.open())
	var runs []*ent.WorkflowRun
	for range 5 {
		runs = append(runs, f.run(workflow(`
  - {name: each, type: foreach, foreach: "lists.range(30)", next: [fork], matchingJoin: all}
  - {name: fork, type: split, next: [left, right], matchingJoin: both}
  - {name: left, with: {output: "${{ item }}"}, next: [both]}
  - {name: right, with: {output: "${{ item }}"}, next: [both]}
  - {name: both, type: join, next: [all]}
  - {name: all, type: join}
`), 0))
	}
	for _, run := range runs {
		run = f.ended(run, Completed)
		if got := len(f.tasks(run)); got != 30*4+2 {
			t.Errorf("%d tasks", got)
		}
	}
	if twice := f.kinds.twice(); len(twice) > 0 {
		t.Errorf("ran twice: %v", twice)
	}
	nodes := map[string]bool{}
	for _, worker := range f.store.Reader.WorkflowAttempt.Query().Select(workflowattempt.FieldWorker).StringsX(f.ctx) {
		name, _, _ := strings.Cut(worker, "/")
		nodes[name] = true
	}
	if len(nodes) != 2 {
		t.Errorf("%d nodes have worked, want 2", len(nodes))
	}
}

// If a worker dies between taking the job and taking the attempt, the job is enqueued again, once.
func TestLostJob(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		if err := f.stop(testTimeout); err != nil {
			t.Fatal(err)
		}
		run := f.run(workflow("  - {name: only}\n"), 0)
		_, writer := f.store.DB()
		taken := time.Now().Add(-2 * time.Minute).UTC().Format("2006-01-02 15:04:05.000")
		if f.store.Postgres() {
			taken += "+00"
		}
		for _, statement := range []string{
			"UPDATE river_job SET state = 'running', attempt = 1, attempted_at = '" + taken + "' WHERE kind = 'workflow_attempt'",
			"UPDATE workflow_attempts SET not_before = 1",
		} {
			if _, err := writer.ExecContext(f.ctx, statement); err != nil {
				t.Fatal(err)
			}
		}
		f.start(f.store)
		f.same("tasks", f.tasks(f.ended(run, Completed)), []string{"only succeeded"})
		var jobs int
		if err := writer.QueryRowContext(f.ctx, "SELECT COUNT(*) FROM river_job WHERE kind = 'workflow_attempt'").Scan(&jobs); err != nil || jobs != 2 {
			t.Errorf("%d jobs, want the lost one and another: %v", jobs, err)
		}
		if twice := f.kinds.twice(); len(twice) > 0 {
			t.Errorf("ran twice: %v", twice)
		}
	})
}
