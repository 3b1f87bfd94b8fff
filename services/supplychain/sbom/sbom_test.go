package sbom_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/exportfile"
	"github.com/palisade/palisade/services/supplychain/dependencies"
)

// vulnerable is a report about packages: two of the lockfile, one of a file that no scan of dependencies knows, and one
// that only the branch dev has.
const vulnerable = `{"SchemaVersion":2,"ArtifactName":".","ArtifactType":"repository","Results":[{"Target":"package-lock.json","Class":"lang-pkgs","Type":"npm","Vulnerabilities":[
	{"VulnerabilityID":"CVE-2026-1","PkgName":"left-pad","InstalledVersion":"1.3.0","FixedVersion":"1.9.1","Severity":"HIGH","Title":"Pads <too> much","CweIDs":["CWE-79"]},
	{"VulnerabilityID":"CVE-2026-2","PkgName":"@acme/kit","InstalledVersion":"2.10.0","Severity":"CRITICAL","Title":"Bad"}]},
	{"Target":"old/package-lock.json","Class":"lang-pkgs","Type":"npm","Vulnerabilities":[
	{"VulnerabilityID":"CVE-2026-3","PkgName":"ws","InstalledVersion":"2.0.0","Severity":"LOW","Title":"Old"}]}]}`

// seed scans acme/web, and decides about a finding. It returns the id of the project.
func seed(t testing.TB, s *apitest.Server) (projectID int64) {
	t.Helper()
	s.Upload(t, "acme/web", "main", []byte(vulnerable))
	s.Upload(t, "acme/web", "refs/heads/dev", []byte(strings.ReplaceAll(vulnerable, "CVE-2026-3", "CVE-2026-4")))
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		row := tx.Project.Query().Where(project.Name("acme/web")).OnlyX(ctx)
		projectID = row.ID
		tx.Project.UpdateOne(row).SetPrimaryBranch("refs/heads/main").SetURL("https://git.acme.test/acme/web").ExecX(ctx)
		return dependencies.Replace(ctx, s.Store, tx, dependencies.Scan{
			DeploymentID: s.DeploymentID, ProjectID: row.ID, ScanID: tx.Scan.Query().Order(ent.Asc(scan.FieldID)).FirstIDX(ctx), At: 1, Complete: true,
		}, map[string][]dependencies.Dependency{
			"package-lock.json": {
				{
					Ecosystem: "npm", Package: "@acme/kit", Version: "2.10.0", Transitivity: "direct", Line: 31, Licenses: []string{"MIT", "Apache-2.0"},
					ResolvedURL: "https://registry.acme.test/@acme/kit/-/kit-2.10.0.tgz", Children: []string{"left-pad@1.3.0", "gone@1.0.0"},
				},
				{Ecosystem: "npm", Package: "left-pad", Version: "1.3.0", Transitivity: "transitive", Line: 40, Licenses: []string{"MIT OR WTFPL"}},
			},
			"site/package-lock.json": {{Ecosystem: "npm", Package: "left-pad", Version: "1.3.0", Transitivity: "transitive", Line: 4}},
			"go.mod":                 {{Ecosystem: "gomod", Package: "golang.org/x/text", Version: "v0.14.0", Transitivity: "direct", Licenses: []string{"see <LICENSE>"}}},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	id := s.Store.Reader.Finding.Query().Where(finding.Advisory("CVE-2026-1"), finding.Ref("refs/heads/main")).OnlyIDX(s.System(t))
	s.Body(t, s.Token, http.MethodPost, "/api/v1/deployments/"+s.Slug+"/triage",
		fmt.Sprintf(`{"issue_type":"sca","issue_ids":[%d],"new_triage_state":"ignored","new_triage_reason":"false_positive","new_note":"not called"}`, id), http.StatusOK)
	return projectID
}

// v2 is the path of the second API, v1 of the first.
func v2(of apitest.Tenant) string {
	return fmt.Sprintf("/api/sca/deployments/%d/sbom_async", of.DeploymentID)
}
func v1(of apitest.Tenant) string {
	return fmt.Sprintf("/api/v1/deployments/%d/sbom/export", of.DeploymentID)
}

// start starts an SBOM with the second API, and returns the token of its task.
func start(t testing.TB, s *apitest.Server, credential, body string) string {
	t.Helper()
	var told struct{ TaskTokenJwt string }
	unmarshal(t, s.Body(t, credential, http.MethodPost, v2(s.Tenant), body, http.StatusAccepted), &told)
	return told.TaskTokenJwt
}

// task polls a task until it has ended.
func task(t testing.TB, s *apitest.Server, credential, token string) (state, result string) {
	t.Helper()
	var told struct {
		Status     string
		TaskResult struct{ Status, ResultString string }
	}
	apitest.Eventually(t, "the task ends", func() bool {
		unmarshal(t, s.Body(t, credential, http.MethodGet, "/api/tasks/v2/"+token, "", http.StatusOK), &told)
		if told.Status != told.TaskResult.Status {
			t.Fatalf("the status is %s and %s", told.Status, told.TaskResult.Status)
		}
		return told.Status != "TASK_STATUS_IN_PROGRESS"
	})
	return told.Status, told.TaskResult.ResultString
}

func unmarshal(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
}

// These change with every run: times and the document's own number.
var (
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	serial = regexp.MustCompile(`urn:uuid:[0-9a-f-]{36}`)
)

// stable is a document without what changes with every run, in lines.
func stable(text string) string {
	text = serial.ReplaceAllString(times.ReplaceAllString(text, "T"), "U")
	return strings.NewReplacer("},{", "},\n{", "><component", ">\n<component", "><vulnerability", ">\n<vulnerability", "><dependenc", ">\n<dependenc").Replace(text)
}

// TestDocuments: all versions and encodings of an SBOM.
func TestDocuments(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		id := seed(t, s)
		for version, want := range map[string]cdx.SpecVersion{"4": cdx.SpecVersion1_4, "5": cdx.SpecVersion1_5, "6": cdx.SpecVersion1_6, "7": cdx.SpecVersion1_7} {
			for encoding, format := range map[string]cdx.BOMFileFormat{"JSON": cdx.BOMFileFormatJSON, "XML": cdx.BOMFileFormatXML} {
				state, text := task(t, s, s.Token, start(t, s, s.Token, fmt.Sprintf(`{"deploymentId":"%d","repositoryId":"%d","ref":"main",
					"formatVersion":{"format":"SBOM_FORMAT_CYCLONEDX","cyclonedxVersion":"SBOM_CYCLONE_DX_VERSION_V1_%s"},"sbomOutputFormat":"SBOM_OUTPUT_FORMAT_%s",
					"metadataComponentType":"SBOM_METADATA_COMPONENT_TYPE_CYCLONE_DX_V15_PLATFORM",
					"metadataSupplier":{"name":"Acme","url":"https://acme.test","contact":{"name":"Ann","email":"ann@acme.test","phone":"1"}}}`,
					s.DeploymentID, id, version, encoding)))
				if state != "TASK_STATUS_COMPLETED" {
					t.Fatalf("%s %s: %s %s", version, encoding, state, text)
				}
				document := &cdx.BOM{}
				if err := cdx.NewBOMDecoder(bytes.NewBufferString(text), format).Decode(document); err != nil || document.SpecVersion != want {
					t.Errorf("%s %s: version %s, %v", version, encoding, document.SpecVersion, err)
				}
				check(t, document)
				apitest.Golden(t, "cyclonedx_1."+version+"_"+strings.ToLower(encoding), stable(text))
			}
		}
	})
}

