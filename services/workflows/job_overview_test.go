package workflows_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/workflows"
)

func overviewPath(deploymentID int64, jobID any) string {
	return jobsPath(deploymentID, fmt.Sprintf("/id/%v/overview", jobID))
}

func TestJobOverview(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := runFixture{s}
		client := workflowsv1.NewWorkflowJobsServiceClient(s.Conn)
		version, gone := w.addVersion(t, s.DeploymentID, 1, true), w.addVersion(t, s.DeploymentID, 2, false)
		report := &workflowsv1.WorkflowReportSummary{
			Repository: "acme/web", Commit: "3f2a9c1d", TotalFindings: 2, VulnerableFindings: 1, BySeverity: map[string]int64{"high": 1, "low": 1},
			Findings: []*workflowsv1.WorkflowFinding{
				{File: "app/db.py", StartLine: 40, EndLine: 42, Severity: "high", Reasoning: "The query is built from input."},
				{File: "app/web.py", StartLine: 7, EndLine: 7, Severity: "low", Reasoning: "The header is escaped."},
			},
		}
		for _, c := range []struct {
			name    string
			version int64
			change  func(*ent.WorkflowRunCreate)
		}{
			{"submitted", version, nil},
			{"running", version, func(c *ent.WorkflowRunCreate) {
				c.SetStatus("running").SetStartedAt(began + 1).SetCostUsd(0.5).SetCostCredits(50).SetCommit("3f2a9c1d").SetPrID("17")
			}},
			{"completed", version, func(c *ent.WorkflowRunCreate) {
				c.SetStatus("completed").SetStartedAt(began + 1).SetFinishedAt(began + 2).SetTotalFindings(2).SetReport(marshal(t, report)).SetCommit("3f2a9c1d")
			}},
			{"failed", version, func(c *ent.WorkflowRunCreate) {
				c.SetStatus("failed").SetError("budget of 5 credits is used up").SetStartedAt(began + 1).SetFinishedAt(began + 2)
			}},
			{"cancelled", version, func(c *ent.WorkflowRunCreate) { c.SetStatus("cancelled").SetFinishedAt(began + 2) }},
			{"no_graph", gone, nil},
			{"no_version", gone + 100, nil},
		} {
			id := w.addRun(t, s.DeploymentID, c.version, c.change)
			body := s.Get(t, overviewPath(s.DeploymentID, id))
			apitest.Golden(t, "job_overview_"+c.name, body)
			response, err := client.GetPlatformAgenticWorkflowJobOverview(s.Context(t, s.Token),
				&workflowsv1.GetPlatformAgenticWorkflowJobOverviewRequest{DeploymentId: s.DeploymentID, JobId: fmt.Sprint(id)})
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, response, body)
		}
	})
}

// Unknown runs, runs of other deployments and invalid ids give the same answer.
func TestJobNotFound(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := runFixture{s}
		rival := s.AddTenant(t, "rival")
		run := w.addRun(t, s.DeploymentID, w.addVersion(t, s.DeploymentID, 1, true), nil)
		for _, c := range []struct {
			token string
			in    int64
			job   string
		}{
			{s.Token, s.DeploymentID, "999"}, {s.Token, s.DeploymentID, "abc"}, {s.Token, s.DeploymentID, "99999999999999999999"},
			{s.Token, s.DeploymentID, "-1"}, {s.Token, s.DeploymentID, "1.0"}, {rival.Token, rival.DeploymentID, fmt.Sprint(run)},
			{rival.Token, s.DeploymentID, fmt.Sprint(run)},
		} {
			for _, what := range []string{"overview", "graph"} {
				answer := s.Do(t, c.token, "GET", jobsPath(c.in, "/id/"+c.job+"/"+what), "")
				if answer.Status != 404 || answer.Header.Get("ETag") != "" {
					t.Errorf("%s of %s in %d: %d %s", what, c.job, c.in, answer.Status, answer.Body)
				}
				if c.in == rival.DeploymentID && !strings.Contains(answer.Body, fmt.Sprintf(`job \"%d\" not found`, run)) {
					t.Errorf("another tenant's job: %s", answer.Body)
				}
			}
		}
	})
}

// The overview reads two rows by id and nothing else, for any run.
func TestJobOverviewReadsTwoRows(t *testing.T) {
	t.Parallel()
	table := regexp.MustCompile("FROM [`\"](\\w+)[`\"]")
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := runFixture{s}
		run := w.addAudit(t, s.DeploymentID, w.addVersion(t, s.DeploymentID, 1, true))
		st, log := w.logged(t)
		_, err := workflows.NewJobReads(st).GetPlatformAgenticWorkflowJobOverview(asDeployment(t, s.DeploymentID),
			&workflowsv1.GetPlatformAgenticWorkflowJobOverviewRequest{DeploymentId: s.DeploymentID, JobId: fmt.Sprint(run)})
		if err != nil {
			t.Fatal(err)
		}
		queries := log.Take()
		var tables []string
		for _, q := range queries {
			for _, match := range table.FindAllStringSubmatch(q.Text, -1) {
				tables = append(tables, match[1])
			}
		}
		if got := strings.Join(tables, " "); got != "workflow_runs workflow_versions" || len(queries) != 2 {
			t.Errorf("%d queries of %s", len(queries), got)
		}
		reader, _ := st.DB()
		conn, err := reader.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if st.Postgres() { // small tables are scanned when that is cheaper: explain with large tables
			if _, err := conn.ExecContext(t.Context(), "SET enable_seqscan = off"); err != nil {
				t.Fatal(err)
			}
		}
		for _, q := range queries {
			if plan := apitest.Explain(t, st, conn, q); !regexp.MustCompile(`SEARCH|Index (Only )?Scan|Bitmap Index Scan`).MatchString(plan) || strings.Contains(plan, "SCAN ") || strings.Contains(plan, "Seq Scan") {
				t.Errorf("%s:\n%s", q.Text, plan)
			}
		}
	})
}
