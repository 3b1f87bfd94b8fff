package scans_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// lose makes the job of a scan look as if a node had taken it half an hour ago and was killed. This time is before
// the start of this process, even on a busy machine.
func (c scannerClient) lose(t testing.TB, id int64) {
	t.Helper()
	ago, scan := "now() - interval '30 minutes'", fmt.Sprintf("(args->>'scan_id')::bigint = %d", id)
	if !c.Store.Postgres() {
		ago, scan = "strftime('%Y-%m-%d %H:%M:%f', 'now', '-30 minutes')", fmt.Sprintf("json_extract(args, '$.scan_id') = %d", id)
	}
	_, writer := c.Store.DB()
	apitest.Eventually(t, "the job waits for its next attempt", func() bool {
		result, err := writer.ExecContext(t.Context(), "UPDATE river_job SET state = 'running', attempted_at = "+ago+
			" WHERE kind = 'store_scan_results' AND state = 'retryable' AND "+scan)
		if err != nil {
			t.Fatal(err)
		}
		n, err := result.RowsAffected()
		return err == nil && n > 0
	})
}

// TestScannerResultsSurviveTheirNode: the scanner polls for half an hour, so another node has to continue sooner.
func TestScannerResultsSurviveTheirNode(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.CompleteWait = 0 })
		c := newScanner(s)
		id := c.create(t)
		release := c.blockStoring(t, id)
		task := c.results(t, id, recorded(t, "results"))
		c.ok(t, http.MethodPost, completePath(id), recorded(t, "complete"))
		c.lose(t, id)
		release()
		c.complete(t, id, task)
		wantList(t, "findings", c.findingsOf(t, mainRef), allFound...)
	})
}

// TestScannerResultsThatEndTheirNodes: results that kill every node are abandoned, and the scanner gets an error.
func TestScannerResultsThatEndTheirNodes(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.CompleteWait = 0 })
		c := newScanner(s)
		id := c.create(t)
		c.blockStoring(t, id)
		c.results(t, id, recorded(t, "results"))
		c.ok(t, http.MethodPost, completePath(id), recorded(t, "complete"))
		for range 3 {
			c.lose(t, id)
		}
		apitest.Eventually(t, "the results are given up", func() bool {
			return s.Store.Reader.Scan.GetX(s.System(t), id).ResultsState == "failed"
		})
		c.refused(t, 409, http.MethodPost, completePath(id), recorded(t, "complete"), "could not be stored")
	})
}

// TestScannerLeftOutFindingsCloseNothing: a finding that was reported, but cannot be stored, is not closed.
func TestScannerLeftOutFindingsCloseNothing(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.scan(t, recorded(t, "results"))
		id := c.create(t)
		answer := c.ok(t, http.MethodPost, resultsPath(id), recorded(t, "results", func(body object) {
			for _, f := range body["findings"].([]any) {
				f.(object)["message"] = strings.Repeat("m", 5<<20)
			}
		}))
		if errors, _ := answer["errors"].([]any); len(errors) != 3 {
			t.Errorf("%v", answer)
		}
		c.complete(t, id, fmt.Sprint(answer["task_id"]))
		wantList(t, "findings", c.findingsOf(t, mainRef), allFound...)
	})
}

// TestScannerKeepsNothingForNobody: dependencies are not kept if the results of their scan will never be stored.
func TestScannerKeepsNothingForNobody(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		id := c.create(t)
		body := recorded(t, "complete", with(object{"go.mod": []any{object{"package": "a", "version": "1", "ecosystem": "gomod"}}}, "dependencies"), with(true, "final_attempt"))
		if answer := c.ok(t, http.MethodPost, completePath(id), body); answer["success"] != true {
			t.Errorf("%v", answer)
		}
		if n := s.Store.Reader.ScanPayload.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d rows wait for a job that never comes", n)
		}
	})
}

// TestScannerBlockingWithoutIDs: findings of older scanners have no match-based id, but they block, too.
func TestScannerBlockingWithoutIDs(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.block(t, &policiesv1.RemediationPolicy{
			Slug: "no-eval", Name: "No eval", Active: true,
			Filters: &policiesv1.RemediationPolicyFilters{Mode: "all", Conditions: []*policiesv1.RemediationPolicyCondition{{Type: "severity", Values: []string{"high"}, Mode: "include"}}},
			Actions: []*policiesv1.RemediationPolicyAction{{Type: "block"}},
		})
		_, answer := c.scan(t, recorded(t, "results", func(body object) {
			for _, f := range body["findings"].([]any) {
				delete(f.(object), "match_based_id")
			}
		}))
		if answer["app_block_override"] != true || !strings.Contains(fmt.Sprint(answer["app_block_reason"]), "2 findings") {
			t.Errorf("%v", answer)
		}
	})
}
