package scans_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

const acmeMapping = `name: acme-lint
title: Acme Lint JSON
detect: {has: ["files[].problems[].check"]}
tool: {name: Acme Lint, product: sast, failed: doc.status != "done"}
results: files[].problems[]
result: {rule: item.check, message: item.text, path: parent.name, line: item.line, severity: item.level}
`

// acmeReport has n problems.
func acmeReport(status string, n int) []byte {
	var problems []string
	for i := range n {
		problems = append(problems, fmt.Sprintf(`{"check":"A%d","text":"bad","line":%d,"level":"blocker"}`, i, i+1))
	}
	return []byte(`{"status":"` + status + `","files":[{"name":"src/a.go","problems":[` + strings.Join(problems, ",") + `]}]}`)
}

// TestReportFormats: a mapping is stored, lists, imports reports, replaces itself and is deleted, over both wires.
func TestReportFormats(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ctx := s.Context(t, s.Token)
		client := scansv1.NewReportFormatsServiceClient(s.Conn)
		path := fmt.Sprintf("/api/scans/v1/deployments/%d/report-formats", s.DeploymentID)

		report := s.Send(t, s.Token, http.MethodPost, reportsOf("acme/web"), strings.NewReader(string(acmeReport("done", 2))))
		if report.Status != http.StatusBadRequest || !strings.Contains(report.Body, "docs/scanners.md lists the known formats") {
			t.Errorf("without the mapping: %d %s", report.Status, report.Body)
		}
		put, err := client.PutReportFormat(ctx, &scansv1.PutReportFormatRequest{DeploymentId: s.DeploymentID, Mapping: acmeMapping})
		if err != nil || put.GetFormat().GetTitle() != "Acme Lint JSON" || put.GetFormat().GetCreatedAt() == nil {
			t.Fatal(put, err)
		}
		body := s.Do(t, s.Token, http.MethodGet, path, "")
		list, err := client.ListReportFormats(ctx, &scansv1.ListReportFormatsRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, list, body.Body)
		if last := list.GetFormats()[len(list.GetFormats())-1]; last.GetName() != "acme-lint" || last.GetMapping() != acmeMapping {
			t.Errorf("last: %v", last)
		}

		wantCounts(t, "detected", upload(t, s, "main", acmeReport("done", 2)), [6]int32{2, 0, 0, 0, 0, 0})
		wantCounts(t, "named", upload(t, s, "main", acmeReport("done", 2), "format", "acme-lint"), [6]int32{0, 0, 2, 0, 0, 0})
		wantCounts(t, "not finished", upload(t, s, "main", acmeReport("aborted", 1)), [6]int32{0, 0, 1, 0, 0, 0})
		wantCounts(t, "one less", upload(t, s, "main", acmeReport("done", 1)), [6]int32{0, 0, 1, 0, 1, 0})

		if _, err := client.PutReportFormat(ctx, &scansv1.PutReportFormatRequest{
			DeploymentId: s.DeploymentID, Mapping: strings.Replace(acmeMapping, "item.text", "item.txt.", 1),
		}); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "line 6: column 10: Syntax error") {
			t.Errorf("a wrong expression: %v", err)
		}
		if answer := s.Do(t, s.Token, http.MethodDelete, path+"/acme-lint", ""); answer.Status != http.StatusOK {
			t.Errorf("delete: %d %s", answer.Status, answer.Body)
		}
		if answer := s.Do(t, s.Token, http.MethodDelete, path+"/acme-lint", ""); answer.Status != http.StatusNotFound {
			t.Errorf("delete it again: %d %s", answer.Status, answer.Body)
		}
		if answer := s.Send(t, s.Token, http.MethodPost, reportsOf("acme/web")+"&format=acme-lint", strings.NewReader("{}")); answer.Status != http.StatusBadRequest ||
			!strings.Contains(answer.Body, "format \\\"acme-lint\\\" is not known; allowed are trivy-json") {
			t.Errorf("an unknown format: %d %s", answer.Status, answer.Body)
		}
	})
}

func reportsOf(project string) string { return reports + "?ref=main&project=" + project }
