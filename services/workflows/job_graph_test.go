package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowrun"
	"github.com/palisade/palisade/ent/workflowtask"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/workflows"
)

func graphPath(deploymentID, jobID int64, query string) string {
	return jobsPath(deploymentID, fmt.Sprintf("/id/%d/graph%s", jobID, query))
}

func TestJobGraph(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := runFixture{s}
		client := workflowsv1.NewWorkflowJobsServiceClient(s.Conn)
		version, gone := w.addVersion(t, s.DeploymentID, 1, true), w.addVersion(t, s.DeploymentID, 2, false)
		running := w.addAudit(t, s.DeploymentID, version)
		done := w.addRun(t, s.DeploymentID, gone, func(c *ent.WorkflowRunCreate) {
			c.SetStatus("completed").SetStartedAt(began + 1).SetFinishedAt(began + 2)
		})
		for _, task := range []string{"plan", "units", "judge units[0]", "collect", "decide", "skip", "done"} {
			step, path, _ := strings.Cut(task, " ")
			w.addTask(t, s.DeploymentID, done, step, path, "succeeded")
		}
		failed := w.addRun(t, s.DeploymentID, version+100, func(c *ent.WorkflowRunCreate) { c.SetStatus("failed").SetFinishedAt(began + 2) })
		w.addTask(t, s.DeploymentID, failed, "plan", "", "error")
		w.addTask(t, s.DeploymentID, failed, "units", "", "skipped")
		submitted := w.addRun(t, s.DeploymentID, version, nil)
		for name, id := range map[string]int64{"running": running, "completed": done, "failed_no_version": failed, "submitted": submitted} {
			body := s.Get(t, graphPath(s.DeploymentID, id, ""))
			apitest.Golden(t, "job_graph_"+name, body)
			response, err := client.GetWorkflowJobGraph(s.Context(t, s.Token),
				&workflowsv1.GetWorkflowJobGraphRequest{DeploymentId: s.DeploymentID, JobId: fmt.Sprint(id)})
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, response, body)
		}
	})
}

// graphAnswer holds the fields of an answer that tests compare.
type graphAnswer struct {
	Graph struct {
		Steps []struct {
			StepID  string   `json:"stepId"`
			TaskIDs []string `json:"taskIds"`
		}
		Tasks []struct {
			TaskID   string `json:"taskId"`
			StepID   string `json:"stepId"`
			Attempts []any
		}
	}
	Cursor string
}

func TestJobGraphPages(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := runFixture{s}
		run := w.addAudit(t, s.DeploymentID, w.addVersion(t, s.DeploymentID, 1, true))
		pages := func(query string) (tasks []string) {
			cursor := ""
			for pages := 1; ; pages++ {
				var answer graphAnswer
				if err := json.Unmarshal([]byte(s.Get(t, graphPath(s.DeploymentID, run, query+"&cursor="+url.QueryEscape(cursor)))), &answer); err != nil {
					t.Fatal(err)
				}
				shown := 0
				for _, step := range answer.Graph.Steps {
					shown += len(step.TaskIDs)
				}
				if len(answer.Graph.Steps) != len(auditSteps) || shown != len(answer.Graph.Tasks) {
					t.Fatalf("a page with %d steps and %d of %d ids", len(answer.Graph.Steps), shown, len(answer.Graph.Tasks))
				}
				for _, task := range answer.Graph.Tasks {
					if len(task.Attempts) != 1 {
						t.Errorf("task %s has %d attempts", task.TaskID, len(task.Attempts))
					}
					tasks = append(tasks, task.StepID)
				}
				if cursor = answer.Cursor; cursor == "" {
					return tasks
				}
				if pages > 10 {
					t.Fatal("the pages do not end")
				}
			}
		}
		if got := strings.Join(pages("?limit=2"), " "); got != "plan units judge judge judge judge" {
			t.Errorf("by two: %s", got)
		}
		if got := strings.Join(pages("?limit=3&stepId=judge"), " "); got != "judge judge judge judge" {
			t.Errorf("of one step: %s", got)
		}
		if got := pages("?stepId=unknown"); len(got) != 0 {
			t.Errorf("of no step: %s", got)
		}
		var first graphAnswer
		if err := json.Unmarshal([]byte(s.Get(t, graphPath(s.DeploymentID, run, "?limit=2"))), &first); err != nil {
			t.Fatal(err)
		}
		for query, want := range map[string]string{
			"?limit=1001": "limit", "?limit=-1": "limit", "?limit=x": "limit", "?cursor=x": "INVALID_CURSOR",
			"?stepId=judge&cursor=" + first.Cursor: "INVALID_CURSOR",
		} {
			if answer := s.Do(t, s.Token, "GET", graphPath(s.DeploymentID, run, query), ""); answer.Status != 400 || !strings.Contains(answer.Body, want) {
				t.Errorf("%s: %d %s", query, answer.Status, answer.Body)
			}
		}
	})
}

