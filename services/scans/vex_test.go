package scans_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// vulnerable is a Trivy report of packages, each as "advisory name version".
func vulnerable(packages ...string) []byte {
	var list []string
	for _, p := range packages {
		f := strings.Fields(p)
		list = append(list, fmt.Sprintf(`{"VulnerabilityID":%q,"PkgName":%q,"InstalledVersion":%q,"Severity":"HIGH"}`, f[0], f[1], f[2]))
	}
	return []byte(`{"SchemaVersion":2,"ArtifactName":".","ArtifactType":"repository","Results":[{"Target":"package-lock.json","Class":"lang-pkgs","Type":"npm",
		"Vulnerabilities":[` + strings.Join(list, ",") + `]}]}`)
}

// says is an OpenVEX document of statements, each as "vulnerability purl status justification". day is the day of its
// time.
func says(day int, statements ...string) []byte {
	var list []string
	for _, text := range statements {
		f := append(strings.Fields(text), "")
		list = append(list, fmt.Sprintf(`{"vulnerability":{"name":%q},"products":[{"@id":%q}],"status":%q,"justification":%q}`, f[0], f[1], f[2], f[3]))
	}
	return fmt.Appendf(nil, `{"statements":[%s],"@context":"https://openvex.dev/ns/v0.2.0","@id":"https://acme.test/vex/%d","author":"Acme","timestamp":"2026-01-%02dT00:00:00Z"}`,
		strings.Join(list, ","), day, day)
}

