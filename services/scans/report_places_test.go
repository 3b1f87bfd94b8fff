package scans_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/apitest"
)

// placesIn lists the open findings of a project as path:line, with the logical location.
func placesIn(t *testing.T, s *apitest.Server, name string) (list []string) {
	t.Helper()
	of := s.Store.Reader.Project.Query().Where(project.Name(name)).OnlyX(s.System(t))
	for _, row := range s.Store.Reader.Finding.Query().Where(finding.ProjectID(of.ID), finding.State("unresolved")).
		Order(ent.Asc(finding.FieldID)).AllX(s.System(t)) {
		content, err := blob.Decode(row.Content)
		if err != nil {
			t.Fatal(err)
		}
		place := fmt.Sprintf("%s:%d", content.GetLocation().GetFilePath(), content.GetLocation().GetLine())
		if content.GetLogicalLocation() != "" {
			place += " " + content.GetLogicalLocation()
		}
		list = append(list, place)
	}
	return list
}

func wantPlaces(t *testing.T, s *apitest.Server, name string, want ...string) {
	t.Helper()
	got := placesIn(t, s, name)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: places %q, want %q", name, got, want)
	}
}

// uploadTo uploads a report and requires that no result is skipped. It returns the answer and the warnings.
func uploadTo(t *testing.T, s *apitest.Server, name string, report []byte, query ...string) (*scansv1.UploadReportResponse, string) {
	t.Helper()
	answer := &scansv1.UploadReportResponse{}
	if err := protojson.Unmarshal([]byte(s.Upload(t, name, "main", report, query...)), answer); err != nil {
		t.Fatal(err)
	}
	run := answer.GetRuns()[0]
	if answer.GetSkipped() != 0 || run.GetAccepted() != run.GetResults() {
		t.Errorf("%s: %v", name, answer)
	}
	return answer, strings.Join(run.GetWarnings(), "; ")
}

// A tool in a container writes "../../path/x". The result is kept, and the caller may say what the directory is.
func TestPathsThatLeaveTheRepository(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		native, docker := testdata(t, "places/01a-kics-native-run.sarif"), testdata(t, "places/01b-kics-docker-run-dotdot.sarif")
		uploadTo(t, s, "acme/plain", native)
		answer, warnings := uploadTo(t, s, "acme/plain", docker)
		if answer.GetCreated() != 0 || answer.GetFixed() != 0 || answer.GetUpdated() != 1 {
			t.Errorf("from a container: %v", counts(answer))
		}
		if !strings.Contains(warnings, `1 paths leave the repository by ".."`) {
			t.Errorf("warnings %q", warnings)
		}
		wantPlaces(t, s, "acme/plain", "path/ec2.tf:3")

		uploadTo(t, s, "acme/root", native)
		answer, warnings = uploadTo(t, s, "acme/root", docker, "checkout_root", "/path")
		if answer.GetUnchanged() != 1 || warnings != "" {
			t.Errorf("with the root: %v, warnings %q", answer, warnings)
		}
		wantPlaces(t, s, "acme/root", "ec2.tf:3")

		uploadTo(t, s, "acme/prefix", docker, "path_prefix", "deploy/aws/tf")
		wantPlaces(t, s, "acme/prefix", "deploy/path/ec2.tf:3")

		long := fmt.Sprintf(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":[{"ruleId":"r","message":{"text":"m"},
			"locations":[{"physicalLocation":{"artifactLocation":{"uri":"%s"}}}]}]}]}`, randomPath(9000))
		if _, warnings := uploadTo(t, s, "acme/long", []byte(long)); !strings.Contains(warnings, "1 paths are cut after 4096 bytes") {
			t.Errorf("warnings %q", warnings)
		}
	})
}

// randomPath does not compress well, so that it is as long in an index as here.
func randomPath(n int) string {
	out, x := make([]byte, n), uint32(1)
	for i := range out {
		x = x*1664525 + 1013904223
		out[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[x>>16%36]
	}
	return string(out)
}

// The places of one result are findings of their own if the tool means that. Otherwise they are related.
func TestSeveralLocations(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		pmd := testdata(t, "places/05a-pmd-many-locations.sarif")
		const dir = "force-app/main/default/classes/"
		answer, warnings := uploadTo(t, s, "acme/pmd", pmd, "checkout_root", "/home/ci/unhappy-soup/")
		if answer.GetCreated() != 6 || answer.GetRuns()[0].GetResults() != 2 || warnings != "2 results name several places: each place is a finding, 6 in all" {
			t.Errorf("%v, warnings %q", answer, warnings)
		}
		wantPlaces(t, s, "acme/pmd", dir+"ApexSOQLInjection.cls:1", dir+"ApexSharingViolations.cls:1", dir+"ApexSOQLInjection.cls:1",
			dir+"ApexSOQLInjection.cls:3", dir+"ApexSharingViolations.cls:1", dir+"ApexSharingViolations.cls:3")
		if again, _ := uploadTo(t, s, "acme/pmd", pmd, "checkout_root", "/home/ci/unhappy-soup"); again.GetUnchanged() != 6 {
			t.Errorf("again: %v", again)
		}
		if _, warnings := uploadTo(t, s, "acme/pmd", pmd); !strings.Contains(warnings, "6 paths are absolute, such as /home/ci/unhappy-soup/") {
			t.Errorf("without the root: warnings %q", warnings)
		}

		if answer, warnings := uploadTo(t, s, "acme/cppcheck", testdata(t, "places/05d-cppcheck-locations-are-a-path.sarif")); answer.GetCreated() != 2 || warnings != "" {
			t.Errorf("%v, warnings %q", answer, warnings)
		}
		wantPlaces(t, s, "acme/cppcheck", "cc_many.c:21", "cc_many.c:6")
	})
}

// Two resources in one file differ only by their logical locations, which the answers show.
func TestLogicalLocations(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		uploadTo(t, s, "acme/k8s", testdata(t, "places/06c-kubescape-form-two-resources.sarif"))
		wantPlaces(t, s, "acme/k8s", "deploy.yaml:1 Deployment/db", "deploy.yaml:1 Deployment/web")
		const only = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"logicalLocations":[{"name":"acme"},{"name":"Web","parentIndex":0}],
			"results":[{"ruleId":"r","message":{"text":"m"},"locations":[{"logicalLocations":[{"index":1}]}]}],
			"versionControlProvenance":[{"repositoryUri":"https://git.acme.test/acme/web","revisionId":"3f2a9c1"}]}]}`
		uploadTo(t, s, "acme/only", []byte(only))
		for name, want := range map[string]string{
			"acme/k8s":  `"location":{"file_path":"deploy.yaml","line":1,"column":1,"end_line":1,"end_column":1,"logical_location":"Deployment/`,
			"acme/only": `"location":{"file_path":"acme.Web","line":1,"column":1,"end_line":1,"end_column":1,"logical_location":"acme.Web"}`,
		} {
			list := s.Get(t, "/api/v1/deployments/acme/findings?repos="+name)
			if !strings.Contains(list, want) || strings.Contains(list, "/blob/3f2a9c1/acme.Web") {
				t.Errorf("%s: %s", name, list)
			}
			id := regexp.MustCompile(`"id":(\d+),"ref"`).FindStringSubmatch(list)
			if id == nil {
				t.Fatal(list)
			}
			explained := s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/findings/%s/identity", s.DeploymentID, id[1]))
			if !strings.Contains(explained, `"logicalLocation":"`) {
				t.Errorf("%s: %s", name, explained)
			}
		}
	})
}