// Clients that have the current graph get 304 until the run changes.
func TestJobGraphETag(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := runFixture{s}
		run := w.addAudit(t, s.DeploymentID, w.addVersion(t, s.DeploymentID, 1, true))
		poll := func(query, tag string, want int) apitest.Answer {
			t.Helper()
			answer := s.Do(t, s.Token, "GET", graphPath(s.DeploymentID, run, query), "", "If-None-Match", tag)
			if answer.Status != want || (answer.Body == "") != (want == 304) || answer.Header.Get("ETag") == "" {
				t.Fatalf("%s with %s: %d %q, want %d", query, tag, answer.Status, answer.Body, want)
			}
			return answer
		}
		tag := poll("", "", 200).Header.Get("ETag")
		if again := poll("", tag, 304).Header.Get("ETag"); again != tag {
			t.Errorf("ETag %s became %s", tag, again)
		}
		poll("", `"x", `+strings.TrimPrefix(tag, "W/"), 304)
		poll("", "*", 304)
		poll("?limit=2", tag, 200)
		poll("?stepId=judge", tag, 200)
		w.write(t, s.DeploymentID, func(ctx context.Context, tx *ent.Tx) error {
			return tx.WorkflowRun.Update().Where(workflowrun.ID(run)).AddRevision(1).Exec(ctx)
		})
		if changed := poll("", tag, 200).Header.Get("ETag"); changed == tag {
			t.Error("a change of the run leaves the ETag as it was")
		}
	})
}

// The number of queries does not depend on the number of tasks. A poll without changes takes one.
func TestJobGraphQueries(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := runFixture{s}
		run := w.addAudit(t, s.DeploymentID, w.addVersion(t, s.DeploymentID, 1, true))
		st, log := w.logged(t)
		reader, _ := st.DB()
		reads := workflows.NewJobReads(st)
		request := &workflowsv1.GetWorkflowJobGraphRequest{DeploymentId: s.DeploymentID, JobId: fmt.Sprint(run)}
		ask := func(ctx context.Context) []apitest.Statement {
			t.Helper()
			if _, err := reads.GetWorkflowJobGraph(ctx, request); err != nil {
				t.Fatal(err)
			}
			return log.Take()
		}
		few := len(ask(asDeployment(t, s.DeploymentID)))
		w.write(t, s.DeploymentID, func(ctx context.Context, tx *ent.Tx) error {
			for _, query := range []string{manyTasksSQL, manyAttemptsSQL, manyForksSQL} {
				if err := s.Store.Exec(ctx, tx, query, s.DeploymentID, run); err != nil {
					return err
				}
			}
			return nil
		})
		s.RefreshStatistics(t)
		many := ask(asDeployment(t, s.DeploymentID))
		if few != 6 || len(many) != 6 {
			t.Errorf("%d queries for a few tasks, %d for many; want 6", few, len(many))
		}
		for _, q := range many[2:] { // queries on tables that grow
			if plan := apitest.Explain(t, st, reader, q); !strings.Contains(plan, "workflow_") || strings.Contains(plan, "SCAN workflow_") || strings.Contains(plan, "Seq Scan on workflow_tasks") || strings.Contains(plan, "Seq Scan on workflow_attempts") {
				t.Errorf("%s:\n%s", q.Text, plan)
			}
		}
		known := metadata.NewIncomingContext(asDeployment(t, s.DeploymentID), metadata.Pairs("if-none-match", "*"))
		if polled := ask(known); len(polled) != 1 || !strings.Contains(polled[0].Text, "workflow_runs") {
			t.Errorf("a poller's queries: %v", polled)
		}
	})
}