// decided lists the decisions about the findings of a project: "ref advisory package version: triage".
func decided(t *testing.T, s *apitest.Server, name string) string {
	t.Helper()
	ctx := s.System(t)
	p := s.Store.Reader.Project.Query().Where(project.Name(name)).OnlyX(ctx)
	var lines []string
	for _, f := range s.Store.Reader.Finding.Query().Where(finding.ProjectID(p.ID)).AllX(ctx) {
		triage := strings.ReplaceAll(triageOf(f), "\n", " | ")
		lines = append(lines, fmt.Sprintf("%s %s %s: %s, %s", strings.TrimPrefix(f.Ref, "refs/heads/"), *f.Advisory, *f.Package, f.Status, triage))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func wantDecided(t *testing.T, s *apitest.Server, name string, want ...string) {
	t.Helper()
	if got := decided(t, s, name); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// outcome is what the statements of an upload did: findings decided, kept, statements without a finding.
func outcome(r *scansv1.UploadReportResponse) [3]int32 {
	return [3]int32{r.GetDecisions(), r.GetDecisionsKept(), r.GetDecisionsUnmatched()}
}

func wantOutcome(t *testing.T, what string, r *scansv1.UploadReportResponse, want [3]int32) {
	t.Helper()
	if got := outcome(r); got != want {
		t.Errorf("%s: decided, kept, unmatched = %v, want %v", what, got, want)
	}
	if counts(r) != [6]int32{} {
		t.Errorf("%s: created, updated, unchanged, reopened, fixed, skipped = %v", what, counts(r))
	}
}

func (c *vexCase) events(t *testing.T) int {
	return c.s.Store.Reader.FindingEvent.Query().Where(findingevent.ActorKind("vex")).CountX(c.s.System(t))
}

type vexCase struct{ s *apitest.Server }

func TestStatementsDecide(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := &vexCase{s}
		report := vulnerable("CVE-2026-1 lodash 4.17.4", "CVE-2026-2 axios 0.21.0", "CVE-2026-3 tar 1.0.0", "CVE-2026-4 express 4.0.0", "CVE-2026-5 ws 1.0.0")
		upload(t, s, "main", report)
		upload(t, s, "dev", report)
		s.Upload(t, "acme/other", "main", report)
		document := says(2,
			"cve-2026-1 pkg:npm/lodash not_affected vulnerable_code_not_in_execute_path",
			"CVE-2026-2 pkg:npm/axios@0.21.0?arch=x not_affected inline_mitigations_already_exist",
			"CVE-2026-3 pkg:npm/tar@1.0.0 under_investigation",
			"CVE-2026-4 pkg:npm/express affected",
			"CVE-2026-5 pkg:npm/ws@1.0.0 fixed",
			"CVE-2026-5 pkg:npm/ws@2.0.0 not_affected component_not_present",
			"CVE-2026-1 pkg:pypi/lodash not_affected component_not_present",
			"CVE-2026-9 pkg:npm/lodash not_affected component_not_present",
		)
		first := upload(t, s, "main", document)
		wantOutcome(t, "first", first, [3]int32{8, 0, 3})
		want := []string{}
		for _, ref := range []string{"dev", "main"} {
			want = append(want,
				ref+" CVE-2026-1 lodash: ignored, ignored false_positive VEX: not affected (vulnerable code not in execute path) | Acme | https://acme.test/vex/2 | 2026-01-02T00:00:00Z",
				ref+" CVE-2026-2 axios: ignored, ignored acceptable_risk VEX: not affected (inline mitigations already exist) | Acme | https://acme.test/vex/2 | 2026-01-02T00:00:00Z",
				ref+" CVE-2026-3 tar: reviewing, reviewing VEX: under investigation | Acme | https://acme.test/vex/2 | 2026-01-02T00:00:00Z",
				ref+" CVE-2026-4 express: open, ",
				ref+" CVE-2026-5 ws: open, untriaged VEX: fixed | Acme | https://acme.test/vex/2 | 2026-01-02T00:00:00Z",
			)
		}
		wantDecided(t, s, "acme/web", want...)
		if other := decided(t, s, "acme/other"); strings.Contains(other, "VEX") {
			t.Errorf("another project: %s", other)
		}
		if n := c.events(t); n != 8 {
			t.Errorf("%d events, want 8", n)
		}
		wantOutcome(t, "again", upload(t, s, "main", document), [3]int32{0, 0, 3})
		wantDecided(t, s, "acme/web", want...)
		if n := c.events(t); n != 8 {
			t.Errorf("%d events after the same document, want 8", n)
		}
		if entries := s.Body(t, s.Token, http.MethodGet, "/api/v1/deployments/acme/findings?issue_type=sca&status=ignored", "", 200); strings.Count(entries, `"triage_reason":"acceptable_risk"`) != 2 {
			t.Errorf("%s", entries)
		}
		stored := s.Store.Reader.Scan.Query().Where(scan.ID(first.GetScanId())).OnlyX(s.System(t))
		if stored.Products != 0 || stored.TotalCount != 0 {
			t.Errorf("the scan of a document without results: products %d, %d findings", stored.Products, stored.TotalCount)
		}
	})
}

// A newer statement changes what an older one decided; an older one changes nothing.
func TestNewerStatementsDecide(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", vulnerable("CVE-2026-1 lodash 4.17.4"))
		state := func() string {
			f := s.Store.Reader.Finding.Query().OnlyX(s.System(t))
			return f.Status + " " + f.TriageState
		}
		for _, step := range []struct {
			day             int
			statement, want string
			decided         int32
		}{
			{5, "CVE-2026-1 pkg:npm/lodash not_affected component_not_present", "ignored ignored", 1},
			{3, "CVE-2026-1 pkg:npm/lodash affected", "ignored ignored", 0},
			{7, "CVE-2026-1 pkg:npm/lodash affected", "open reopened", 1},
			{7, "CVE-2026-1 pkg:npm/lodash affected", "open reopened", 0},
			{6, "CVE-2026-1 pkg:npm/lodash not_affected", "open reopened", 0},
			{9, "CVE-2026-1 pkg:npm/lodash under_investigation", "reviewing reviewing", 1},
			{9, "CVE-2026-1 pkg:npm/lodash not_affected", "ignored ignored", 1},
		} {
			answer := upload(t, s, "main", says(step.day, step.statement))
			if got := state(); got != step.want || answer.GetDecisions() != step.decided {
				t.Errorf("%+v: %s, %d decided", step, got, answer.GetDecisions())
			}
		}
		// The next scan of another ref inherits the decision, and statements may still change it.
		upload(t, s, "dev", vulnerable("CVE-2026-1 lodash 4.17.4"))
		if answer := upload(t, s, "main", says(20, "CVE-2026-1 pkg:npm/lodash affected")); outcome(answer) != [3]int32{2, 0, 0} {
			t.Errorf("the inherited decision: %v\n%s", outcome(answer), decided(t, s, "acme/web"))
		}
	})
}

