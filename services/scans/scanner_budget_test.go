package scans_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestScannerBudget: receiving results and reporting their outcome takes the same number of statements for two results
// as for fifty.
func TestScannerBudget(t *testing.T) {
	const protocol = "/palisade.scans.v1.ScannerProtocolService/"
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s, seen := apitest.StartRecorded(t, on)
		c := newScanner(s)
		spent := func(results int) (upload, complete int) {
			id := c.create(t)
			seen.Take("")
			body, findings := largeResults(2000 * results)
			if answer := s.Send(t, s.Token, http.MethodPost, resultsPath(id), body, "Content-Type", "application/json"); answer.Status != http.StatusOK || findings != results {
				t.Fatalf("%d results: %d %s", findings, answer.Status, answer.Body)
			}
			upload = len(seen.Take(protocol + "UploadScanResults"))
			task := uuid.NewString()
			c.complete(t, id, task)
			seen.Take("")
			c.ok(t, http.MethodPost, completePath(id), recorded(t, "complete", with(task, "task_id")))
			return upload, len(seen.Take(protocol + "CompleteScan"))
		}
		spent(1) // creates the project
		upload, complete := spent(2)
		if upload == 0 || complete == 0 {
			t.Fatalf("nothing was recorded: %d and %d statements", upload, complete)
		}
		if u, c := spent(50); u != upload || c != complete {
			t.Errorf("%d and %d statements for two results, %d and %d for fifty", upload, complete, u, c)
		}
	})
}
