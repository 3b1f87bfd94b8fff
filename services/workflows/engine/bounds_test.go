package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/ent/workflowtask"
	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/workflows/schedule"
)

// nested is a foreach in a foreach with an innermost step of the given kind.
func nested(outer, inner int, uses string) string {
	return workflow(fmt.Sprintf(`
  - {name: rows, type: foreach, foreach: "lists.range(%d)", next: [columns], matchingJoin: all}
  - {name: columns, type: foreach, foreach: "lists.range(%d)", next: [fork], matchingJoin: row}
  - {name: fork, type: split, next: [left, right], matchingJoin: both}
  - {name: left, uses: %s, next: [both]}
  - {name: right, uses: %s, next: [both]}
  - {name: both, type: join, next: [row]}
  - {name: row, type: join, with: {output: "${{ branches.size() }}"}, next: [all]}
  - {name: all, type: join, with: {output: "${{ branches.map(b, b.output) }}"}}
`, outer, inner, uses, uses))
}

// active counts attempts of a run that wait or run, waiting its jobs that have not begun, and queued its jobs that have
// not ended.
func (f *fixture) active(run *ent.WorkflowRun) int {
	f.t.Helper()
	return f.store.Reader.WorkflowAttempt.Query().Where(workflowattempt.RunID(run.ID), workflowattempt.StatusIn(Pending, Running)).CountX(f.ctx)
}

func (f *fixture) waiting(run *ent.WorkflowRun) int {
	f.t.Helper()
	return f.jobs(run, "'available', 'scheduled', 'retryable', 'pending'")
}

func (f *fixture) queued(run *ent.WorkflowRun) int {
	f.t.Helper()
	return f.jobs(run, "'available', 'scheduled', 'retryable', 'pending', 'running'")
}

func (f *fixture) jobs(run *ent.WorkflowRun, states string) (n int) {
	f.t.Helper()
	owner := "args->>'run_id'"
	if !f.store.Postgres() {
		owner = "json_extract(args, '$.run_id')"
	}
	reader, _ := f.store.DB()
	query := fmt.Sprintf("SELECT COUNT(*) FROM river_job WHERE kind = 'workflow_attempt' AND state IN (%s) AND CAST(%s AS integer) = %d", states, owner, run.ID)
	if err := reader.QueryRowContext(f.ctx, query).Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

func (f *fixture) cancel(run *ent.WorkflowRun) {
	f.t.Helper()
	err := f.store.Write(f.ctx, func(ctx context.Context, tx *ent.Tx) error {
		_, _, err := f.engine.Cancel(ctx, tx, f.queue, run.ID)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// With nested forks of any depth, a run has a bounded number of open attempts, and completes.
func TestActiveAttemptsAreBounded(t *testing.T) {
	testrun.Deep(t) // has very many rows
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.run(nested(testrun.Size(20, 60), 40, "external"), 0)
		f.eventually("only external steps are left", func() bool { return f.queued(run) == 0 && f.active(run) == schedule.MaxActive })
		for range 30 {
			claim, err := f.engine.Claim(f.ctx, f.queue, Wanted{Lease: time.Minute})
			if err != nil || claim == nil {
				t.Fatal(claim, err)
			}
			if err := f.engine.Complete(f.ctx, f.queue, claim.Task.ID, claim.Token, Report{Succeeded: true}); err != nil {
				t.Fatal(err)
			}
			if n := f.active(run); n > schedule.MaxActive {
				t.Fatalf("%d attempts wait or run, want at most %d", n, schedule.MaxActive)
			}
		}
		f.cancel(run)
		f.ended(run, Cancelled)

		side := testrun.Size(8, 12)
		run = f.run(nested(side, side, "pass"), 0)
		run = f.ended(run, Completed)
		if got := f.output(run, "all", ""); strings.Count(got, fmt.Sprint(side)) != side {
			t.Errorf("rows: %s", got)
		}
		if made := f.store.Reader.WorkflowTask.Query().Where(workflowtask.RunID(run.ID)).CountX(f.ctx); made != side*side*4+side*2+2 || run.PlannedTasks != int64(made) {
			t.Errorf("%d tasks were made, %d were planned", made, run.PlannedTasks)
		}
	})
}

// A run that needs too many tasks fails as soon as that is known, before the tasks are created.
func TestRunThatNeedsTooManyTasks(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		const cube = `
  - {name: a, type: foreach, foreach: "lists.range(300)", next: [b], matchingJoin: a_all}
  - {name: b, type: foreach, foreach: "lists.range(300)", next: [c], matchingJoin: b_all}
  - {name: c, type: foreach, foreach: "lists.range(300)", next: [work], matchingJoin: c_all}
  - {name: work, uses: wait, next: [c_all]}
  - {name: c_all, type: join, next: [b_all]}
  - {name: b_all, type: join, next: [a_all]}
  - {name: a_all, type: join}
`
		run := f.ended(f.run(workflow(cube), 0), Failed)
		want := "300 branches need at least 600 more tasks, which makes 20402 for the run, want at most 20000 (workflow-max-tasks)"
		if !strings.HasPrefix(run.Error, "step b (a[") || !strings.Contains(run.Error, want) {
			t.Errorf("error: %q", run.Error)
		}
		if made := f.store.Reader.WorkflowTask.Query().Where(workflowtask.RunID(run.ID)).CountX(f.ctx); made > 1000 {
			t.Errorf("%d tasks were made", made)
		}
		if n := f.waiting(run); n != 0 {
			t.Errorf("%d jobs wait of a run that has failed", n)
		}

		run = f.ended(f.run(workflow(`
  - {name: each, type: foreach, foreach: "lists.range(60)", next: [choose], matchingJoin: all}
  - {name: choose, type: switch, condition: index, cases: {"1": long, default: short}}
  - {name: short, next: [done]}
  - {name: long, next: [longer]}
  - {name: longer, next: [longest]}
  - {name: longest, next: [done]}
  - {name: done, type: linear, next: [all]}
  - {name: all, type: join}
`), 0), Completed)
		if run.PlannedTasks != 3*60+2+2 {
			t.Errorf("%d tasks were planned", run.PlannedTasks)
		}
	})
}