// What a person decided stays, whatever statements say and whenever they come.
func TestStatementsNeverOverrulePeople(t *testing.T) {
	t.Parallel()
	statuses := []string{"not_affected", "affected", "fixed", "under_investigation"}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for i, decision := range []string{
			`"new_triage_state":"ignored","new_triage_reason":"acceptable_risk"`, `"new_triage_state":"reopened"`, `"new_triage_state":"reviewing"`,
			`"new_triage_state":"fixing","new_note":"soon"`,
		} {
			for _, before := range []bool{false, true} {
				name := fmt.Sprintf("acme/%d-%v", i, before)
				s.Upload(t, name, "main", vulnerable("CVE-2026-1 lodash 4.17.4"))
				if before {
					s.Upload(t, name, "main", says(1, "CVE-2026-1 pkg:npm/lodash not_affected"))
				}
				s.Body(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage",
					fmt.Sprintf(`{"issue_type":"sca","repos":[%q],%s}`, name, decision), 200)
				was := decided(t, s, name)
				for day, status := range statuses {
					answer := s.Upload(t, name, "main", says(10+day, "CVE-2026-1 pkg:npm/lodash "+status))
					if !strings.Contains(answer, `"decisions_kept":1`) || strings.Contains(answer, `"decisions":`) {
						t.Errorf("%s, %s: %s", decision, status, answer)
					}
				}
				s.Upload(t, name, "dev", vulnerable("CVE-2026-1 lodash 4.17.4"))
				s.Upload(t, name, "main", says(20, "CVE-2026-1 pkg:npm/lodash not_affected"))
				if now := decided(t, s, name); !strings.HasSuffix(now, was) || strings.Count(now, "20") != strings.Count(was+was, "20") {
					t.Errorf("%s (a statement came first: %v)\nbefore %s\nafter  %s", decision, before, was, now)
				}
			}
		}
	})
}

