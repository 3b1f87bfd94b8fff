package scans_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// withProperty adds a property to the runs of a report.
func withProperty(report []byte, value string) []byte {
	return []byte(strings.Replace(string(report), `"results":`, `"properties":{"product":`+value+`},"results":`, 1))
}

// uploadStream uploads a report over gRPC.
func uploadStream(t *testing.T, s *apitest.Server, target *scansv1.UploadReportTarget, report []byte) *scansv1.UploadReportResponse {
	t.Helper()
	stream, err := scansv1.NewReportUploadsServiceClient(s.Conn).UploadReport(s.Context(t, s.Token))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&scansv1.UploadReportRequest{DeploymentSlug: s.Slug, Target: target}); err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&scansv1.UploadReportRequest{Chunk: report}); err != nil {
		t.Fatal(err)
	}
	response, err := stream.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// Findings of a detection by AI come from an upload over either protocol, or from a property of the run. They are a
// product of their own in lists and when findings are closed, and count as code.
func TestDetectionByAI(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report, less := sarifOf(t, run{Tool: "multi", Results: []result{sqli, xss}}), sarifOf(t, run{Tool: "multi", Results: []result{xss}})
		upload(t, s, "main", report)
		wantCounts(t, "HTTP", upload(t, s, "main", report, "product", "ai_sast"), [6]int32{2, 0, 0, 0, 0, 0})
		target := &scansv1.UploadReportTarget{Project: "acme/web", Ref: "main", Product: "ai_sast"}
		wantCounts(t, "gRPC", uploadStream(t, s, target, report), [6]int32{0, 0, 2, 0, 0, 0})
		wantCounts(t, "property", upload(t, s, "main", withProperty(less, `"AI_SAST"`)), [6]int32{0, 0, 1, 0, 1, 0})
		wantProductStates(t, s, "products", "sast unresolved", "sast unresolved", "ai_sast fixed", "ai_sast unresolved")
		wantCounts(t, "the parameter wins", upload(t, s, "main", withProperty(report, `"ai_sast"`), "product", "sast"), [6]int32{0, 0, 2, 0, 0, 0})

		list := s.Get(t, "/api/v1/deployments/acme/findings?issue_type=ai_sast")
		if strings.Count(list, `"rule_name"`) != 2 || !strings.Contains(list, `"status":"fixed"`) {
			t.Errorf("listed: %s", list)
		}
		scans := s.Do(t, s.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/scans/search", s.DeploymentID), `{}`)
		if !strings.Contains(scans.Body, `"enabled_products":["ai_sast"]`) || !strings.Contains(scans.Body, `"code":"2"`) {
			t.Errorf("scans: %s", scans.Body)
		}
	})
}

// An unknown product of a run is ignored with a warning.
func TestUnknownProductOfRun(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		answer := upload(t, s, "main", withProperty(sarifOf(t, run{Tool: "multi", Results: []result{sqli}}), `"dast"`))
		want := `properties.product is ignored: it is "dast", want one of sast, sca, secrets, ai_sast`
		if got := answer.GetRuns()[0]; got.GetProduct() != "sast" || !slices.Contains(got.GetWarnings(), want) {
			t.Errorf("%s %q", got.GetProduct(), got.GetWarnings())
		}
	})
}
