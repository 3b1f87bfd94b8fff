package services_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/findingmatch"
	"github.com/palisade/palisade/ent/ruleversion"
	"github.com/palisade/palisade/ent/scan"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/notifications/outbox"
)

// each repeats text for each number, which replaces #.
func (f *flows) each(text, separator string) string {
	items := make([]string, f.rows)
	for i := range items {
		items[i] = strings.ReplaceAll(text, "#", strconv.Itoa(i))
	}
	return strings.Join(items, separator)
}

// sarif is a report with one result: a rule at a line of a file.
func sarif(rule, file string, line int, snippet string) []byte {
	return fmt.Appendf(nil, `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"opengrep"}},"invocations":[{"executionSuccessful":true}],"results":[
		{"ruleId":%q,"message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":%q},"region":{"startLine":%d,"snippet":{"text":%q}}}}]}]}]}`,
		rule, file, line, snippet)
}

// identities merges two findings that are on many branches, splits one from its branches, and splits one from the last
// of many merges. Each change is undone.
func (f *flows) identities(t *testing.T) {
	for i := range f.rows {
		ref := fmt.Sprintf("refs/heads/b%d", i)
		f.server.Upload(t, "acme/flow", ref, sarif("old", "app/old.py", 1, "open(path)"))
		f.server.Upload(t, "acme/flow", ref, sarif("new", "app/new.py", 90, "with files as f: f.read(name)"))
		f.server.Upload(t, "acme/joined", "refs/heads/main", sarif("sqli", "app/db.py", 10+int(i), fmt.Sprintf("cursor.execute(query%d + name%d)", i, i)))
	}
	read := f.server.Store.Reader
	idOf := func(file string) int64 {
		return read.Finding.Query().Where(finding.FilePath(file)).Order(ent.Asc(finding.FieldID)).FirstIDX(f.inside(t))
	}
	old, fresh, joined := idOf("app/old.py"), idOf("app/new.py"), idOf("app/db.py")
	if n := read.FindingMatch.Query().Where(findingmatch.FindingID(joined)).CountX(f.inside(t)); n < int(f.rows)-1 {
		t.Fatalf("%d joins, want %d", n, f.rows-1)
	}
	var made struct {
		Change struct {
			ID int64 `json:"id,string"`
		}
	}
	change := func(rpc, what string, id int64, verb, body string) {
		base := fmt.Sprintf("/api/v1/deployments/%d/", f.tenant.DeploymentID)
		f.spend(t, rpc, what, http.MethodPost, fmt.Sprintf("%sfindings/%d/%s", base, id, verb), body, &made)
		f.spend(t, findingsv1.FindingIdentityService_UndoIdentityChange_FullMethodName, what, http.MethodPost,
			fmt.Sprintf("%sidentity-changes/%d/undo", base, made.Change.ID), "{}", nil)
	}
	change(findingsv1.FindingIdentityService_MergeFindings_FullMethodName, "on branches", old, "merge", fmt.Sprintf(`{"into":"%d"}`, fresh))
	if n := read.FindingEvent.Query().Where(findingevent.Kind("merged")).CountX(f.inside(t)); n != 2*int(f.rows) {
		t.Errorf("a merge changed %d findings, want both of each branch", n)
	}
	change(findingsv1.FindingIdentityService_SplitFinding_FullMethodName, "from branches", fresh, "split", "{}")
	change(findingsv1.FindingIdentityService_SplitFinding_FullMethodName, "of a join", joined, "split", "{}")
}