// A note of a person stays, and so does a suppression in the code.
func TestStatementsKeepNotesAndSuppressions(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", vulnerable("CVE-2026-1 lodash 4.17.4", "CVE-2026-2 axios 0.21.0"))
		s.Body(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage", `{"issue_type":"sca","rules":["CVE-2026-1","CVE-2026-2"],"new_note":"mine"}`, 200)
		document := says(2, "CVE-2026-1 pkg:npm/lodash not_affected", "CVE-2026-2 pkg:npm/axios fixed")
		wantOutcome(t, "with notes", upload(t, s, "main", document), [3]int32{1, 1, 0})
		wantDecided(t, s, "acme/web", "main CVE-2026-1 lodash: ignored, ignored no_triage_reason mine", "main CVE-2026-2 axios: open, untriaged mine")

		suppressed := []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"grype","rules":[]}},"results":[{"ruleId":"CVE-2026-7",
			"message":{"text":"A high vulnerability in npm package: tar, version 1.0.0 was found at: /x"},"suppressions":[{"kind":"inSource"}]}]}]}`)
		upload(t, s, "main", suppressed)
		wantOutcome(t, "suppressed", upload(t, s, "main", says(2, "CVE-2026-7 pkg:npm/tar affected", "CVE-2026-7 pkg:npm/tar not_affected")), [3]int32{0, 1, 0})
		row := s.Store.Reader.Finding.Query().Where(finding.Advisory("CVE-2026-7")).OnlyX(s.System(t))
		if row.State != "muted" || row.TriageState != "untriaged" {
			t.Errorf("%s %s", row.State, row.TriageState)
		}
	})
}

// Statements of one deployment are about its own projects, also if another one has a project of the same name.
func TestStatementsStayInTheDeployment(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", vulnerable("CVE-2026-1 lodash 4.17.4"))
		other := s.AddTenant(t, "umbrella")
		path := "/api/v1/deployments/umbrella/reports?project=acme/web&ref=main"
		s.Body(t, other.Token, http.MethodPost, path, string(vulnerable("CVE-2026-1 lodash 4.17.4")), 200)
		answer := s.Body(t, other.Token, http.MethodPost, path, string(says(1, "CVE-2026-1 pkg:npm/lodash not_affected")), 200)
		if !strings.Contains(answer, `"decisions":1`) {
			t.Error(answer)
		}
		for _, f := range s.Store.Reader.Finding.Query().AllX(s.System(t)) {
			if want := map[bool]string{true: "untriaged", false: "ignored"}[f.DeploymentID == s.DeploymentID]; f.TriageState != want {
				t.Errorf("deployment %d: %s", f.DeploymentID, f.TriageState)
			}
		}
	})
}

// TestStatementsOfOtherFormats: CSAF and CycloneDX documents decide like OpenVEX.
func TestStatementsOfOtherFormats(t *testing.T) {
	t.Parallel()
	csaf := `{"vulnerabilities":[{"product_status":{"known_not_affected":["web:lodash","other"],"under_investigation":["tar"]},
			"flags":[{"label":"vulnerable_code_not_present","group_ids":["g"]}],"threats":[{"category":"impact","details":"never called","product_ids":["web:lodash"]}],
			"ids":[{"system_name":"GHSA","text":"GHSA-aaaa-bbbb-cccc"}],"cve":"CVE-2026-1"}],
		"product_tree":{"product_groups":[{"group_id":"g","product_ids":["web:lodash"]}],
			"relationships":[{"category":"default_component_of","product_reference":"lodash","relates_to_product_reference":"web","full_product_name":{"name":"lodash in web","product_id":"web:lodash"}}],
			"branches":[{"category":"vendor","name":"Acme","branches":[{"category":"product_version","name":"4.17.4","product":{"name":"lodash","product_id":"lodash",
				"product_identification_helper":{"purl":"pkg:npm/lodash@4.17.4"}}}]}],
			"full_product_names":[{"product_id":"web","name":"web"},{"product_id":"tar","name":"tar","product_identification_helper":{"purl":"pkg:npm/tar"}}]},
		"document":{"category":"csaf_vex","csaf_version":"2.0","publisher":{"name":"Acme PSIRT"},"tracking":{"id":"ACME-1","current_release_date":"2026-01-02T00:00:00Z"}}}`
	cdx := `{"bomFormat":"CycloneDX","specVersion":"1.5","serialNumber":"urn:uuid:1","metadata":{"timestamp":"2026-01-02T00:00:00Z","supplier":{"name":"Acme PSIRT"}},
		"vulnerabilities":[{"id":"GHSA-aaaa-bbbb-cccc","references":[{"id":"CVE-2026-1"}],"analysis":{"state":"not_affected","justification":"code_not_present","detail":"never called"},
			"affects":[{"ref":"urn:cdx:3e671687-395b-41f5-a30f-a58921a69b79/1#pkg%3Anpm%2Flodash%404.17.4"},{"ref":"nowhere"}]},
			{"id":"CVE-2026-1","analysis":{"state":"in_triage"},"affects":[{"ref":"pkg:npm/tar"}]}]}`
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for format, document := range map[string]string{"csaf": csaf, "cyclonedx-json": cdx} {
			name := "acme/" + format
			s.Upload(t, name, "main", vulnerable("CVE-2026-1 lodash 4.17.4", "CVE-2026-1 tar 1.0.0"))
			answer := s.Upload(t, name, "main", []byte(document))
			for _, want := range []string{`"format":"` + format + `"`, `"decisions":2`, `"decisions_unmatched":1`, `"created":0`, `"fixed":0`} {
				if !strings.Contains(answer, want) {
					t.Errorf("%s: %s, want %s", format, answer, want)
				}
			}
			got := decided(t, s, name)
			for _, want := range []string{"lodash: ignored, ignored false_positive", "code not present): never called | Acme PSIRT | ", "tar: reviewing"} {
				if !strings.Contains(got, want) {
					t.Errorf("%s: %s\nwant %s", format, got, want)
				}
			}
		}
	})
}

// The number of queries does not depend on the number of statements.
func TestManyStatementsTakeFewQueries(t *testing.T) {
	t.Parallel()
	s, statements := apitest.StartRecorded(t, nil)
	var packages, list []string
	for i := range 200 {
		packages = append(packages, fmt.Sprintf("CVE-2026-%d lodash-%d 1.0.0", 1000+i, i))
		list = append(list, fmt.Sprintf("CVE-2026-%d pkg:npm/lodash-%d not_affected component_not_present", 1000+i, i))
	}
	upload(t, s, "main", vulnerable(packages...))
	count := func(document []byte) int {
		statements.TakeAll()
		upload(t, s, "main", document)
		return len(statements.TakeAll())
	}
	one := count(says(1, list[0]))
	if all := count(says(2, list...)); all > one+2 {
		t.Errorf("%d queries for 200 statements, %d for one", all, one)
	}
	if n := s.Store.Reader.Finding.Query().Where(finding.TriageState("ignored")).CountX(s.System(t)); n != 200 {
		t.Errorf("%d decided, want 200", n)
	}
}
