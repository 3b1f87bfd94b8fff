package gateway_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
)

// page is a findings list of 100.
func page() *findingsv1.ListFindingsResponse {
	at := &timestamppb.Timestamp{Seconds: 1720730785, Nanos: 269650000}
	response := &findingsv1.ListFindingsResponse{}
	for i := range 100 {
		response.Findings = append(response.Findings, &findingsv1.Finding{
			IssueType: "sast", Id: int64(90000 + i), Ref: "refs/heads/main", FirstSeenScanId: 411, SyntacticId: "5e1f", MatchBasedId: "ab12_0",
			Repository:    &findingsv1.FindingRepository{Name: "acme/web", Url: "https://git.acme.test/acme/web"},
			LineOfCodeUrl: "https://git.acme.test/acme/web/blob/3f2a9c1/app/db.py#L42", TriageState: "untriaged", State: "unresolved",
			Status: "open", Severity: "high", Confidence: "medium", Categories: []string{"security"}, CreatedAt: at, RelevantSince: at,
			RuleName: "py.sqli", RuleMessage: "Query built from input",
			Location:       &findingsv1.FindingLocation{FilePath: "app/db.py", Line: 42, Column: 9, EndLine: 42, EndColumn: 31},
			StateUpdatedAt: at,
			Rule: &findingsv1.FindingRule{
				Name: "py.sqli", Message: "Query built from input", Confidence: "medium", Category: "security",
				Subcategories: []string{"vuln"}, VulnerabilityClasses: []string{"SQL Injection"},
				CweNames: []string{"CWE-89: SQL Injection"}, OwaspNames: []string{"A03:2021 - Injection"},
			},
		})
	}
	return response
}

// BenchmarkListFindings is a page of 100 findings through the whole HTTP side, over a real connection, compared with a
// bare handler that writes the same bytes.
func BenchmarkListFindings(b *testing.B) {
	answer := page()
	s := &recorder{answer: func(context.Context, proto.Message) (proto.Message, error) { return answer, nil }}
	handler := newHandler(b, s, nil)
	recorded := httptest.NewRecorder()
	handler.ServeHTTP(recorded, httptest.NewRequest(http.MethodGet, "/api/v1/deployments/acme/findings", nil))
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(recorded.Body.Bytes()) })
	for name, handler := range map[string]http.Handler{"gateway": handler, "bare": bare} {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(handler)
			defer server.Close()
			request, _ := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+"/api/v1/deployments/acme/findings?page_size=100&severities=high,critical", nil)
			request.Header.Set("Accept-Encoding", "identity")
			b.ReportAllocs()
			for b.Loop() {
				response, err := server.Client().Do(request)
				if err != nil {
					b.Fatal(err)
				}
				n, _ := io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				b.SetBytes(n)
			}
		})
	}
}

// BenchmarkPing is the minimum cost of a request in the gateway, without a socket: the last of the routes with an empty
// response.
func BenchmarkPing(b *testing.B) {
	s := &recorder{}
	s.answer = answerEmpty(s)
	handler := newHandler(b, s, nil)
	request := httptest.NewRequest(http.MethodGet, "/api/v1/ping", nil)
	request.Header.Set("Authorization", "Bearer sgp_x")
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request)
		if w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
}
