package scans_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestScannerCompletesOnce: the first completion is answered when the results are stored, so scanners do not sleep.
func TestScannerCompletesOnce(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		id := c.create(t)
		task := c.results(t, id, recorded(t, "results"))
		if answer := c.ok(t, http.MethodPost, completePath(id), recorded(t, "complete", with(task, "task_id"))); answer["success"] != true {
			t.Errorf("%v", answer)
		}
		wantList(t, "findings", c.findingsOf(t, mainRef), allFound...)
	})
}

// TestScannerWaitsWithoutConnections: many scans wait for their results, and other requests still get a connection.
func TestScannerWaitsWithoutConnections(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.DBMaxOpen = 4 })
		c := newScanner(s)
		var scans sync.WaitGroup
		var release []func()
		for range 6 {
			id := c.create(t)
			release = append(release, c.blockStoring(t, id))
			task := c.results(t, id, recorded(t, "results"))
			scans.Go(func() { c.complete(t, id, task) })
		}
		s.Get(t, "/api/v1/deployments")
		for _, r := range release {
			r()
		}
		_, writer := s.Store.DB()
		apitest.Eventually(t, "all results are stored", func() bool {
			// The retries of the jobs would take minutes.
			_, err := writer.ExecContext(t.Context(), "UPDATE river_job SET state = 'available' WHERE kind = 'store_scan_results' AND state = 'retryable'")
			if err != nil {
				t.Fatal(err)
			}
			return s.Store.Reader.Scan.Query().Where(scan.ResultsState("received")).CountX(s.System(t)) == 0
		})
		scans.Wait()
	})
}

// TestStopEndsWaitingCompletions: a server that stops does not keep scanners waiting.
func TestStopEndsWaitingCompletions(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.CompleteWait = time.Hour })
		c := newScanner(s)
		id := c.create(t)
		c.blockStoring(t, id)
		task := c.results(t, id, recorded(t, "results"))
		var waiting sync.WaitGroup
		waiting.Go(func() {
			answer := c.send(t, http.MethodPost, completePath(id), recorded(t, "complete", with(task, "task_id")))
			if answer.Status != http.StatusOK || parsed(t, answer.Body)["success"] != false {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
		})
		apitest.Eventually(t, "the completion arrives", func() bool {
			return s.Store.Reader.Scan.GetX(s.System(t), id).ExitCode == 1
		})
		s.Stop(t)
		waiting.Wait()
	})
}
