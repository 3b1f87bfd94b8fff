package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/workflows"
)

func TestJobList(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := runFixture{s}
		rival := s.AddTenant(t, "rival")
		w.addRun(t, rival.DeploymentID, 1, nil)
		project := int64(0)
		w.write(t, s.DeploymentID, func(ctx context.Context, tx *ent.Tx) error {
			row, err := tx.Project.Create().SetDeploymentID(s.DeploymentID).SetName("acme/web").SetNameKey("acme/web").SetCreatedAt(began).Save(ctx)
			if err == nil {
				project = row.ID
			}
			return err
		})
		var ids []string
		for i := range 5 {
			ids = append(ids, fmt.Sprint(w.addRun(t, s.DeploymentID, 1, func(c *ent.WorkflowRunCreate) {
				if i%2 == 0 {
					c.SetStatus("completed").SetStartedAt(began).SetFinishedAt(began + 1)
				}
				if i > 2 {
					c.SetWorkflow("triage-backlog").SetProjectID(project)
				}
			})))
		}
		apitest.Golden(t, "job_list", s.Get(t, jobsPath(s.DeploymentID, "?limit=2")))
		list := func(token string, deploymentID int64, query string) string {
			t.Helper()
			var got []string
			for cursor := ""; ; {
				answer := s.Do(t, token, "GET", jobsPath(deploymentID, "?limit=2&cursor="+url.QueryEscape(cursor)+query), "")
				var page struct {
					Jobs   []struct{ JobID string }
					Cursor string
				}
				if err := json.Unmarshal([]byte(answer.Body), &page); err != nil || answer.Status != 200 {
					t.Fatalf("%d %s", answer.Status, answer.Body)
				}
				for _, job := range page.Jobs {
					got = append(got, job.JobID)
				}
				if cursor = page.Cursor; cursor == "" {
					return strings.Join(got, " ")
				}
			}
		}
		at := func(indexes ...int) string {
			var want []string
			for _, i := range indexes {
				want = append(want, ids[i])
			}
			return strings.Join(want, " ")
		}
		for query, want := range map[string]string{
			"": at(4, 3, 2, 1, 0),
			"&status=PLATFORM_WORKFLOW_RUN_STATUS_COMPLETED":                                 at(4, 2, 0),
			"&workflowType=triage-backlog":                                                   at(4, 3),
			"&workflowType=unit-audit&status=PLATFORM_WORKFLOW_RUN_STATUS_SUBMITTED":         at(1),
			fmt.Sprintf("&repoId=%d", project):                                               at(4, 3),
			fmt.Sprintf("&repoId=%d&status=PLATFORM_WORKFLOW_RUN_STATUS_SUBMITTED", project): at(3),
			"&repoId=999":                 "",
			"&workflowType=unit-audit%20": "",
		} {
			if got := list(s.Token, s.DeploymentID, query); got != want {
				t.Errorf("%s: got %s, want %s", query, got, want)
			}
		}
		if got := list(rival.Token, rival.DeploymentID, ""); strings.Contains(got, " ") || got == "" {
			t.Errorf("another tenant sees %s", got)
		}
		for _, query := range []string{"?status=done", "?status=99", "?limit=501", "?limit=-1", "?cursor=AQ", "?repoId=-1", "?repoId=x"} {
			if answer := s.Do(t, s.Token, "GET", jobsPath(s.DeploymentID, query), ""); answer.Status != 400 {
				t.Errorf("%s: %d %s", query, answer.Status, answer.Body)
			}
		}
	})
}

// Each filter of the list uses an index that also provides the order.
func TestJobListPlans(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := runFixture{s}
		w.write(t, s.DeploymentID, func(ctx context.Context, tx *ent.Tx) error {
			return s.Store.Exec(ctx, tx, manyRunsSQL, s.DeploymentID)
		})
		s.RefreshStatistics(t)
		st, log := w.logged(t)
		reader, _ := st.DB()
		reads := workflows.NewJobReads(st)
		for index, request := range map[string]*workflowsv1.ListWorkflowJobsRequest{
			"workflow_runs":               {},
			"workflow_runs_list_workflow": {WorkflowType: "w77"},
			"workflow_runs_list_status":   {Status: workflowsv1.PlatformWorkflowRunStatus_PLATFORM_WORKFLOW_RUN_STATUS_RUNNING},
			"workflow_runs_list_project":  {RepoId: 77},
		} {
			if _, err := reads.ListWorkflowJobs(asDeployment(t, s.DeploymentID), request); err != nil {
				t.Fatal(err)
			}
			queries := log.Take()
			if len(queries) != 1 {
				t.Fatalf("%d queries", len(queries))
			}
			if plan := apitest.Explain(t, st, reader, queries[0]); !strings.Contains(plan, index) || strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("want %s:\n%s\n%s", index, queries[0].Text, plan)
			}
		}
	})
}

const manyRunsSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19999)
INSERT INTO workflow_runs (deployment_id, workflow, version_id, project_id, status, error, job_name, git_ref, pr_id, repo_name, repo_url, repo_scm_type,
	trigger_source, event_source, actor_kind, actor_id, retry_of, inputs, budget_credits, cost_usd, cost_credits, total_findings, "commit", revision, submitted_at)
SELECT CAST(? AS BIGINT), 'w' || (i % 100), 1, i % 100, CASE WHEN i % 500 = 7 THEN 'running' ELSE 'completed' END, '', '', '', '', '', '', '',
	'manual', 'api', 'token', 1, 0, '{}', 0, 0, 0, 0, '', 0, 1 FROM n`