// scanner runs a scan with many findings of many rules and dependencies in many lockfiles, and one that fails.
func (f *flows) scanner(t *testing.T) {
	begin := func() int64 {
		body, err := os.ReadFile("scans/testdata/scanner/create_1.97.json")
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Info struct{ ID int64 } }
		f.do(t, http.MethodPost, "/api/cli/scans", strings.Replace(string(body), "UNIQUE", uuid.NewString(), 1), &answer)
		return answer.Info.ID
	}
	publish := func(name string) {
		f.do(t, http.MethodPost, "/api/registry/rules", fmt.Sprintf(`{"visibility":"org_private","definition":{"rules":[{"id":%q,"languages":["python"],
			"message":"m","severity":"ERROR","pattern":"f()"}]}}`, name), nil)
	}
	publish("acme.new") // the scan proves it
	id := begin()
	results := `{"findings":[` + f.each(`{"check_id":"acme.rule-#","path":"src/file#.py","line":1,"column":1,"end_line":1,"end_column":9,"message":"found","severity":1,
		"index":0,"commit_date":"2026-11-20T21:57:51","syntactic_id":"a#","match_based_id":"b#_0","metadata":{},"is_blocking":false}`, ",") +
		`],"ignores":[],"token":null,"searched_paths":["src/a.py"],"renamed_paths":[],"rule_ids":[` + f.each(`"acme.rule-#"`, ",") + `]}`
	base := fmt.Sprintf("/api/agent/scans/%d/", id)
	var received struct {
		TaskID string `json:"task_id"`
		Errors []any
	}
	f.spend(t, scansv1.ScannerProtocolService_UploadScanResults_FullMethodName, "", http.MethodPost, base+"results", results, &received)
	// A completion that comes late stores everything itself. Usually the results wait for it.
	_, writer := f.server.Store.DB()
	apitest.Eventually(t, "the results are stored", func() bool {
		_, err := writer.ExecContext(t.Context(), "UPDATE river_job SET state = 'available', scheduled_at = created_at WHERE kind = 'store_scan_results' AND state = 'scheduled'")
		if err != nil {
			t.Fatal(err)
		}
		return f.server.Store.Reader.Scan.Query().Where(scan.ID(id), scan.ResultsState("stored")).ExistX(f.inside(t))
	})
	end := fmt.Sprintf(`{"exit_code":1,"stats":{},"dependency_parser_errors":[],"task_id":%q,"final_attempt":false,"dependencies":{%s}}`, received.TaskID,
		f.each(`"dir#/go.mod":[{"package":"p#","version":"1","ecosystem":"gomod","transitivity":"direct"}]`, ","))
	for _, what := range []string{"first", "again"} {
		var answer struct{ Success bool }
		f.spend(t, scansv1.ScannerProtocolService_CompleteScan_FullMethodName, what, http.MethodPost, base+"complete", end, &answer)
		if !answer.Success || len(received.Errors) > 0 {
			t.Errorf("%s: the scan did not succeed: %v", what, received.Errors)
		}
	}
	if n := f.server.Store.Reader.Dependency.Query().Where(dependency.ScanID(id)).CountX(f.inside(t)); n != int(f.rows) {
		t.Errorf("%d dependencies are stored, want %d", n, f.rows)
	}
	publish("acme.broken") // the failed scan quarantines it
	failed := fmt.Sprintf("/api/agent/scans/%d/error", begin())
	f.spend(t, scansv1.ScannerProtocolService_ReportScanError_FullMethodName, "", http.MethodPost, failed, `{"exit_code":2,"stderr":"Rule parse error in rule acme.broken"}`, nil)
}

// rules publishes many versions of a rule and reads the last.
func (f *flows) rules(t *testing.T) {
	for i := range f.rows {
		f.do(t, http.MethodPost, "/api/registry/rules", fmt.Sprintf(`{"visibility":"org_private","definition":{"rules":[{"id":"acme.flow","languages":["python"],
			"message":"m%d","severity":"ERROR","pattern":"f()"}]}}`, i), nil)
	}
	id := f.server.Store.Reader.RuleVersion.Query().Order(ent.Desc(ruleversion.FieldID)).FirstIDX(f.inside(t))
	f.spend(t, rulesv1.ScannerRulesService_GetRuleSnippet_FullMethodName, "", http.MethodGet, fmt.Sprintf("/s/%d", id), "", nil)
}

