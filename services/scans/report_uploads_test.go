package scans_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

const reports = "/api/v1/deployments/acme/reports"

// TestRealReports: every result of the real files is accounted for, and uploading them again changes nothing.
func TestRealReports(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, file := range []struct {
			name    string
			results int32
		}{{"gosec", 309}, {"eslint", 729}, {"staticcheck", 111}} {
			raw := testdata(t, file.name+".sarif")
			first := s.Upload(t, "acme/web", "main", raw, "commit", "3f2a9c1")
			apitest.Golden(t, "upload_"+file.name, first)
			second := upload(t, s, "main", raw, "commit", "77aa001")
			if counts(second) != [6]int32{0, 0, file.results, 0, 0, 0} || second.GetRuns()[0].GetResults() != file.results {
				t.Errorf("%s again: %v", file.name, counts(second))
			}
		}
		if n := s.Store.Reader.Finding.Query().CountX(s.System(t)); n != 309+729+111 {
			t.Errorf("%d findings", n)
		}
	})
}

// TestUploadOverGRPC: the client stream and the HTTP body are equivalent.
func TestUploadOverGRPC(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		raw := testdata(t, "gosec.sarif")
		stream, err := scansv1.NewReportUploadsServiceClient(s.Conn).UploadReport(s.Context(t, s.Token))
		if err != nil {
			t.Fatal(err)
		}
		err = stream.Send(&scansv1.UploadReportRequest{DeploymentSlug: s.Slug, Target: &scansv1.UploadReportTarget{Project: "acme/web", Ref: "main"}})
		for len(raw) > 0 && err == nil {
			n := min(len(raw), 10_000)
			err = stream.Send(&scansv1.UploadReportRequest{Chunk: raw[:n]})
			raw = raw[n:]
		}
		if err != nil {
			t.Fatal(err)
		}
		response, err := stream.CloseAndRecv()
		if err != nil {
			t.Fatal(err)
		}
		wantCounts(t, "gRPC", response, [6]int32{309, 0, 0, 0, 0, 0})
		wantCounts(t, "then HTTP", upload(t, s, "main", testdata(t, "gosec.sarif")), [6]int32{0, 0, 309, 0, 0, 0})
	})
}

func gzipped(t testing.TB, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUploadForms(t *testing.T) {
	s := apitest.Start(t, nil)
	raw := testdata(t, "gosec.sarif")
	upload(t, s, "main", raw)
	wrapped, err := json.Marshal(map[string]string{"commit_sha": "3f2a9c1", "ref": "refs/heads/main", "sarif": base64.StdEncoding.EncodeToString(gzipped(t, raw))})
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]struct {
		body   []byte
		header []string
	}{
		"gzip by Content-Encoding": {gzipped(t, raw), []string{"Content-Encoding", "gzip"}},
		"a .gz file as it is":      {gzipped(t, raw), nil},
		"base64 in JSON":           {wrapped, nil},
		"byte order mark":          {append([]byte("\xef\xbb\xbf"), raw...), nil},
		"identity":                 {raw, []string{"Content-Encoding", "identity", "Content-Type", "application/sarif+json"}},
	} {
		answer := s.Send(t, s.Token, http.MethodPost, reports+"?project=acme/web&ref=main", bytes.NewReader(form.body), form.header...)
		if answer.Status != 200 || !strings.Contains(answer.Body, `"created":0,"updated":0,"unchanged":309,`) {
			t.Errorf("%s: %d %.300s", name, answer.Status, answer.Body)
		}
	}
}

