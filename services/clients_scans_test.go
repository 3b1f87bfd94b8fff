package services_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
)

// wholeStruct is what Go clients send: every member, with zero values.
const wholeStruct = `{"repository_id":0,"is_full_scan":false,"since":"0001-01-01T00:00:00Z","total_time":{"min":0,"max":0},` +
	`"statuses":null,"branch":"","cursor":"","limit":0}`

// clientOpenGovern decodes counts as numbers and ids as strings. A proxy in front of it adds the header.
func clientOpenGovern(t *testing.T, w *clientWorld) {
	id, _ := w.deployment(t)
	answer := w.Do(t, w.of.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/scans/search", id), wholeStruct, "Prefer", "respond-async, numbers")
	var page struct {
		Scans []struct {
			ID            string    `json:"id"`
			DeploymentID  string    `json:"deployment_id"`
			RepositoryID  string    `json:"repository_id"`
			ExitCode      int       `json:"exit_code"`
			TotalTime     float64   `json:"total_time"`
			StartedAt     time.Time `json:"started_at"`
			CompletedAt   time.Time `json:"completed_at"`
			FindingsCount struct {
				Total, Code, Secrets int
				SupplyChain          int `json:"supply_chain"`
			} `json:"findings_counts"`
		} `json:"scans"`
		Cursor string `json:"cursor"`
	}
	if err := json.Unmarshal([]byte(answer.Body), &page); err != nil {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	if len(page.Scans) != 1 || page.Scans[0].ExitCode != 1 || page.Scans[0].FindingsCount.Total == 0 || page.Scans[0].TotalTime != 4.25 ||
		page.Cursor != "" || answer.Header.Get("Preference-Applied") != "numbers" {
		t.Errorf("%s %v", answer.Body, answer.Header)
	}
}

// clientGeneratedSDK decodes 64-bit integers only from strings.
func clientGeneratedSDK(t *testing.T, w *clientWorld) {
	id, _ := w.deployment(t)
	answer := w.object(t, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/scans/search", id), `{"limit":100}`)
	want(t, answer, "scans.0.exit_code", "1")
	want(t, answer, "scans.0.id", fmt.Sprint(w.scanID))
	for _, name := range []string{"total", "code", "supply_chain", "secrets"} {
		if _, text := member(t, answer, "scans.0.findings_counts."+name).(string); !text {
			t.Errorf("%s is no text: %v", name, answer)
		}
	}
	want(t, answer, "scans.0.total_time", 4.25)

	shown := w.object(t, http.MethodGet, fmt.Sprintf("/api/v1/deployments/%d/scan/%d", id, w.scanID), "")
	for _, path := range []string{"stats.total_time", "stats.scanner.total_time"} {
		want(t, shown, path, 4.25)
	}
	for _, path := range []string{"stats.findings", "stats.scanner.findings"} {
		want(t, shown, path, 3.0)
	}
}

// clientScanPerf reads the duration of one scan. It names no deployment.
func clientScanPerf(t *testing.T, w *clientWorld) {
	path := fmt.Sprintf("/api/agent/scans/%d", w.scanID)
	scan := w.object(t, http.MethodGet, path, "")
	want(t, scan, "scan.id", fmt.Sprint(w.scanID))
	want(t, scan, "scan.environment", "SCAN_ENVIRONMENT_GITHUB_ACTIONS")
	want(t, scan, "scan.isFullScan", true)
	want(t, scan, "scan.branch", "refs/heads/main")
	want(t, scan, "scan.commit", "3f2a9c1d5b7e4f60a1b2c3d4e5f60718293a4b5c")
	want(t, scan, "scan.totalTime", 4.25)
	want(t, scan, "scan.cliVersion", "1.97.0")
	if member(t, scan, "scan.findingsCounts.total").(float64) == 0 {
		t.Errorf("%v", scan)
	}
	for _, name := range []string{"scan.startedAt", "scan.completedAt"} {
		if _, err := time.Parse(time.RFC3339, member(t, scan, name).(string)); err != nil {
			t.Error(err)
		}
	}
	response, err := scansv1.NewScansServiceClient(w.Conn).GetScanOverview(w.Context(t, w.of.Token), &scansv1.GetScanOverviewRequest{ScanId: w.scanID})
	if err != nil || response.GetScan().GetTotalTime() != 4.25 {
		t.Errorf("%v %v", response, err)
	}
	if other := w.Do(t, w.Token, http.MethodGet, path, ""); other.Status != 404 { // another deployment
		t.Errorf("another deployment sees the scan: %d %s", other.Status, other.Body)
	}
}