// manyTasksSQL adds 3,000 tasks to a run, and 20,000 to others.
const manyTasksSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 22999)
INSERT INTO workflow_tasks (deployment_id, run_id, step, path, fork_id, branch, value_preview, status, external, attempts, lost, cost_usd, cost_credits, created_at)
SELECT CAST(? AS BIGINT), CAST(? AS BIGINT) + (CASE WHEN i < 3000 THEN 0 ELSE i / 50 END), 'judge', 'units[' || (1000 + i) || ']', 0, '', '', 'succeeded', FALSE, 1, 0, 0, 0, 1 FROM n`

// manyAttemptsSQL adds one attempt to each of those tasks, and manyForksSQL adds forks.
const (
	manyAttemptsSQL = `INSERT INTO workflow_attempts (deployment_id, run_id, task_id, "index", step, workflow, external, status, error, worker, not_before, cost_usd, cost_credits, created_at)
SELECT deployment_id, run_id, id, 0, step, 'unit-audit', FALSE, 'succeeded', '', '', 0, 0, 0, 1 FROM workflow_tasks
WHERE deployment_id = CAST(? AS BIGINT) AND run_id >= CAST(? AS BIGINT) AND created_at = 1`
	manyForksSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
INSERT INTO workflow_forks (deployment_id, run_id, task_id, parent_id, step, join_step, branches, started, arrived)
SELECT CAST(? AS BIGINT), CAST(? AS BIGINT) + i, 100000 + i, 0, 'units', 'collect', 3, 3, 2 FROM n`
)

func TestWatchJob(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := runFixture{s}
		run := w.addAudit(t, s.DeploymentID, w.addVersion(t, s.DeploymentID, 1, true))
		client := workflowsv1.NewWorkflowJobsServiceClient(s.Conn)
		request := &workflowsv1.WatchJobRequest{DeploymentId: s.DeploymentID, JobId: fmt.Sprint(run)}
		one, err := client.WatchJob(s.Context(t, s.Token), request)
		if err != nil {
			t.Fatal(err)
		}
		other, err := client.WatchJob(s.Context(t, s.Token), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, stream := range []interface {
			Recv() (*workflowsv1.WatchJobResponse, error)
		}{one, other} {
			first, err := stream.Recv()
			if err != nil || len(first.GetSteps()) != len(auditSteps) || first.GetRevision() != 9 {
				t.Fatalf("first: %v %v", first, err)
			}
		}
		w.write(t, s.DeploymentID, func(ctx context.Context, tx *ent.Tx) error {
			err := tx.WorkflowTask.Update().Where(workflowtask.RunID(run), workflowtask.Status("pending")).SetStatus("running").Exec(ctx)
			if err != nil {
				return err
			}
			return tx.WorkflowRun.Update().Where(workflowrun.ID(run)).AddRevision(1).SetCostCredits(75).Exec(ctx)
		})
		second, err := one.Recv()
		if err != nil || second.GetRevision() != 10 || second.GetSummary().GetTotalCostCredits() != 75 {
			t.Fatalf("second: %v %v", second, err)
		}
		w.write(t, s.DeploymentID, func(ctx context.Context, tx *ent.Tx) error {
			err := tx.WorkflowTask.Update().Where(workflowtask.RunID(run), workflowtask.Status("running")).SetStatus("skipped").SetFinishedAt(began + 5).Exec(ctx)
			if err != nil {
				return err
			}
			return tx.WorkflowRun.Update().Where(workflowrun.ID(run)).AddRevision(1).SetStatus("cancelled").SetFinishedAt(began + 5).Exec(ctx)
		})
		last, err := one.Recv()
		if err != nil || len(last.GetSteps()) == 0 || last.GetSummary().GetStatus() != workflowsv1.PlatformWorkflowRunStatus_PLATFORM_WORKFLOW_RUN_STATUS_CANCELLED {
			t.Fatalf("last: %v %v", last, err)
		}
		for _, step := range last.GetSteps() {
			if step.GetStepId() == "plan" {
				t.Error("a step that has not changed is sent again")
			}
		}
		if _, err := one.Recv(); err == nil || err.Error() != "EOF" {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestWatchJobRefuses(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := runFixture{s}
		rival := s.AddTenant(t, "rival")
		run := w.addRun(t, s.DeploymentID, w.addVersion(t, s.DeploymentID, 1, true), nil)
		client := workflowsv1.NewWorkflowJobsServiceClient(s.Conn)
		for _, c := range []struct {
			token string
			in    int64
			job   string
		}{{s.Token, s.DeploymentID, "999"}, {s.Token, s.DeploymentID, "x"}, {rival.Token, rival.DeploymentID, fmt.Sprint(run)}} {
			stream, err := client.WatchJob(s.Context(t, c.token), &workflowsv1.WatchJobRequest{DeploymentId: c.in, JobId: c.job})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err == nil || !strings.Contains(err.Error(), "not found") {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}