// check requires the packages of all lockfiles and the vulnerabilities of the primary branch, and that refs lead to
// components.
func check(t *testing.T, document *cdx.BOM) {
	t.Helper()
	refs := map[string]bool{"project": true}
	for _, c := range *document.Components {
		refs[c.BOMRef] = true
	}
	for _, want := range []string{"pkg:npm/%40acme/kit@2.10.0", "pkg:npm/left-pad@1.3.0", "pkg:golang/golang.org/x/text@v0.14.0", "pkg:npm/ws@2.0.0"} {
		if !refs[want] {
			t.Errorf("no component %s: %v", want, refs)
		}
	}
	states := map[string]cdx.ImpactAnalysisState{}
	for _, v := range *document.Vulnerabilities {
		states[v.ID] = v.Analysis.State
		if !refs[(*v.Affects)[0].Ref] {
			t.Errorf("%s affects %s, which is no component", v.ID, (*v.Affects)[0].Ref)
		}
	}
	if want := map[string]cdx.ImpactAnalysisState{"CVE-2026-1": "false_positive", "CVE-2026-2": "exploitable", "CVE-2026-3": "exploitable"}; !reflect.DeepEqual(states, want) {
		t.Errorf("the vulnerabilities are %v, want %v", states, want)
	}
	for _, d := range *document.Dependencies {
		for _, ref := range append([]string{d.Ref}, deref(d.Dependencies)...) {
			if !refs[ref] {
				t.Errorf("the dependency %s is no component", ref)
			}
		}
	}
}

func deref(list *[]string) []string {
	if list == nil {
		return nil
	}
	return *list
}