func TestUploadRefusals(t *testing.T) {
	s := apitest.Start(t, func(c *config.Config) { c.MaxUpload = 300_000 })
	good := sarifOf(t, run{Tool: "gosec", Results: []result{sqli}})
	damaged := gzipped(t, good)
	damaged = damaged[:len(damaged)-6]
	bomb := gzipped(t, append(good, bytes.Repeat([]byte(" "), 1<<20)...))
	for name, c := range map[string]struct {
		query, body string
		header      []string
		status      int
	}{
		"no_project":     {"ref=main", string(good), nil, 400},
		"no_ref":         {"project=acme/web", string(good), nil, 400},
		"bad_project":    {"project=acme//web&ref=main", string(good), nil, 400},
		"bad_product":    {"project=acme/web&ref=main&product=dast", string(good), nil, 400},
		"empty":          {"project=acme/web&ref=main", "", nil, 400},
		"broken_json":    {"project=acme/web&ref=main", `{"version":"2.1.0","runs":[{"tool":`, nil, 400},
		"not_sarif":      {"project=acme/web&ref=main", `{"hello":"world"}`, nil, 400},
		"other_version":  {"project=acme/web&ref=main", `{"version":"3.0.0","runs":[]}`, nil, 400},
		"damaged_gzip":   {"project=acme/web&ref=main", string(damaged), nil, 400},
		"not_gzip":       {"project=acme/web&ref=main", string(good), []string{"Content-Encoding", "gzip"}, 400},
		"other_encoding": {"project=acme/web&ref=main", string(good), []string{"Content-Encoding", "br"}, 415},
		"too_large":      {"project=acme/web&ref=main", strings.Repeat(" ", 300_001), nil, 413},
		"zip_bomb":       {"project=acme/web&ref=main", string(bomb), nil, 413},
	} {
		apitest.Golden(t, "refused_"+name, s.Body(t, s.Token, http.MethodPost, reports+"?"+c.query, c.body, c.status, c.header...))
	}
	ctx := s.System(t)
	if n := s.Store.Reader.Project.Query().CountX(ctx) + s.Store.Reader.Scan.Query().CountX(ctx); n != 0 {
		t.Errorf("refused uploads left %d rows", n)
	}
}

// TestUploadRefs: an upload of a checkout without a branch needs its commit. Without one, uploads of all branches would
// be on one ref, and close each other's findings.
func TestUploadRefs(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		good := sarifOf(t, run{Tool: "gosec", Results: []result{sqli}})
		sha := strings.Repeat("3f", 20)
		for _, ref := range []string{"HEAD", "@", "FETCH_HEAD", "origin/HEAD", "remotes/origin/HEAD", "refs/remotes/origin/HEAD", "refs/detached/HEAD"} {
			for _, commit := range []string{"", "v1.2"} {
				answer := s.Send(t, s.Token, http.MethodPost, reports+"?project=acme/web&ref="+ref+"&commit="+commit, bytes.NewReader(good))
				if answer.Status != 400 || !strings.Contains(answer.Body, "pass its commit (a full hash) as commit, or a branch as ref") {
					t.Errorf("%s of commit %q: %d %s", ref, commit, answer.Status, answer.Body)
				}
			}
			s.Upload(t, "acme/web", ref, good, "commit", sha)
		}
		for _, row := range s.Store.Reader.Scan.Query().AllX(s.System(t)) {
			if row.Ref != "refs/detached/"+sha {
				t.Errorf("%d: %s", row.ID, row.Ref)
			}
		}
		if of := s.Store.Reader.Project.Query().OnlyX(s.System(t)); of.DefaultBranch != "" {
			t.Errorf("default branch %s", of.DefaultBranch)
		}
	})
}

// TestControlCharactersInNames: no upload has a tool or a category that a server uses for itself.
func TestControlCharactersInNames(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, c := range []struct {
			of           run
			query, field string
		}{
			{run{Tool: "gosec"}, "&category=%01moving", "category"},
			{run{Tool: "gosec"}, "&category=a%0Ab", "category"},
			{run{Tool: "gosec", Category: "\x01moving"}, "", "runs[0].automationDetails.id"},
			{run{Tool: "go\x7fsec"}, "", "runs[0].tool.driver.name"},
		} {
			c.of.Results = []result{sqli}
			got := s.Body(t, s.Token, http.MethodPost, reports+"?project=acme/web&ref=main"+c.query, string(sarifOf(t, c.of)), 400)
			if !strings.Contains(got, `"field":"`+c.field+`"`) || !strings.Contains(got, "must have no control characters") {
				t.Errorf("%+v %s: %s", c.of, c.query, got)
			}
		}
		if n := s.Store.Reader.Scan.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d scans", n)
		}
		s.Upload(t, "acme/web", "main", sarifOf(t, run{Tool: "gosec", Category: "\x01moving", Results: []result{sqli}}), "category", "api")
	})
}

