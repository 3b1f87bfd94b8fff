package scans_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/apitest"
)

// dismiss triages one finding in code as false positive.
func dismiss(t *testing.T, s *apitest.Server, id int64) {
	t.Helper()
	dismissIssue(t, s, "sast", id)
}

func dismissIssue(t *testing.T, s *apitest.Server, issueType string, id int64) {
	t.Helper()
	answer := s.Do(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage", fmt.Sprintf(
		`{"issue_type":%q,"issue_ids":[%d],"new_triage_state":"ignored","new_triage_reason":"false_positive","new_note":"checked"}`, issueType, id))
	if answer.Status != 200 {
		t.Fatalf("triage: %d %s", answer.Status, answer.Body)
	}
}

// told describes the findings of main in the order of their ids: path, line, logical location, fingerprint, state,
// status.
func told(t *testing.T, s *apitest.Server) (list []string) {
	t.Helper()
	for _, row := range rows(t, s, "refs/heads/main") {
		list = append(list, strings.Join(append(placeOf(t, row), row.State, row.Status), " "))
	}
	return list
}

func placeOf(t *testing.T, row *ent.Finding) []string {
	t.Helper()
	content, err := blob.Decode(row.Content)
	if err != nil {
		t.Fatal(err)
	}
	place := []string{fmt.Sprintf("%s:%d", content.GetLocation().GetFilePath(), content.GetLocation().GetLine())}
	for _, part := range []string{content.GetLogicalLocation(), content.GetToolFingerprint(), row.AnalysisCategory} {
		if part != "" {
			place = append(place, part)
		}
	}
	return place
}