// TestWires: the operations answer the same over both wires. The first API answers the address of the document.
func TestWires(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		id := seed(t, s)
		sboms, ctx := supplychainv1.NewSbomsServiceClient(s.Conn), s.Context(t, s.Token)
		started, err := sboms.GenerateSbomAsync(ctx, &supplychainv1.GenerateSbomAsyncRequest{DeploymentId: s.DeploymentID, RepositoryId: id})
		if err != nil {
			t.Fatal(err)
		}
		_, text := task(t, s, s.Token, started.GetTaskTokenJwt())
		result, err := platformv1.NewTasksServiceClient(s.Conn).GetTaskResult(ctx, &platformv1.GetTaskResultRequest{TaskTokenJwt: started.GetTaskTokenJwt()})
		if err != nil || result.GetTaskResult().GetResultString() != text || !strings.Contains(text, `"specVersion":"1.6"`) {
			t.Errorf("%v: %v", err, result)
		}
		var created struct{ TaskToken string }
		unmarshal(t, s.Body(t, s.Token, http.MethodPost, v1(s.Tenant), fmt.Sprintf(`{"deploymentId":"%d","repositoryId":"%d","sbomOutputFormat":"SBOM_OUTPUT_FORMAT_CYCLONEDX"}`, s.DeploymentID, id), 200), &created)
		var body string
		apitest.Eventually(t, "the SBOM is complete", func() bool {
			body = s.Body(t, s.Token, http.MethodGet, v1(s.Tenant)+"/"+created.TaskToken, "", 200)
			return !strings.Contains(body, "IN_PROGRESS")
		})
		apitest.Golden(t, "get_sbom_export", strings.ReplaceAll(body, s.Config.PublicURL, "https://palisade.test"))
		again, err := sboms.CreateSbomExport(ctx, &supplychainv1.CreateSbomExportRequest{DeploymentId: s.DeploymentID, RepositoryId: id})
		if err != nil || again.GetTaskToken() == "" {
			t.Errorf("%v: %v", err, again)
		}
		same, err := sboms.GetSbomExport(ctx, &supplychainv1.GetSbomExportRequest{DeploymentId: s.DeploymentID, TaskToken: created.TaskToken})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, same, body)
		got := s.Do(t, s.Token, http.MethodGet, strings.TrimPrefix(same.GetDownloadUrl(), s.Config.PublicURL), "")
		if got.Status != 200 || stable(got.Body) != stable(text) || got.Header.Get("Content-Type") != "application/vnd.cyclonedx+json" ||
			!strings.Contains(got.Header.Get("Content-Disposition"), ".cdx.json") {
			t.Errorf("the file: %d %v", got.Status, got.Header)
		}
		// A job that the queue runs again leaves the complete file.
		exportID := s.Store.Reader.Export.Query().FirstIDX(s.System(t))
		if _, err := exportfile.Begin(s.System(t), s.Store, exportID); err != exportfile.ErrLost { //nolint:errorlint // the error itself
			t.Errorf("a complete file begins again: %v", err)
		}
	})
}

// TestRefusals: errors name the field.
func TestRefusals(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		id := seed(t, s)
		for body, want := range map[string]string{
			`{}`:                     "repositoryId",
			`{"repositoryId":"-1"}`:  "repositoryId",
			`{"repositoryId":"web"}`: "repositoryId",
			fmt.Sprintf(`{"repositoryId":"%d","ref":"dev"}`, id):                                                "ref",
			fmt.Sprintf(`{"repositoryId":"%d","sbomOutputFormat":"SBOM_OUTPUT_FORMAT_SPDX"}`, id):               "sbomOutputFormat",
			fmt.Sprintf(`{"repositoryId":"%d","formatVersion":{"cyclonedxVersion":99}}`, id):                    "formatVersion.cyclonedxVersion",
			fmt.Sprintf(`{"repositoryId":"%d","metadataComponentType":77}`, id):                                 "metadataComponentType",
			fmt.Sprintf(`{"repositoryId":"%d","metadataSupplier":{"name":"%s"}}`, id, strings.Repeat("x", 256)): "metadataSupplier.name",
		} {
			for _, path := range []string{v1(s.Tenant), v2(s.Tenant)} {
				if got := s.Body(t, s.Token, http.MethodPost, path, body, http.StatusBadRequest); !strings.Contains(got, want) {
					t.Errorf("%s %s: %s does not name %s", path, body, got, want)
				}
			}
		}
		s.Body(t, s.Token, http.MethodPost, v1(s.Tenant), fmt.Sprintf(`{"repositoryId":"%d","sbomOutputFormat":"SBOM_OUTPUT_FORMAT_XML"}`, id), http.StatusBadRequest)
		s.Body(t, s.Token, http.MethodPost, v2(s.Tenant), fmt.Sprintf(`{"repositoryId":"%d","sbomOutputFormat":"SBOM_OUTPUT_FORMAT_CYCLONEDX"}`, id), http.StatusBadRequest)
		_, err := supplychainv1.NewSbomsServiceClient(s.Conn).GenerateSbomAsync(s.Context(t, s.Token), &supplychainv1.GenerateSbomAsyncRequest{DeploymentId: s.DeploymentID, RepositoryId: id, Ref: "dev"})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "ref") {
			t.Errorf("over gRPC: %v", err)
		}
		if n := s.Store.Reader.Export.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("refused requests made %d exports", n)
		}
	})
}