// TestAbortedUpload: an upload that ends half-way leaves nothing behind.
func TestAbortedUpload(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ctx, cancel := context.WithCancel(s.Context(t, s.Token))
		stream, err := scansv1.NewReportUploadsServiceClient(s.Conn).UploadReport(ctx)
		if err != nil {
			t.Fatal(err)
		}
		err = stream.Send(&scansv1.UploadReportRequest{DeploymentSlug: s.Slug, Target: &scansv1.UploadReportTarget{Project: "acme/web", Ref: "main"},
			Chunk: testdata(t, "gosec.sarif")[:100_000]})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := stream.CloseAndRecv(); status.Code(err) != codes.Canceled {
			t.Errorf("got %v, want Canceled", err)
		}
		if n := s.Store.Reader.Scan.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("an aborted upload left %d scans", n)
		}
	})
}

func TestUploadStreamRules(t *testing.T) {
	s := apitest.Start(t, nil)
	other := s.AddTenant(t, "umbrella")
	target := &scansv1.UploadReportTarget{Project: "acme/web", Ref: "main"}
	for name, c := range map[string]struct {
		token string
		send  []*scansv1.UploadReportRequest
		want  codes.Code
	}{
		"no message":             {s.Token, nil, codes.InvalidArgument},
		"no target":              {s.Token, []*scansv1.UploadReportRequest{{DeploymentSlug: "acme", Chunk: []byte("{}")}}, codes.InvalidArgument},
		"second target":          {s.Token, []*scansv1.UploadReportRequest{{DeploymentSlug: "acme", Target: target, Chunk: []byte("{")}, {Target: target, Chunk: []byte("}")}}, codes.InvalidArgument},
		"another tenant's slug":  {other.Token, []*scansv1.UploadReportRequest{{DeploymentSlug: "acme", Target: target, Chunk: []byte("{}")}}, codes.NotFound},
		"slug changes half-way":  {s.Token, []*scansv1.UploadReportRequest{{DeploymentSlug: "acme", Target: target, Chunk: []byte("{")}, {DeploymentSlug: "umbrella", Chunk: []byte("}")}}, codes.InvalidArgument},
		"read-only cannot write": {s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly}), []*scansv1.UploadReportRequest{{DeploymentSlug: "acme", Target: target}}, codes.PermissionDenied},
	} {
		stream, err := scansv1.NewReportUploadsServiceClient(s.Conn).UploadReport(s.Context(t, c.token))
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range c.send {
			_ = stream.Send(message) // the answer says what is wrong
		}
		if _, err := stream.CloseAndRecv(); status.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestSkippedResultsAreListed: nothing is dropped silently.
func TestSkippedResultsAreListed(t *testing.T) {
	s := apitest.Start(t, nil)
	var many []result
	for i := range 1200 {
		many = append(many, result{Rule: "r", File: fmt.Sprintf("f%d.go", i), Level: "none", Line: 1})
	}
	many = append(many, sqli, result{Rule: "none", File: "a.go", Level: "none", Line: 1})
	r := upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: many}))
	wantCounts(t, "skipped", r, [6]int32{1, 0, 0, 0, 0, 1201})
	if len(r.GetSkippedResults()) != 1000 || r.GetSkippedResultsOmitted() != 201 || r.GetSkippedResults()[7].GetReason() == "" || r.GetSkippedResults()[7].GetIndex() != 7 {
		t.Errorf("%d listed, %d omitted, %v", len(r.GetSkippedResults()), r.GetSkippedResultsOmitted(), r.GetSkippedResults()[7])
	}
}

// TestReportThatNamesARuleForEachResult: rules stay in memory, so a report that has a rule per result is rejected. This
// includes results that name parts of a declared rule (SARIF 3.27.5).
func TestReportThatNamesARuleForEachResult(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, nil)
	for _, prefix := range []string{"r", "declared/"} {
		var b strings.Builder
		b.WriteString(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"numbers","rules":[{"id":"declared"}]}},"results":[`)
		for i := range 50_600 {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"ruleId":"%s%d","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"}}}]}`, prefix, i)
		}
		b.WriteString(`]}]}`)
		answer := s.Send(t, s.Token, http.MethodPost, reports+"?project=acme/web&ref=main", strings.NewReader(b.String()))
		if answer.Status != http.StatusRequestEntityTooLarge || !strings.Contains(answer.Body, `"the results name more than 50000 rules`) {
			t.Errorf("%s: %d %.300s", prefix, answer.Status, answer.Body)
		}
	}
	if ctx := s.System(t); s.Store.Reader.Project.Query().CountX(ctx)+s.Store.Reader.Rule.Query().CountX(ctx) != 0 {
		t.Error("refused uploads left rows")
	}
}
