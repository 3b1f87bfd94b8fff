package workflows_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/ent/workflowtask"
	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/workflows/schedule"
)

// grid is a foreach in a foreach: 40,000 quick steps.
const grid = `
name: grid
targetType: deployment
steps:
  - {name: rows, type: foreach, foreach: "lists.range(200)", next: [columns], matchingJoin: all}
  - {name: columns, type: foreach, foreach: "lists.range(200)", next: [work], matchingJoin: row}
  - {name: work, with: {output: "${{ index }}"}, next: [row]}
  - {name: row, type: join, next: [all]}
  - {name: all, type: join}
`

// cube is a foreach in a foreach in a foreach: 27 million steps.
const cube = `
name: cube
targetType: deployment
steps:
  - {name: a, type: foreach, foreach: "lists.range(300)", next: [b], matchingJoin: a_all}
  - {name: b, type: foreach, foreach: "lists.range(300)", next: [c], matchingJoin: b_all}
  - {name: c, type: foreach, foreach: "lists.range(300)", next: [work], matchingJoin: c_all}
  - {name: work, next: [c_all]}
  - {name: c_all, type: join, next: [b_all]}
  - {name: b_all, type: join, next: [a_all]}
  - {name: a_all, type: join}
`

// waitingJobs counts the jobs of a run that have not begun.
func (f flow) waitingJobs(t testing.TB, run int64) (n int) {
	t.Helper()
	owner := "args->>'run_id'"
	if !f.Store.Postgres() {
		owner = "json_extract(args, '$.run_id')"
	}
	reader, _ := f.Store.DB()
	err := reader.QueryRowContext(t.Context(), fmt.Sprintf("SELECT COUNT(*) FROM river_job WHERE kind = 'workflow_attempt' "+
		"AND state NOT IN ('completed', 'running') AND CAST(%s AS integer) = %d", owner, run)).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A large run of one deployment does not delay other deployments, and leaves nothing behind when it is canceled.
func TestLargeRunBesideAnotherDeployment(t *testing.T) {
	testrun.Deep(t) // measures the latency of a neighbour
	onEachServer(t, func(t *testing.T, f flow) {
		const others = 150 // maximum attempts of the large run (of 40,000) while both steps of the small run wait and run
		f.publish(t, grid)
		neighbour := f.as(f.AddTenant(t, "neighbour"))
		neighbour.publish(t, greeting)
		large := f.trigger(t, `{"workflowType":"grid"}`)
		id, err := strconv.ParseInt(large, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		attempts := f.Store.Reader.WorkflowAttempt
		ctx := f.System(t)
		soon(t, "the large run has as much on its way as it may", func() bool {
			n := attempts.Query().Where(workflowattempt.RunID(id), workflowattempt.StatusIn("pending", "running")).CountX(ctx)
			if n > schedule.MaxActive {
				t.Fatalf("%d attempts wait or run, want at most %d", n, schedule.MaxActive)
			}
			return n == schedule.MaxActive && attempts.Query().Where(workflowattempt.RunID(id), workflowattempt.Step("work"), workflowattempt.FinishedAtNotNil()).ExistX(ctx)
		})
		small := neighbour.trigger(t, `{"workflowType":"greeting","inputs":{"who":"you"}}`)
		neighbour.ended(t, small, "COMPLETED")
		run := f.Store.Reader.WorkflowRun.GetX(ctx, id+1)
		between := attempts.Query().Where(workflowattempt.RunID(id), workflowattempt.StartedAtGT(run.SubmittedAt), workflowattempt.StartedAtLT(*run.FinishedAt)).CountX(ctx)
		t.Logf("the small run took %s; the large one began %d attempts meanwhile", time.Duration(*run.FinishedAt-run.SubmittedAt)*time.Microsecond, between)
		if between > others {
			t.Errorf("the large run began %d attempts before the small one had made two, want at most %d", between, others)
		}

		begun := time.Now()
		f.do(t, http.MethodPost, f.path("/jobs/id/"+large+"/cancel"), `{}`, http.StatusOK)
		t.Logf("cancelled in %s", time.Since(begun))
		if n := f.waitingJobs(t, id); n != 0 {
			t.Errorf("%d jobs of the cancelled run wait", n)
		}
		f.ended(t, large, "CANCELLED")
		left := f.Store.Reader.WorkflowTask.Query().Where(workflowtask.RunID(id), workflowtask.StatusIn("pending", "running")).CountX(ctx)
		left += attempts.Query().Where(workflowattempt.RunID(id), workflowattempt.FinishedAtIsNil()).CountX(ctx)
		if left != 0 {
			t.Errorf("%d tasks and attempts of the cancelled run are not final", left)
		}
	})
}

// A run of 27 million steps fails as soon as its size is known, gives the reason, and is quick to read.
func TestRunThatIsTooLarge(t *testing.T) {
	testrun.Deep(t) // has very many rows
	onEachServer(t, func(t *testing.T, f flow) {
		f.publish(t, cube)
		job := f.trigger(t, `{"workflowType":"cube"}`)
		f.ended(t, job, "FAILED")
		var answer struct{ Metadata struct{ Status string } }
		if err := json.Unmarshal([]byte(f.do(t, http.MethodGet, f.path("/jobs/id/"+job+"/overview"), "", http.StatusOK)), &answer); err != nil {
			t.Fatal(err)
		}
		want := "): its 300 branches need at least 600 more tasks, which makes 100202 for the run, want at most 100000 (workflow-max-tasks): do the work in several runs"
		if got := answer.Metadata.Status; !strings.HasPrefix(got, "failed: step b (a[") || !strings.HasSuffix(got, want) {
			t.Errorf("status: %s", got)
		}
		ctx := f.System(t)
		run := f.Store.Reader.WorkflowRun.Query().OnlyX(ctx)
		made := f.Store.Reader.WorkflowTask.Query().CountX(ctx)
		begun := time.Now()
		graph := f.graph(t, job)
		t.Logf("failed after %s and %d tasks; its graph took %s", time.Duration(*run.FinishedAt-run.SubmittedAt)*time.Microsecond, made, time.Since(begun))
		if made > 2000 || len(graph.Tasks) == 0 {
			t.Errorf("%d tasks were made, %d are shown", made, len(graph.Tasks))
		}
		if n := f.waitingJobs(t, run.ID); n != 0 {
			t.Errorf("%d jobs of the failed run wait", n)
		}
	})
}