// The directory of an agent is guessed and told. The root of the file system is no place.
func TestRootsThatTheReportDoesNotName(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		azure := testdata(t, "places/12a-tslint-azure-agent-path.sarif")
		const file = "SecureApp/ts/test-data/NoCookies/NoCookiesFailingTestInput.ts"
		_, warnings := uploadTo(t, s, "acme/azure", azure)
		if !strings.Contains(warnings, "C:/a2/_work/6/s is taken for its directory, because it looks like the checkout of Azure Pipelines") {
			t.Errorf("warnings %q", warnings)
		}
		wantPlaces(t, s, "acme/azure", file+":7", file+":8", file+":9")
		if answer, warnings := uploadTo(t, s, "acme/azure", azure, "checkout_root", `c:\A2\_work\6\s`); answer.GetUnchanged() != 3 || warnings != "" {
			t.Errorf("%v, warnings %q", answer, warnings)
		}
		uploadTo(t, s, "acme/zap", testdata(t, "places/12c-hdf-zap-path-slash.sarif"))
		wantPlaces(t, s, "acme/zap", ":1", ":1")
	})
}

// The report or the caller names the repository and the commit, so that links to the code are real.
func TestRepositoryOfReports(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := func(repository string) []byte {
			return fmt.Appendf(nil, `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":[{"ruleId":"r","message":{"text":"m"},
				"locations":[{"physicalLocation":{"artifactLocation":{"uri":"file:///w/web/app/a.go"},"region":{"startLine":7}}}]}],
				"versionControlProvenance":[{"repositoryUri":"%s","revisionId":"3f2a9c1","branch":"main","mappedTo":{"uri":"file:///w/web/"}}]}]}`, repository)
		}
		linked := func(commit, link string) {
			t.Helper()
			list := s.Get(t, "/api/v1/deployments/acme/findings?repos=acme/web")
			for _, want := range []string{`"url":"` + link + `"`, `"line_of_code_url":"` + link + "/blob/" + commit + `/app/a.go#L7"`} {
				if !strings.Contains(list, want) {
					t.Errorf("%s is not in %s", want, list)
				}
			}
		}
		uploadTo(t, s, "acme/web", report("javascript:alert(1)"))
		if list := s.Get(t, "/api/v1/deployments/acme/findings?repos=acme/web"); !strings.Contains(list, `"url":""`) || !strings.Contains(list, `"line_of_code_url":""`) {
			t.Errorf("a link from a wrong URI: %s", list)
		}
		uploadTo(t, s, "acme/web", report("https://kim:pw@git.acme.test/acme/web.git"))
		linked("3f2a9c1", "https://git.acme.test/acme/web")
		uploadTo(t, s, "acme/web", report("https://other.acme.test/x/y"), "commit", "77aa001")
		linked("3f2a9c1", "https://git.acme.test/acme/web") // an unchanged finding keeps its commit
		var commits []string
		for _, row := range s.Store.Reader.Scan.Query().Order(ent.Asc(scan.FieldID)).AllX(s.System(t)) {
			commits = append(commits, row.Commit)
		}
		if want := []string{"3f2a9c1", "3f2a9c1", "77aa001"}; !slices.Equal(commits, want) {
			t.Errorf("commits of the scans %q, want %q", commits, want)
		}
		uploadTo(t, s, "acme/web", report("https://other.acme.test/x/y"), "repo_url", "git@code.acme.test:acme/web.git")
		linked("3f2a9c1", "https://code.acme.test/acme/web")
		const patch = "/api/v1/deployments/acme/projects/acme/web"
		s.Body(t, s.Token, http.MethodPatch, patch, `{"url":"ssh://git@ssh.acme.test:7999/acme/web.git"}`, http.StatusOK)
		linked("3f2a9c1", "https://ssh.acme.test/acme/web")
		if err := s.Store.Write(s.System(t), bindBySync); err != nil {
			t.Fatal(err)
		}
		uploadTo(t, s, "acme/web", report("https://other.acme.test/x/y"), "repo_url", "https://other.acme.test/x/y")
		linked("3f2a9c1", "https://ssh.acme.test/acme/web")
		s.Body(t, s.Token, http.MethodPatch, patch, `{"url":"https://ssh.acme.test/acme/web"}`, http.StatusOK)
		refused := s.Body(t, s.Token, http.MethodPatch, patch, `{"url":"https://other.acme.test/x/y"}`, http.StatusBadRequest)
		if !strings.Contains(refused, "the url of this project comes from its source-code host") {
			t.Errorf("%s", refused)
		}
	})
}

