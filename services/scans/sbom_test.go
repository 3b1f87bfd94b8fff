package scans_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/finding"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// bom is a CycloneDX document of a tool that lists packages, each as "name version file".
func bom(tool string, packages ...string) []byte {
	var list []string
	for _, p := range packages {
		f := strings.Fields(p)
		list = append(list, fmt.Sprintf(`{"type":"library","name":%q,"version":%q,"purl":"pkg:npm/%s@%s","properties":[{"name":"SrcFile","value":%q}]}`, f[0], f[1], f[0], f[1], f[2]))
	}
	return fmt.Appendf(nil, `{"bomFormat":"CycloneDX","specVersion":"1.6","metadata":{"tools":{"components":[{"name":%q}]}},"components":[%s]}`, tool, strings.Join(list, ","))
}

func storedDependencies(t *testing.T, s *apitest.Server) string {
	t.Helper()
	var lines []string
	for _, d := range s.Store.Reader.Dependency.Query().Where(dependency.DeploymentID(s.DeploymentID)).AllX(s.System(t)) {
		lines = append(lines, fmt.Sprintf("%s %s@%s", d.Lockfile, d.Package, d.Version))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// A bill of materials replaces the dependencies of the earlier one of its tool and category, and nothing else.
func TestBillsOfMaterialsReplaceTheirOwn(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", vulnerable("CVE-2026-1 lodash 4.17.4"))
		for i, step := range []struct {
			ref, category string
			document      []byte
			count         int32
			want          string
		}{
			{"main", "", bom("cdxgen", "lodash 4.17.4 package-lock.json", "ws 1.0.0 api/yarn.lock"), 2, "api/yarn.lock ws@1.0.0, package-lock.json lodash@4.17.4"},
			{"main", "", bom("syft", "tar 1.0.0 image/package.json"), 1, "api/yarn.lock ws@1.0.0, image/package.json tar@1.0.0, package-lock.json lodash@4.17.4"},
			{"main", "b", bom("syft", "tar 2.0.0 b/package.json"), 1, "api/yarn.lock ws@1.0.0, b/package.json tar@2.0.0, image/package.json tar@1.0.0, package-lock.json lodash@4.17.4"},
			{"main", "", bom("cdxgen", "lodash 4.17.5 package-lock.json"), 1, "b/package.json tar@2.0.0, image/package.json tar@1.0.0, package-lock.json lodash@4.17.5"},
			{"dev", "", bom("cdxgen", "express 4.0.0 package-lock.json"), 0, "b/package.json tar@2.0.0, image/package.json tar@1.0.0, package-lock.json lodash@4.17.5"},
		} {
			answer := upload(t, s, step.ref, step.document, "category", step.category)
			if got := storedDependencies(t, s); got != step.want || answer.GetDependencies() != step.count {
				t.Errorf("%d: %d dependencies\n%s\nwant\n%s", i, answer.GetDependencies(), got, step.want)
			}
			if counts(answer) != [6]int32{} {
				t.Errorf("%d: %v", i, counts(answer))
			}
			if warned := len(answer.GetRuns()[0].GetWarnings()) == 1; warned != (step.ref == "dev") {
				t.Errorf("%d: warnings %q", i, answer.GetRuns()[0].GetWarnings())
			}
		}
		if n := s.Store.Reader.Finding.Query().Where(finding.State("unresolved")).CountX(s.System(t)); n != 1 {
			t.Errorf("%d open findings, want 1: a document without vulnerabilities closes nothing", n)
		}
	})
}

// A scanner's bill of materials closes what its next one does not list; one without a list of vulnerabilities does not.
func TestBillsOfMaterialsClose(t *testing.T) {
	t.Parallel()
	document := func(vulnerabilities string) []byte {
		return []byte(`{"bomFormat":"CycloneDX","metadata":{"tools":[{"name":"trivy"}]},"components":[{"type":"library","bom-ref":"a","name":"lodash","version":"1","purl":"pkg:npm/lodash@1"}]` + vulnerabilities + `}`)
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		wantCounts(t, "two", upload(t, s, "main", document(`,"vulnerabilities":[{"id":"CVE-2026-1","affects":[{"ref":"a"}]},{"id":"CVE-2026-2","affects":[{"ref":"a"}]}]`)), [6]int32{2, 0, 0, 0, 0, 0})
		wantCounts(t, "none listed", upload(t, s, "main", document("")), [6]int32{})
		wantCounts(t, "decisions only", upload(t, s, "main", []byte(`{"bomFormat":"CycloneDX","metadata":{"tools":[{"name":"trivy"}]},
			"vulnerabilities":[{"id":"CVE-2026-2","analysis":{"state":"in_triage"},"affects":[{"ref":"pkg:npm/lodash@1"}]}]}`)), [6]int32{})
		wantCounts(t, "unreadable", upload(t, s, "main", document(`,"vulnerabilities":[{"id":"CVE-2026-1","affects":[{"ref":"a"}]},7]`)), [6]int32{0, 0, 1, 0, 0, 1})
		wantCounts(t, "one", upload(t, s, "main", document(`,"vulnerabilities":[{"id":"CVE-2026-1","affects":[{"ref":"a"}]}]`)), [6]int32{0, 0, 1, 0, 1, 0})
		for _, f := range s.Store.Reader.Finding.Query().AllX(s.System(t)) {
			if f.IssueType != "sca" || *f.Package != "lodash" {
				t.Errorf("%s %s", f.IssueType, *f.Package)
			}
		}
	})
}

