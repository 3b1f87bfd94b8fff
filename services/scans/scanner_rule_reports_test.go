package scans_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/rules/ruleset"
)

func (c scannerClient) rulesPath(more string) string {
	return fmt.Sprintf("/api/rules/v1/deployments/%d/%s", c.DeploymentID, more)
}

// importRules imports one rule a name. Another pattern is another version.
func (c scannerClient) importRules(t testing.TB, pattern string, names ...string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("rules:\n")
	for _, name := range names {
		fmt.Fprintf(&text, "- {id: %s, languages: [python], severity: ERROR, message: no, pattern: %s}\n", name, pattern)
	}
	c.Body(t, c.Token, http.MethodPost, c.rulesPath("rules"), written(t, object{"files": []any{object{"name": "r.yaml", "text": text.String()}}, "mode": "RULE_MODE_BLOCK"}), http.StatusOK)
}

// begin opens a scan and returns its id and the rules that it gets.
func (c scannerClient) begin(t testing.TB, change ...func(object)) (id int64, names []string) {
	t.Helper()
	answer := c.ok(t, http.MethodPost, cliScans, recorded(t, "create_1.97", append([]func(object){with(uuid.NewString(), "scan_metadata", "unique_id")}, change...)...))
	list, _ := at(answer, "config", "rules", "rules").([]any)
	for _, rule := range list {
		name, _ := at(rule, "id").(string)
		names = append(names, name)
	}
	number, _ := at(answer, "info", "id").(float64)
	return int64(number), names
}

// dies reports that a new scan failed.
func (c scannerClient) dies(t testing.TB, output string, change ...func(object)) int64 {
	t.Helper()
	id, _ := c.begin(t, change...)
	c.ok(t, http.MethodPost, errorPath(id), written(t, object{"exit_code": 4, "stderr": output}))
	return id
}

// quarantined lists the rules in quarantine.
func (c scannerClient) quarantined(t testing.TB) (names []string) {
	t.Helper()
	list, _ := parsed(t, c.Get(t, c.rulesPath("rules?quarantined=true")))["rules"].([]any)
	for _, rule := range list {
		name, _ := at(rule, "name").(string)
		names = append(names, name)
	}
	return names
}

// wantsAlerts makes a receiver of alerts. alerts returns the payloads for it.
func (c scannerClient) wantsAlerts(t testing.TB) (alerts func() []string) {
	t.Helper()
	c.Body(t, c.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/actions", c.DeploymentID),
		`{"notificationRule":{"channel":"webhook","name":"alerts","is_enabled":true,"config":{"url":"https://hooks.acme.test/a"},"send_rule_alerts":true}}`, http.StatusOK)
	return func() (list []string) {
		for _, row := range c.Store.Reader.Delivery.Query().Where(delivery.Kind("rule_alert")).Order(ent.Asc(delivery.FieldID)).AllX(c.System(t)) {
			list = append(list, string(row.Payload))
		}
		return list
	}
}

// parseError is how an engine writes that a pattern is not code.
func parseError(rule string) string {
	return "[00.31][ERROR]: Pattern parse error in rule " + rule + ":\n Invalid pattern for Python:\n--- pattern ---\nprint..);\n--- end pattern ---\n"
}

const (
	evalRule = "acme.python.eval"
	weakRule = "acme.generic.weak-hash"
)

func TestBrokenRuleIsQuarantined(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		alerts := c.wantsAlerts(t)
		c.importRules(t, "f($X)", evalRule, weakRule)
		c.scan(t, recorded(t, "results"))
		c.importRules(t, "g($X)", weakRule)
		broken := c.dies(t, parseError(weakRule)+parseError(evalRule)+parseError("acme.other"))
		wantList(t, "only the version that never ran", c.quarantined(t), weakRule)
		rule := c.Get(t, c.rulesPath("rules/"+weakRule))
		for _, part := range []string{`"quarantine":{"reason":"[00.31][ERROR]: Pattern parse error in rule acme.generic.weak-hash: Invalid pattern for Python:"`, fmt.Sprintf(`"scanId":"%d"`, broken), `"since":"20`} {
			if !strings.Contains(rule, part) {
				t.Errorf("no %s in %s", part, rule)
			}
		}
		list := alerts()
		if len(list) != 1 || !strings.Contains(list[0], `{"palisade_rule_alert":{"deployment_id":1,"event":"rules_quarantined","rules":["acme.generic.weak-hash"],`) ||
			!strings.Contains(list[0], `"title":"Rule acme.generic.weak-hash is quarantined"`) {
			t.Errorf("alerts: %q", list)
		}
		changes := 0
		for _, entry := range s.Store.Reader.AuditEntry.Query().Where(auditentry.MethodContains("ReportScanError")).AllX(s.System(t)) {
			for _, change := range entry.Changes {
				if change.Kind == ruleset.AuditKind && strings.Contains(string(change.After), "Pattern parse error") {
					changes++
				}
			}
			if strings.Contains(entry.Request, "Invalid pattern") {
				t.Errorf("the audit trail has the output of the scanner: %s", entry.Request)
			}
		}
		if changes != 1 {
			t.Errorf("%d changes of rules are in the audit trail", changes)
		}
		// The next scan works, and the findings of the rule stay.
		id, names := c.begin(t)
		if !slices.Contains(names, evalRule) || slices.Contains(names, weakRule) {
			t.Errorf("the next scan gets %v", names)
		}
		c.complete(t, id, c.results(t, id, recorded(t, "results", with([]any{evalRule}, "rule_ids"), without(func(f object) bool { return f["check_id"] == evalRule }))))
		wantList(t, "findings", c.findingsOf(t, mainRef), allFound...)
		// A scan that began in the quarantine and ends after it did not run the rule either.
		id, _ = c.begin(t)
		c.importRules(t, "g($X)", weakRule) // unchanged
		wantList(t, "the same version again", c.quarantined(t), weakRule)
		c.importRules(t, "h($X)", weakRule)
		wantList(t, "a new version", c.quarantined(t))
		c.complete(t, id, c.results(t, id, recorded(t, "results", with([]any{evalRule}, "rule_ids"), without(func(f object) bool { return f["check_id"] == evalRule }))))
		wantList(t, "findings", c.findingsOf(t, mainRef), allFound...)
		// A person has the last word.
		c.dies(t, parseError(weakRule))
		wantList(t, "the new version", c.quarantined(t), weakRule)
		c.Body(t, c.Token, http.MethodPost, c.rulesPath("released-rules"), `{"names":["acme.generic.weak-hash","acme.none"]}`, http.StatusNotFound)
		wantList(t, "after a wrong name", c.quarantined(t), weakRule)
		if body := c.Body(t, c.Token, http.MethodPost, c.rulesPath("released-rules"), `{"names":["acme.generic.weak-hash"]}`, http.StatusOK); strings.Contains(body, "quarantine") {
			t.Errorf("released: %s", body)
		}
		c.dies(t, parseError(weakRule))
		wantList(t, "after the release", c.quarantined(t))
		if _, names := c.begin(t); !slices.Contains(names, weakRule) {
			t.Errorf("after the release a scan gets %v", names)
		}
	})
}

