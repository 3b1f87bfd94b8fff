package services_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
)

// sharedQueues are the queues where jobs of deployments wait for each other, each with a job kind. The jobs refer to
// missing rows, so each ends at once. %d is the deployment, and # a different number for each job.
var sharedQueues = map[string]struct{ kind, args string }{
	"automations":   {"run_automations", `{"deployment_id": %d, "cause": "scan", "id": 9#, "at": 1}`},
	"default":       {"scm_sync", `{"deployment_id": %d, "config_id": 9#, "debug": false}`},
	"workflows":     {"workflow_attempt", `{"deployment_id": %d, "run_id": 7, "task_id": 9#, "attempt_id": 9#}`},
	"advisories":    {"recheck_dependencies", `{"deployment_id": %d, "project_id": 9#}`},
	"ai":            {"ai_analysis", `{"deployment_id": %d, "analysis_id": 9#, "verdict": true}`},
	"scm_events":    {"scm_events", `{"deployment_id": %d, "number": #}`},
	"exports":       {"export_findings", `{"deployment_id": %d, "export_id": 9#}`},
	"path_ignores":  {"apply_path_ignores", `{"deployment_id": %d, "number": #}`},
	"policies":      {"run_policies_of_day", `{"deployment_id": %d, "day": 9#}`},
	"pull_requests": {"write_pull_request_feedback", `{"deployment_id": %d, "project_id": 9, "number": 9#}`},
	"sboms":         {"write_sbom", `{"deployment_id": %d, "export_id": 9#}`},
	"refs":          {"tidy_refs", `{"deployment_id": %d, "number": #}`},
	"pattern_fix":   {"pattern_fix", `{"deployment_id": %d, "pattern": "f(#", "language": "python"}`},
	"support":       {"forward_support_case", `{"deployment_id": %d, "case_id": 9#, "receiver": "email"}`},
	"tickets":       {"sync_tickets", `{"deployment_id": %d, "instance_id": 9#}`},
	"scanner":       {"managed_scan", `{"deployment_id": %d, "scan_id": 9#}`},
	"scans":         {"store_scan_results", `{"deployment_id": %d, "scan_id": 9#}`},
}

// TestQueuesBesideManyJobs: while one deployment has many jobs in a queue, another deployment's job starts within 2 s.
func TestQueuesBesideManyJobs(t *testing.T) {
	testrun.Deep(t) // measures the latency of a neighbour
	t.Parallel()
	for queue, job := range sharedQueues {
		t.Run(queue, func(t *testing.T) {
			apitest.Each(t, func(t *testing.T, s *apitest.Server) {
				many := testrun.Size(20_000, 100_000)
				other := s.AddTenant(t, "other")
				addJobs(t, s, many, queue, job.kind, fmt.Sprintf(job.args, s.DeploymentID))
				time.Sleep(2 * time.Second) // the first deployment holds all workers
				// By id alone, because a query is load, too.
				deployment, _ := store.JobOwner(s.Store.Postgres())
				begun := fmt.Sprintf("SELECT COUNT(*) FROM river_job WHERE id > %d AND state <> 'available' AND queue = '%s' AND kind = '%s' AND %s = %d",
					many, queue, job.kind, deployment, other.DeploymentID)
				var waits []time.Duration
				for n := range 3 {
					addJobs(t, s, 1, queue, job.kind, fmt.Sprintf(job.args, other.DeploymentID))
					added := time.Now()
					apitest.Eventually(t, "the other deployment's job begins", func() bool { return jobCount(t, s, begun) > n }) // the server may add some of its own
					waits = append(waits, time.Since(added))
				}
				if slices.Sort(waits); waits[0] > 2*time.Second { // the fastest: a busy machine delays some, but blocking delays all
					t.Errorf("another deployment's jobs began after %s", waits)
				}
				if left := jobCount(t, s, "SELECT COUNT(*) FROM river_job WHERE kind = '"+job.kind+"' AND state = 'available'"); left < many/2 {
					t.Errorf("only %d jobs of the first are left: that was no load", left)
				}
			})
		})
	}
}

func jobCount(t *testing.T, s *apitest.Server, query string) (n int) {
	t.Helper()
	reader, _ := s.Store.DB()
	if err := reader.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// addJobs inserts jobs by SQL.
func addJobs(t *testing.T, s *apitest.Server, n int, queue, kind, args string) {
	t.Helper()
	series, text, state, now := "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < %d) ", "", "'available'", "datetime('now', 'subsec')"
	if s.Store.Postgres() {
		series, text, state, now = "WITH s AS (SELECT generate_series(1, %d) AS i) ", "::jsonb", "'available'::river_job_state", "now()"
	}
	query := fmt.Sprintf(series, n) + "INSERT INTO river_job (kind, args, max_attempts, queue, priority, state, scheduled_at) SELECT '" + kind +
		"', (replace('" + strings.TrimSpace(args) + "', '#', CAST(i AS text)))" + text + ", 25, '" + queue + "', 1, " + state + ", " + now + " FROM s"
	_, writer := s.Store.DB()
	if _, err := writer.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}