// Between the uploads of each case, the first finding is triaged. Its decision stays with what it was made on.
func TestDecisionStaysWithItsProblem(t *testing.T) {
	t.Parallel()
	kube := func(names ...string) string {
		var results []string
		for _, name := range names {
			results = append(results, fmt.Sprintf(`{"ruleId":"C-0016","message":{"text":"Allow privilege escalation"},"locations":[{"physicalLocation":
				{"artifactLocation":{"uri":"deploy.yaml"},"region":{"startLine":1}},"logicalLocations":[{"fullyQualifiedName":%q}]}]}`, name))
		}
		return `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"kubescape"}},"results":[` + strings.Join(results, ",") + `]}]}`
	}
	fortify := func(properties string, values ...string) string {
		var results []string
		for _, value := range values {
			results = append(results, fmt.Sprintf(`{"ruleId":"npd","message":{"text":"can crash"},%s,"locations":[{"physicalLocation":
				{"artifactLocation":{"uri":"a.m"},"region":{"startLine":172}}}]}`, fmt.Sprintf(properties, value)))
		}
		return `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"Fortify"}},"results":[` + strings.Join(results, ",") + `]}]}`
	}
	const identified = `"fingerprints":{"issue/v1":%q}`
	image := func(name, file string) string {
		return fmt.Sprintf(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"Trivy"}},"properties":{"imageName":%q},"results":[{"ruleId":"CVE-1",
			"message":{"text":"zlib is vulnerable"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":%q}}}]}]}]}`, name, file)
	}
	archive := func(name, tag string) string {
		return fmt.Sprintf(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"Trivy"}},"properties":{"imageName":%q,"repoTags":[%q]},"results":[
			{"ruleId":"CVE-1","message":{"text":"zlib is vulnerable"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":%q}}}]}]}]}`, name, tag, name)
	}
	checkov := func(name string, line int) string {
		return fmt.Sprintf(`{"check_type":"terraform","results":{"failed_checks":[{"check_id":"CKV_AWS_18","check_name":"Ensure logging",
			"code_block":null,"file_path":"/main.tf","file_line_range":[%d,%d],"resource":%q}]},"summary":{"checkov_version":"3"}}`, line, line+3, name)
	}
	logical := func(file, locations, table string) string {
		return fmt.Sprintf(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"scan"}},"logicalLocations":[%s],"results":[{"ruleId":"r","message":{"text":"m"},
			"locations":[{"physicalLocation":{"artifactLocation":{"uri":%q},"region":{"startLine":1}},"logicalLocations":[%s]}]}]}]}`, table, file, locations)
	}
	file := func(name string) string { return string(testdata(t, "reports/"+name+".sarif")) }
	for name, c := range map[string]struct {
		reports []string
		want    []string
	}{
		"a resource is fixed": {
			[]string{file("06c-kubescape-form-two-resources"), file("06d-kubescape-form-web-fixed")},
			[]string{"deploy.yaml:1 Deployment/web fixed fixed", "deploy.yaml:1 Deployment/db unresolved open"},
		},
		"a resource is replaced, and returns": {
			[]string{kube("Deployment/web", "Deployment/db"), kube("Deployment/db", "Deployment/cache"), kube("Deployment/web", "Deployment/cache")},
			[]string{"deploy.yaml:1 Deployment/web unresolved ignored", "deploy.yaml:1 Deployment/db fixed fixed", "deploy.yaml:1 Deployment/cache unresolved open"},
		},
		"another bucket by Checkov": {
			[]string{checkov("aws_s3_bucket.logs", 1), checkov("aws_s3_bucket.data", 20), checkov("aws_s3_bucket.logs", 9)},
			[]string{"main.tf:9 aws_s3_bucket.logs unresolved ignored", "main.tf:20 aws_s3_bucket.data fixed fixed"},
		},
		"another object in SARIF": {
			[]string{logical("k.yaml", `{"fullyQualifiedName":"default.Deployment.web"}`, ""), logical("k.yaml", `{"fullyQualifiedName":"default.Deployment.db"}`, "")},
			[]string{"k.yaml:1 default.Deployment.web fixed fixed", "k.yaml:1 default.Deployment.db unresolved open"},
		},
		"a kind that is no code": {
			[]string{
				logical("stack.ts", `{"name":"web","kind":"resource"}`, ""), logical("stack.ts", `{"name":"db","kind":"resource"}`, ""),
				logical("stack.ts", `{"name":"web","kind":"resource"}`, ""),
			},
			[]string{"stack.ts:1 web unresolved ignored", "stack.ts:1 db fixed fixed"},
		},
		"a kind in the table of the run": {
			[]string{
				logical("stack.ts", `{"index":1}`, `{"name":"Deployment"},{"name":"web","parentIndex":0,"kind":"object"}`),
				logical("stack.ts", `{"index":1}`, `{"name":"Deployment"},{"name":"db","parentIndex":0,"kind":"object"}`),
			},
			[]string{"stack.ts:1 Deployment.web fixed fixed", "stack.ts:1 Deployment.db unresolved open"},
		},
		"a function is renamed": {
			[]string{
				logical("a.go", `{"fullyQualifiedName":"acme.test/web.Get","kind":"function"}`, ""),
				logical("a.go", `{"fullyQualifiedName":"acme.test/web.Read","kind":"function"}`, ""),
			},
			[]string{"a.go:1 acme.test/web.Read unresolved ignored"},
		},
		"two archives of images": {
			[]string{archive("image.tar", "acme/web:1"), archive("image.tar", "acme/db:1"), archive("/tmp/ci-2/image.tar", "acme/web:2")},
			[]string{"/tmp/ci-2/image.tar:1 acme/web unresolved ignored", "image.tar:1 acme/db unresolved open"},
		},
		"another Dockerfile": {
			[]string{file("14a-hadolint-web-Dockerfile"), file("14b-hadolint-db-Dockerfile"), file("14a-hadolint-web-Dockerfile")},
			[]string{"web/Dockerfile:3 unresolved ignored", "db/Dockerfile:9 fixed fixed"},
		},
		"an instance is fixed": {
			[]string{file("14e-fortify-two-instances"), file("14f-fortify-first-fixed")},
			[]string{"bannedAPIs.m:172 InstanceId:30C5553B fixed fixed", "bannedAPIs.m:172 InstanceId:7FFA1C22 unresolved open"},
		},
		"all instances are others": {
			[]string{fortify(identified, "a"), fortify(identified, "b"), fortify(identified, "b", "a")},
			[]string{"a.m:172 issue/v1:a unresolved ignored", "a.m:172 issue/v1:b unresolved open"},
		},
		"a partial fingerprint that is not an id": {
			[]string{fortify(`"partialFingerprints":{"resultHash":%q}`, "a", "b"), fortify(`"partialFingerprints":{"resultHash":%q}`, "b")},
			[]string{"a.m:172 fixed fixed", "a.m:172 unresolved open"},
		},
		"two images": {
			[]string{image("acme/web:1", "lib/apk"), image("acme/db:1", "lib/apk"), image("acme/web:2", "lib/apk")},
			[]string{"lib/apk:1 acme/web unresolved ignored", "lib/apk:1 acme/db unresolved open"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apitest.Each(t, func(t *testing.T, s *apitest.Server) {
				upload(t, s, "main", []byte(c.reports[0]), "product", "sast")
				dismiss(t, s, rows(t, s, "refs/heads/main")[0].ID)
				for _, report := range c.reports[1:] {
					upload(t, s, "main", []byte(report), "product", "sast")
				}
				if got := told(t, s); !slices.Equal(got, c.want) {
					t.Errorf("got  %q\nwant %q", got, c.want)
				}
				if n := s.Store.Reader.Finding.Query().CountX(s.System(t)); n != len(c.want) {
					t.Errorf("%d findings", n)
				}
			})
		})
	}
}

// TestDecisionStaysWithItsPackage: one advisory is about several packages of a file, and the tool's message names none.
func TestDecisionStaysWithItsPackage(t *testing.T) {
	t.Parallel()
	report := func(packages ...string) []byte {
		var results []string
		for _, name := range packages {
			results = append(results, fmt.Sprintf(`{"ruleId":"CVE-2021-23337","message":{"text":"Command injection"},"properties":{"purl":"pkg:npm/%s"},
				"locations":[{"physicalLocation":{"artifactLocation":{"uri":"package-lock.json"},"region":{"startLine":1}}}]}`, name))
		}
		return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"auditor"}},"results":[` + strings.Join(results, ",") + `]}]}`)
	}
	for name, c := range map[string]struct {
		reports [][]byte
		want    []string // package, version, state, status
	}{
		"it is upgraded, and returns": {
			[][]byte{report("lodash@4.17.15", "lodash-es@4.17.15"), report("lodash-es@4.17.15"), report("lodash-es@4.17.15", "lodash@4.17.16")},
			[]string{"lodash 4.17.16 unresolved ignored", "lodash-es 4.17.15 unresolved open"},
		},
		"another package": {
			[][]byte{report("lodash@4.17.15"), report("lodash-es@4.17.15")},
			[]string{"lodash 4.17.15 fixed fixed", "lodash-es 4.17.15 unresolved open"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apitest.Each(t, func(t *testing.T, s *apitest.Server) {
				upload(t, s, "main", c.reports[0], "product", "sca")
				dismissIssue(t, s, "sca", rows(t, s, "refs/heads/main")[0].ID)
				for _, report := range c.reports[1:] {
					upload(t, s, "main", report, "product", "sca")
				}
				var got []string
				for _, row := range rows(t, s, "refs/heads/main") {
					content, err := blob.Decode(row.Content)
					if err != nil {
						t.Fatal(err)
					}
					found := content.GetFoundDependency()
					got = append(got, strings.Join([]string{found.GetPackage(), found.GetVersion(), row.State, row.Status}, " "))
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("got  %q\nwant %q", got, c.want)
				}
			})
		})
	}
}