// ruleError is an error of a scan's statistics.
func ruleError(rule string, kind any) object {
	return object{"code": 2, "level": "error", "type": kind, "rule_id": rule, "message": "Invalid pattern for Python"}
}

// A scan that names a broken rule in its statistics worked for all other rules.
func TestBrokenRuleInStatistics(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.importRules(t, "f($X)", evalRule, weakRule, "acme.a", "acme.b")
		id, _ := c.begin(t)
		task := c.results(t, id, recorded(t, "results"))
		c.ok(t, http.MethodPost, completePath(id), recorded(t, "complete", with(task, "task_id"), with([]any{
			ruleError(weakRule, "Rule parse error"), ruleError("acme.a", []any{"PatternParseError", []any{"x"}}), ruleError("acme.b", "Timeout"), object{"type": "Rule parse error"}, 3,
		}, "stats", "errors")))
		wantList(t, "quarantined", c.quarantined(t), weakRule, "acme.a")
		c.dies(t, parseError(evalRule)+parseError("acme.b"))
		wantList(t, "the others have run", c.quarantined(t), weakRule, "acme.a")
	})
}

// TestReportsThatQuarantineNothing: the token of one pipeline must not turn off the rules of all.
func TestReportsThatQuarantineNothing(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		var many []string
		for i := range ruleset.MaxBroken + 1 {
			many = append(many, fmt.Sprintf("acme.many.r%d", i))
		}
		c.importRules(t, "f($X)", append(many, weakRule)...)
		c.dies(t, "Scanned 3 files with rule "+weakRule+"\nTraceback of app/rule "+weakRule+"x failed")
		wantList(t, "no error of the rule", c.quarantined(t))
		c.dies(t, strings.Join(func() (all []string) {
			for _, name := range many {
				all = append(all, parseError(name))
			}
			return all
		}(), ""))
		wantList(t, "too many", c.quarantined(t))
		c.dies(t, parseError(weakRule), with([]any{many[0]}, "scan_metadata", "partial_scan_rule_ids"))
		wantList(t, "a rule that the scan did not get", c.quarantined(t))
		c.dies(t, parseError(weakRule), with([]any{"secrets"}, "scan_metadata", "requested_products"))
		wantList(t, "a rule of another product", c.quarantined(t))
		id, _ := c.begin(t)
		c.importRules(t, "g($X)", weakRule)
		c.ok(t, http.MethodPost, errorPath(id), written(t, object{"exit_code": 4, "stderr": parseError(weakRule)}))
		wantList(t, "a version that is newer than the scan", c.quarantined(t))
		id, _ = c.begin(t)
		task := c.results(t, id, recorded(t, "results"))
		c.ok(t, http.MethodPost, errorPath(id), written(t, object{"exit_code": 4, "stderr": parseError(weakRule)}))
		wantList(t, "a scan with results", c.quarantined(t))
		c.complete(t, id, task)
	})
}

// TestScansThatAllFail: one alert a change of the rules, not one a scan.
func TestScansThatAllFail(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		alerts := c.wantsAlerts(t)
		failing := func() bool {
			t.Helper()
			found, err := ruleset.ScansFailing(tenant.NewContext(t.Context(), s.DeploymentID), s.Store.Reader)
			if err != nil {
				t.Fatal(err)
			}
			return found != nil
		}
		c.importRules(t, "f($X)", evalRule)
		c.dies(t, "")
		if failing() || len(alerts()) > 0 {
			t.Errorf("one scan is not all: %q", alerts())
		}
		last := c.dies(t, "")
		c.dies(t, "")
		list := alerts()
		if !failing() || len(list) != 1 || !strings.Contains(list[0], `"event":"scans_failing","rules":[],`) || !strings.Contains(list[0], fmt.Sprintf(`"scan_id":%d,"exit_code":4,"title":"All scans of acme fail`, last)) {
			t.Errorf("alerts: %q", list)
		}
		c.scan(t, recorded(t, "results"))
		if failing() {
			t.Error("a scan has succeeded")
		}
		c.dies(t, "")
		c.dies(t, "")
		if list := alerts(); len(list) != 1 {
			t.Errorf("alerts after a success: %q", list)
		}
	})
}
