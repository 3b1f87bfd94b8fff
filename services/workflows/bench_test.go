package workflows_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/palisade/palisade/ent"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/storetest"
)

// Statements that insert 1,000 finished runs with 50 tasks each: plan and units, 42 units judged, and the steps after
// their join. Each task has one attempt.
const (
	benchRunsSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
INSERT INTO workflow_runs (deployment_id, workflow, version_id, status, error, job_name, git_ref, pr_id, repo_name, repo_url, repo_scm_type,
	trigger_source, event_source, actor_kind, actor_id, retry_of, inputs, budget_credits, cost_usd, cost_credits, total_findings, "commit", report, revision,
	submitted_at, started_at, finished_at)
SELECT CAST(? AS BIGINT), 'unit-audit', CAST(? AS BIGINT), 'completed', '', 'Audit of acme/web', 'refs/heads/main', '', 'acme/web', 'https://git.acme.test/acme/web', 'SCM_TYPE_GITHUB',
	'manual', 'api', 'token', 1, 0, ?, 0, 12.5, 1250, 20, '3f2a9c1d', ?, 200, 1, 2, 3 FROM n`
	benchTasksSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49)
INSERT INTO workflow_tasks (deployment_id, run_id, step, path, fork_id, branch, value_preview, status, external, upstream, attempts, lost, cost_usd, cost_credits, created_at, started_at, finished_at)
SELECT r.deployment_id, r.id, CASE WHEN i = 0 THEN 'plan' WHEN i = 1 THEN 'units' WHEN i < 46 THEN 'judge' WHEN i = 46 THEN 'collect' WHEN i = 47 THEN 'decide' WHEN i = 48 THEN 'fix' ELSE 'done' END,
	CASE WHEN i > 1 AND i < 46 THEN 'units[' || i || ']' ELSE '' END, 0, '', '{"file":"app/db.py","lines":120}', 'succeeded', FALSE, NULL, 1, 0, 0.25, 25, 1, 2, 3
FROM workflow_runs r CROSS JOIN n WHERE r.deployment_id = CAST(? AS BIGINT)`
	benchAttemptsSQL = `INSERT INTO workflow_attempts (deployment_id, run_id, task_id, "index", step, workflow, external, status, error, worker, not_before, cost_usd, cost_credits, created_at, started_at, finished_at)
SELECT deployment_id, run_id, id, 0, step, 'unit-audit', FALSE, 'succeeded', '', '', 0, 0.25, 25, 1, 2, 3 FROM workflow_tasks WHERE deployment_id = CAST(? AS BIGINT)`
)

// benchReport is a report with 20 results.
func benchReport() *workflowsv1.WorkflowReportSummary {
	report := &workflowsv1.WorkflowReportSummary{Repository: "acme/web", Commit: "3f2a9c1d", TotalFindings: 20, BySeverity: map[string]int64{"high": 20}}
	for i := range 20 {
		report.Findings = append(report.Findings, &workflowsv1.WorkflowFinding{
			File: fmt.Sprintf("app/m%d.py", i), StartLine: 10, EndLine: 12, Severity: "high", Reasoning: "The query is built from input that anybody can send.",
		})
	}
	return report
}

// BenchmarkJobReads reads overviews and graphs over HTTP, with 1,000 finished runs of 50 tasks in the store.
func BenchmarkJobReads(b *testing.B) {
	for _, database := range []string{"sqlite", "postgres"} {
		s := apitest.Start(b, func(c *config.Config) {
			if database == "postgres" {
				c.Database = storetest.Postgres(b)
			}
		})
		w := runFixture{s}
		version := w.addVersion(b, s.DeploymentID, 1, true)
		w.write(b, s.DeploymentID, func(ctx context.Context, tx *ent.Tx) error {
			err := s.Store.Exec(ctx, tx, benchRunsSQL, s.DeploymentID, version, []byte("{}"), marshal(b, benchReport()))
			for _, query := range []string{benchTasksSQL, benchAttemptsSQL} {
				if err == nil {
					err = s.Store.Exec(ctx, tx, query, s.DeploymentID)
				}
			}
			return err
		})
		s.RefreshStatistics(b)
		get := func(b *testing.B, path, tag string, want int) string {
			request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.URL+path, http.NoBody)
			if err != nil {
				b.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+s.Token)
			request.Header.Set("If-None-Match", tag)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if response.StatusCode != want {
				b.Fatalf("%s: %d", path, response.StatusCode)
			}
			return response.Header.Get("ETag")
		}
		b.Run(database+"/overview", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				get(b, overviewPath(s.DeploymentID, 1+i%1000), "", 200)
			}
		})
		b.Run(database+"/graph", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				get(b, graphPath(s.DeploymentID, int64(1+i%1000), ""), "", 200)
			}
		})
		b.Run(database+"/graph-unchanged", func(b *testing.B) {
			tag := get(b, graphPath(s.DeploymentID, 7, ""), "", 200)
			for b.Loop() {
				get(b, graphPath(s.DeploymentID, 7, ""), tag, 304)
			}
		})
		b.Run(database+"/list", func(b *testing.B) {
			for b.Loop() {
				get(b, jobsPath(s.DeploymentID, ""), "", 200)
			}
		})
	}
}