// policies applies many policies, changes and reorders all, and deletes all except one.
func (f *flows) policies(t *testing.T) {
	target := fmt.Sprintf("/api/policies/v2/deployments/%d/remediation-policies", f.tenant.DeploymentID)
	policy := func(name, more string) string {
		return fmt.Sprintf(`{"name":%q,"filters":{"mode":"all","conditions":[{"type":"project","values":["name%d"]}]},"actions":[{"type":"block"}]%s}`,
			name, f.base+1, more)
	}
	for _, c := range []struct{ what, policies string }{
		{"new", f.each(policy("Policy #", ""), ",")}, {"changed", f.each(policy("Policy #", `,"active":true`), ",")},
		{"moved", policy("First", "") + "," + f.each(policy("Policy #", `,"active":true`), ",")}, {"deleted", policy("First", "")},
	} {
		var state struct {
			Version string `json:"state_version"`
		}
		f.do(t, http.MethodGet, target, "", &state)
		f.spend(t, policiesv1.PoliciesV2Service_ApplyRemediationPolicies_FullMethodName, c.what, http.MethodPut, target, `{"bundle":{"policies":[`+c.policies+`]}}`, nil,
			"If-Match", state.Version)
	}
}

// detection applies exceptions for many projects and turns their rules off, changes all, and deletes them.
func (f *flows) detection(t *testing.T) {
	target := fmt.Sprintf("/api/policies/v2/deployments/%d/detection-policy/code", f.tenant.DeploymentID)
	each := func(format string) string {
		list := make([]string, f.rows)
		for i := range list {
			list[i] = fmt.Sprintf(format, f.base+int64(i)+1)
		}
		return strings.Join(list, ",")
	}
	except := func(kind string) string {
		return `"exceptions":[` + each(`{"exception_type":"`+kind+`","project":"name%d","rule":"import","rule_type":"ruleset"}`) + `]`
	}
	for _, c := range []struct{ what, bundle string }{
		{"new", `"disabled":[` + each(`"name%d"`) + `],` + except("include")}, {"changed", except("exclude")}, {"deleted", `"rulesets":["default"]`},
	} {
		f.spend(t, policiesv1.PoliciesV2Service_ApplyDetectionPolicy_FullMethodName, c.what, http.MethodPut, target, `{"bundle":{`+c.bundle+`}}`, nil, "If-Match", "*")
	}
}

// deliveries resends deliveries of a rule about many findings.
func (f *flows) deliveries(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	var made struct {
		Rule struct{ ID int64 } `json:"notification_rule"`
	}
	f.do(t, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/actions", f.tenant.DeploymentID),
		fmt.Sprintf(`{"notificationRule":{"name":"flow","channel":"webhook","is_enabled":true,"config":{"url":%q,"secret":"flow-hook-secret-1"}}}`, receiver.URL), &made)
	report, err := base64.StdEncoding.DecodeString(f.report())
	if err != nil {
		t.Fatal(err)
	}
	f.server.Upload(t, "acme/sent", "refs/heads/main", report)
	var id int64
	apitest.Eventually(t, "findings are delivered", func() bool {
		var err error
		id, err = f.server.Store.Reader.Delivery.Query().Where(
			delivery.RuleID(made.Rule.ID), delivery.Kind("findings"), delivery.State("delivered")).FirstID(f.inside(t))
		return err == nil
	})
	reader, _ := f.server.Store.DB()
	apitest.Eventually(t, "no job to deliver waits that would do for another, too", func() bool {
		var waiting int
		err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM river_job WHERE kind = '"+outbox.Deliver{}.Kind()+"' AND finalized_at IS NULL").Scan(&waiting)
		return err == nil && waiting == 0
	})
	f.spend(t, notificationsv1.DeliveriesService_ReplayDelivery_FullMethodName, "", http.MethodPost,
		fmt.Sprintf("/api/notifications/v1/deployments/%d/deliveries/%d/replay", f.tenant.DeploymentID, id), "{}", nil)
}