func bindBySync(ctx context.Context, tx *ent.Tx) error {
	return tx.Project.Update().Where(project.Name("acme/web")).SetBoundBy("sync").Exec(ctx)
}

// Wrong parameters are refused by name.
func TestRefusedPlaces(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, c := range []struct{ name, value, want string }{
			{"checkout_root", "builds/web", "checkout_root must be an absolute directory"},
			{"checkout_root", "/", "checkout_root must be an absolute directory"},
			{"path_prefix", "../web", "path_prefix must be a directory of the repository"},
			{"path_prefix", "/web", "path_prefix must be a directory of the repository"},
			{"repo_url", "javascript:alert(1)", "repo_url must be the URL of a Git repository"},
			{"repo_url", "https://kim:pw1@/", "repo_url must be the URL of a Git repository"},
			{"checkoutroot", "/w", `\"checkoutroot\" is not a parameter of this upload; allowed are project, ref, commit, category, product`},
		} {
			query := url.Values{"project": {"acme/web"}, "ref": {"main"}, c.name: {c.value}}
			got := s.Body(t, s.Token, http.MethodPost, reports+"?"+query.Encode(), string(sarifOf(t, run{Tool: "t"})), http.StatusBadRequest)
			if !strings.Contains(got, c.want) || strings.Contains(got, "pw1") || strings.Contains(got, "target.") {
				t.Errorf("%s=%s: %s", c.name, c.value, got)
			}
		}
	})
}

// The name of the build machine changes with each run.
func TestMachinesInPaths(t *testing.T) {
	t.Parallel()
	report := func(root string) []byte {
		var results []string
		for n := range 4 {
			results = append(results, fmt.Sprintf(`{"ruleId":"r%d","message":{"text":"same %d"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"%s/src/a%d.go"},
				"region":{"startLine":%d}}}]}`, n, n, root, n, n+1))
		}
		return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"acme"}},"results":[` + strings.Join(results, ",") + `]}]}`)
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for name, c := range map[string]struct {
			first, second string
			query         []string
		}{
			"acme/given":   {"file://agent-1/home/ci/proj", "file://agent-2/home/ci/proj", []string{"checkout_root", "/home/ci/proj"}},
			"acme/share":   {"file://BUILD-01/c$/proj", "file://build-01/C$/Proj", []string{"checkout_root", `\\build-01\c$\proj`}},
			"acme/guessed": {"file://agent-1/builds/g/p", "file://agent-2/home/runner/work/r/r", nil},
		} {
			s.Upload(t, name, "main", report(c.first), c.query...)
			wantPlaces(t, s, name, "src/a0.go:1", "src/a1.go:2", "src/a2.go:3", "src/a3.go:4")
			if answer := s.Upload(t, name, "main", report(c.second), c.query...); !strings.Contains(answer, `"created":0`) || !strings.Contains(answer, `"fixed":0`) {
				t.Errorf("%s from another machine: %s", name, answer)
			}
		}
		if answer := s.Upload(t, "acme/unknown", "main", report("file://agent-1/home/ci/proj")); !strings.Contains(answer, "if it is a host, checkout_root may say") {
			t.Errorf("without a root: %s", answer)
		}
	})
}
