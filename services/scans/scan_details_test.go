package scans_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scans"
)

// detailsOf reads a scan over both wires, which agree.
func detailsOf(t testing.TB, s *apitest.Server, id int64) *scansv1.GetScanDetailsResponse {
	t.Helper()
	out, err := scansv1.NewScanDetailsServiceClient(s.Conn).GetScanDetails(s.Context(t, s.Token), &scansv1.GetScanDetailsRequest{DeploymentId: s.DeploymentID, ScanId: id})
	if err != nil {
		t.Fatal(err)
	}
	apitest.Same(t, out, s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/scans/%d/details", s.DeploymentID, id)))
	return out
}

// TestScanDetailsOfUpload: the answer to an upload can be read later, line by line, until it is purged.
func TestScanDetailsOfUpload(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		long := strings.Repeat("é", 3000)
		report := sarifOf(t, run{
			Tool: "gosec", Version: "2.21", Results: []result{sqli, {Rule: long, File: "a.go", Line: 1, Code: "x"}}, Files: targets("db.go", "web.go"), FailedFiles: []string{"broken.go"},
		})
		broken := strings.Replace(string(report), `"results":[`, `"results":["broken",`, 1)
		answer := upload(t, s, "refs/pull/7/merge", []byte(broken))
		got := detailsOf(t, s, answer.GetScanId())
		if answer.GetSkipped() == 0 || !proto.Equal(got.GetAnswer(), answer) {
			t.Errorf("stored %v\nanswer %v", got.GetAnswer(), answer)
		}
		if got.GetProject() != "acme/web" || got.GetPullRequest() != 7 || !got.GetIsUpload() || got.GetStatus() != scansv1.ScanStatus_SCAN_STATUS_ERROR {
			t.Errorf("%v", got)
		}
		if e := got.GetEffects(); e.GetCreated() != answer.GetCreated() || e.GetSkipped() != answer.GetSkipped() {
			t.Errorf("%v", e)
		}
		a := got.GetAnalyses()
		if len(a) != 1 || a[0].GetTool() != "gosec" || a[0].GetToolVersion() != "2.21" || a[0].Files == nil || a[0].GetSkippedFiles().GetTotal() != 1 ||
			a[0].GetSkippedFiles().GetNames()[0] != "broken.go" {
			t.Errorf("%v", a)
		}
		if n, err := scans.PurgeAnswers(t.Context(), s.Store, time.Now().Add(-time.Hour)); err != nil || n != 0 {
			t.Errorf("purged %d %v", n, err)
		}
		if n, err := scans.PurgeAnswers(t.Context(), s.Store, time.Now().Add(time.Hour)); err != nil || n != 1 {
			t.Errorf("purged %d %v", n, err)
		}
		if got := detailsOf(t, s, answer.GetScanId()); got.GetAnswer() != nil || got.GetEffects().GetCreated() != answer.GetCreated() {
			t.Errorf("purged: %v", got)
		}
		other := s.AddTenant(t, "globex")
		_, err := scansv1.NewScanDetailsServiceClient(s.Conn).GetScanDetails(s.Context(t, other.Token), &scansv1.GetScanDetailsRequest{DeploymentId: other.DeploymentID, ScanId: answer.GetScanId()})
		if status.Code(err) != codes.NotFound {
			t.Errorf("another deployment reads: %v", err)
		}
	})
}

// TestScanDetailsOfScanner: a scan by the scanner protocol has its decision, errors and coverage.
func TestScanDetailsOfScanner(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.block(t, noNew())
		id, answer := c.scan(t, recorded(t, "results"), pull, commit("b"))
		got := detailsOf(t, s, id)
		if got.GetIsUpload() || got.GetAnswer() != nil || got.GetBlocked() != answer["app_block_override"] || got.GetBlockReason() != answer["app_block_reason"] || !got.GetBlocked() {
			t.Errorf("%v\nanswer %v", got, answer)
		}
		if a := got.GetAnalyses(); len(a) != 1 || a[0].GetTool() != "semgrep" || a[0].Rules == nil || a[0].GetRules() == 0 || got.GetEffects().GetCreated() == 0 {
			t.Errorf("%v", got)
		}
	})
}

// TestLongTextsInAnswers: stored answers are bounded.
func TestLongTextsInAnswers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"short": 5, strings.Repeat("x", 1000): 1000, strings.Repeat("é", 501): 1000 + len(" …")} {
		if got := scans.CutText(text); len(got) != want || strings.ToValidUTF8(got, "") != got {
			t.Errorf("%d bytes became %d, want %d", len(text), len(got), want)
		}
	}
}