// TestBillOfMaterialsOverGRPC: both wires give the same answer.
func TestBillOfMaterialsOverGRPC(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/formats/cyclonedx-bom.json")
	if err != nil {
		t.Fatal(err)
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		stream, err := scansv1.NewReportUploadsServiceClient(s.Conn).UploadReport(s.Context(t, s.Token))
		if err != nil {
			t.Fatal(err)
		}
		target := &scansv1.UploadReportTarget{Project: "acme/grpc", Ref: "main", Format: "cyclonedx-json"}
		if err := stream.Send(&scansv1.UploadReportRequest{DeploymentSlug: s.Slug, Target: target, Chunk: raw}); err != nil {
			t.Fatal(err)
		}
		answer, err := stream.CloseAndRecv()
		if err != nil {
			t.Fatal(err)
		}
		other := upload(t, s, "main", raw)
		if answer.GetDependencies() != 6 || answer.GetDependencies() != other.GetDependencies() || counts(answer) != counts(other) || outcome(answer) != outcome(other) {
			t.Errorf("gRPC %v\nHTTP %v", answer, other)
		}
	})
}

// Members of a team decide only about projects of the team.
func TestStatementsOfTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, name := range []string{"acme/ours", "acme/theirs"} {
			s.Upload(t, name, "main", vulnerable("CVE-2026-1 lodash 4.17.4"))
		}
		dev := memberOf(t, s, "acme/ours")
		token := s.AddToken(t, s.Tenant, access.TokenSpec{UserID: dev, Name: "dev", Role: access.RoleMember, Scopes: []access.Scope{access.ScopeAgent}})
		for name, want := range map[string]int{"acme/ours": http.StatusOK, "acme/theirs": http.StatusForbidden} {
			path := "/api/v1/deployments/acme/reports?ref=main&project=" + name
			if answer := s.Do(t, token, http.MethodPost, path, string(says(1, "CVE-2026-1 pkg:npm/lodash not_affected"))); answer.Status != want {
				t.Errorf("%s: %d %s", name, answer.Status, answer.Body)
			}
		}
		if got := decided(t, s, "acme/ours") + decided(t, s, "acme/theirs"); strings.Count(got, "ignored no_triage_reason") != 1 || !strings.HasSuffix(got, "open, ") {
			t.Error(got)
		}
	})
}

// TestBillOfMaterialsMemory stores the packages of a large document twice.
func TestBillOfMaterialsMemory(t *testing.T) {
	testrun.Deep(t) // measures memory
	if testing.Short() {
		t.Skip("imports a large bill of materials twice")
	}
	n := testrun.Size(20_000, 100_000)
	s := apitest.Start(t, nil)
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	for range 2 {
		reader, writer := io.Pipe()
		go func() {
			_, err := fmt.Fprint(writer, `{"bomFormat":"CycloneDX","components":[{"type":"file"}`)
			for i := 0; i < n && err == nil; i++ {
				_, err = fmt.Fprintf(writer, `,{"type":"library","bom-ref":"p%d","purl":"pkg:npm/some-package-%d@1.2.3","licenses":[{"license":{"id":"MIT"}}]}`, i, i)
			}
			_, _ = fmt.Fprint(writer, `],"dependencies":[{}`)
			for i := 0; i < n && err == nil; i++ {
				_, err = fmt.Fprintf(writer, `,{"ref":"p%d","dependsOn":["p%d","p%d","p%d"]}`, i, (i+1)%n, (i+2)%n, (i+3)%n)
			}
			_, _ = fmt.Fprint(writer, `]}`)
			_ = writer.Close()
		}()
		highest := watchHeap(t)
		answer := s.Send(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/reports?project=acme/large&ref=main", reader)
		grown := highest()
		var out struct{ Dependencies int }
		if err := json.Unmarshal([]byte(answer.Body), &out); err != nil || answer.Status != http.StatusOK || out.Dependencies != n {
			t.Fatalf("%d %v %.300s", answer.Status, err, answer.Body)
		}
		t.Logf("%d packages: %d MiB", n, grown>>20)
		if limit := uint64(60<<20 + n*2500); grown > limit {
			t.Errorf("%d packages take %d MiB, want at most %d", n, grown>>20, limit>>20)
		}
	}
	var tooMany strings.Builder
	tooMany.WriteString(`{"bomFormat":"CycloneDX","components":[{"type":"file"}`)
	for i := range 100_001 {
		fmt.Fprintf(&tooMany, `,{"type":"library","name":"p%d"}`, i)
	}
	tooMany.WriteString(`]}`)
	answer := s.Do(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/reports?project=acme/larger&ref=main", tooMany.String())
	if answer.Status != http.StatusRequestEntityTooLarge || !regexp.MustCompile(`more packages .* at most 100000`).MatchString(answer.Body) {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
}