// A workflow that always needs too many tasks is rejected before a run begins.
func TestWorkflowThatNeedsTooManyTasks(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		_, err := f.tryRun(workflow(`
  - {name: a, type: parallel, numParallel: 1000, next: [b], matchingJoin: a_all}
  - {name: b, type: parallel, numParallel: 1000, next: [work], matchingJoin: b_all}
  - {name: work, next: [b_all]}
  - {name: b_all, type: join, next: [a_all]}
  - {name: a_all, type: join}
`), 0)
		if err == nil || !strings.Contains(err.Error(), `the workflow needs at least 1002002 tasks, want at most 20000 (workflow-max-tasks)`) {
			t.Errorf("error: %v", err)
		}
	})
}

// A canceled run leaves no jobs in the queue, and none come back: waiting attempts, attempts in backoff, and attempts
// of a dead worker.
func TestCancelEmptiesTheQueue(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		if err := f.stop(testTimeout); err != nil {
			t.Fatal(err)
		}
		lost, run := f.run(workflow("  - {name: only}\n"), 0), f.run(workflow("  - {name: only}\n"), 0)
		_, writer := f.store.DB()
		taken := time.Now().Add(-2 * time.Minute).UTC().Format("2006-01-02 15:04:05.000")
		if f.store.Postgres() {
			taken += "+00"
		}
		for _, statement := range []string{
			"UPDATE river_job SET state = 'running', attempt = 1, attempted_at = '" + taken + "' WHERE id = (SELECT MIN(id) FROM river_job WHERE kind = 'workflow_attempt')",
			"UPDATE workflow_attempts SET not_before = 1",
		} {
			if _, err := writer.ExecContext(f.ctx, statement); err != nil {
				t.Fatal(err)
			}
		}
		if f.queued(lost) != 1 || f.waiting(run) != 1 {
			t.Fatal("the jobs are not there")
		}
		f.cancel(lost)
		f.cancel(run)
		if n := f.waiting(run); n != 0 {
			t.Errorf("%d jobs wait of the cancelled run", n)
		}
		node := f.start(f.store)
		f.eventually("the sweeper has run", func() bool {
			var n int
			err := writer.QueryRowContext(f.ctx, "SELECT COUNT(*) FROM river_job WHERE kind = 'workflow_sweep' AND state = 'completed'").Scan(&n)
			return err == nil && n > 0
		})
		if n := f.queued(lost); n != 1 {
			t.Errorf("%d jobs of the run whose job was lost, want that one", n)
		}
		if err := node.stop(testTimeout); err != nil {
			t.Fatal(err)
		}
		f.same("tasks", append(f.tasks(lost), f.tasks(run)...), []string{"only skipped", "only skipped"})
	})
}

// A run that began before the limit existed continues.
func TestRunFromBefore(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		run := f.run(workflow(fmt.Sprintf(`
  - {name: first, uses: wait, next: [each]}
  - {name: each, type: foreach, foreach: "lists.range(%d)", next: [work], matchingJoin: all}
  - {name: work, next: [all]}
  - {name: all, type: join}
`, schedule.MaxActive+10)), 0)
		<-f.kinds.begun
		err := f.store.Write(f.ctx, func(ctx context.Context, tx *ent.Tx) error {
			return tx.WorkflowRun.UpdateOneID(run.ID).SetPlannedTasks(0).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		close(f.kinds.release)
		f.ended(run, Completed)
	})
}

// Claims serve all runs in turn, for any number of tasks.
func TestRunsTakeTurnsAtClaims(t *testing.T) {
	onEachStore(t, func(t *testing.T, f *fixture) {
		const wide = `
  - {name: each, type: foreach, foreach: "lists.range(%d)", next: [work], matchingJoin: all}
  - {name: work, uses: external, next: [all]}
  - {name: all, type: join}
`
		var runs []*ent.WorkflowRun
		for _, n := range []int{500, 3, 1, 400} {
			runs = append(runs, f.run(workflow(fmt.Sprintf(wide, n)), 0))
		}
		f.eventually("all wait for claims", func() bool {
			sum := 0
			for _, run := range runs {
				sum += f.active(run)
			}
			return sum == 2*schedule.MaxActive+4
		})
		got := map[int64]int{}
		for range 8 {
			claim, err := f.engine.Claim(f.ctx, f.queue, Wanted{Lease: time.Minute, Steps: []string{"work"}})
			if err != nil || claim == nil {
				t.Fatal(claim, err)
			}
			got[claim.Run.ID]++
		}
		want := map[int64]int{runs[0].ID: 3, runs[1].ID: 2, runs[2].ID: 1, runs[3].ID: 2}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("claims by run: %v, want %v", got, want)
		}
		// Other claim criteria have their own turns and start with the first run.
		if claim, err := f.engine.Claim(f.ctx, f.queue, Wanted{Lease: time.Minute}); err != nil || claim.Run.ID != runs[0].ID {
			t.Errorf("another caller: %v, %v", claim, err)
		}
	})
}