// The same holds between the refs of a project.
func TestContradictionsOnOtherRefs(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		both, second := testdata(t, "reports/14e-fortify-two-instances.sarif"), testdata(t, "reports/14f-fortify-first-fixed.sarif")
		upload(t, s, "main", both)
		dismiss(t, s, rows(t, s, "refs/heads/main")[0].ID)
		upload(t, s, "dev", second)
		on := func(ref string) *ent.Finding { return rows(t, s, ref)[0] }
		if dev := on("refs/heads/dev"); dev.Status != "open" || dev.Fingerprint != rows(t, s, "refs/heads/main")[1].Fingerprint {
			t.Errorf("on dev it is %s and of the identity %s", dev.Status, dev.Fingerprint)
		}
	})
}

// Saved images have one file name, or a new one with each build. Their tags tell them apart.
func TestArchivesOfImages(t *testing.T) {
	t.Parallel()
	trivy := func(file, tag string) string {
		return fmt.Sprintf(`{"SchemaVersion":2,"ArtifactName":%q,"ArtifactType":"container_image","Metadata":{"RepoTags":[%q]},"Results":[{"Target":"%s (debian 11.1)",
			"Class":"os-pkgs","Type":"debian","Vulnerabilities":[{"VulnerabilityID":"CVE-2021-1","PkgName":"zlib","InstalledVersion":"1","Severity":"HIGH"}]}]}`, file, tag, file)
	}
	grype := func(file, tag string) string {
		return fmt.Sprintf(`{"matches":[{"vulnerability":{"id":"CVE-2021-1","severity":"High"},"artifact":{"name":"zlib","version":"1","type":"deb"}}],
			"source":{"type":"image","target":{"userInput":%q,"tags":[%q]}},"descriptor":{"name":"grype","version":"0.7"}}`, file, tag)
	}
	for name, report := range map[string]func(string, string) string{"trivy": trivy, "grype": grype} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apitest.Each(t, func(t *testing.T, s *apitest.Server) {
				for _, c := range []struct{ file, tag, category, want string }{
					{"image.tar", "acme/web:1.0", "acme/web", `"created":1`}, {"image.tar", "acme/db:1.0", "acme/db", `"created":1`},
					{"/tmp/ci-2/web.tar", "acme/web:1.1", "acme/web", `"created":0`}, {"acme/db:1.1", "other:1", "acme/db", `"created":0`},
				} {
					answer := s.Upload(t, "acme/web", "main", []byte(report(c.file, c.tag)))
					if !strings.Contains(answer, c.want) || !strings.Contains(answer, fmt.Sprintf(`"category":%q`, c.category)) || !strings.Contains(answer, `"fixed":0`) {
						t.Errorf("%s %s: %s", c.file, c.tag, answer)
					}
				}
			})
		})
	}
}
