package services_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// clients replay the requests of public clients, and check what these read. docs/compatibility.md lists them.
var clients = map[string]func(*testing.T, *clientWorld){
	"semgrep-mcp":      clientMCP,
	"cartography":      clientCartography,
	"steampipe":        clientSteampipe,
	"opengovern":       clientOpenGovern,
	"generated-sdk":    clientGeneratedSDK,
	"report-generator": clientReportGenerator,
	"ghes-util":        clientGHESUtil,
	"asset-service":    clientAssetService,
	"scan-perf":        clientScanPerf,
	"secrets-triage":   clientSecretsTriage,
	"onboarding":       clientOnboarding,
	"sbom":             clientSBOM,
}

// TestClients runs all clients against one deployment with one scanned project.
func TestClients(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		world := newClientWorld(t, s, "acme-corp", "sca")
		for name, client := range clients {
			t.Run(name, func(t *testing.T) { client(t, world) })
		}
	})
}

// clientWorld is a deployment with a scan of the project acme/web.
type clientWorld struct {
	*apitest.Server
	of     apitest.Tenant
	scanID int64
}

// newClientWorld makes a deployment, and scans the project with recorded results.
func newClientWorld(t *testing.T, s *apitest.Server, slug, results string) *clientWorld {
	t.Helper()
	w := &clientWorld{Server: s, of: s.AddTenant(t, slug)}
	w.of.Token = s.AddToken(t, w.of, access.TokenSpec{Name: "client", Role: access.RoleAdmin})
	scan := w.object(t, http.MethodPost, "/api/cli/scans", recordedScan(t, "create_1.97", "UNIQUE", uuid.NewString()))
	w.scanID = int64(member(t, scan, "info.id").(float64))
	task := w.object(t, http.MethodPost, fmt.Sprintf("/api/agent/scans/%d/results", w.scanID), recordedScan(t, results))["task_id"].(string)
	apitest.Eventually(t, "the results are stored", func() bool {
		return w.object(t, http.MethodPost, fmt.Sprintf("/api/agent/scans/%d/complete", w.scanID), recordedScan(t, "complete", "TASK", task))["success"] == true
	})
	return w
}

// recordedScan is a recorded body of a scanner, with texts replaced.
func recordedScan(t *testing.T, name string, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile("scans/testdata/scanner/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(replace...).Replace(string(text))
}

// object requires a 200 with an object.
func (w *clientWorld) object(t *testing.T, method, path, body string, header ...string) map[string]any {
	t.Helper()
	text := w.Body(t, w.of.Token, method, path, body, http.StatusOK, header...)
	var found map[string]any
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return found
}

// deployment is what every client reads first.
func (w *clientWorld) deployment(t *testing.T) (id int64, slug string) {
	t.Helper()
	first := member(t, w.object(t, http.MethodGet, "/api/v1/deployments", ""), "deployments.0").(map[string]any)
	return int64(first["id"].(float64)), first["slug"].(string)
}

// member is the value at a path such as scans.0.id; the test fails without it.
func member(t *testing.T, from any, path string) any {
	t.Helper()
	at := from
	for name := range strings.SplitSeq(path, ".") {
		switch node := at.(type) {
		case map[string]any:
			value, ok := node[name]
			if !ok {
				t.Fatalf("no %s of %s in %v", name, path, from)
			}
			at = value
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(node) {
				t.Fatalf("no %s of %s in %v", name, path, from)
			}
			at = node[i]
		default:
			t.Fatalf("no %s of %s in %v", name, path, from)
		}
	}
	return at
}

// want compares a member by its text.
func want(t *testing.T, from any, path string, value any) {
	t.Helper()
	if got := member(t, from, path); fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", value, value) {
		t.Errorf("%s is %#v, want %#v", path, got, value)
	}
}
