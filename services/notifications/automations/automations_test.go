package automations_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/workflow"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

const quiet = `{"name":"Quiet tests","description":"Generated code","filters":{"mode":"MODE_ALL","conditions":[
	{"type":"CONDITION_TYPE_PATH","values":["gen"]},{"mode":"MODE_NONE","type":"CONDITION_TYPE_SEVERITY","values":["SEVERITY_CRITICAL"]}]},
	"actions":[{"type":"ACTION_TYPE_TRIAGE","config":{"state":"ignored","reason":"acceptable_risk","note":"generated"}}]}`

// TestServed: the operations of the contract, over both wires.
func TestServed(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		client := notificationsv1.NewAutomationsServiceClient(s.Conn)
		apitest.Golden(t, "empty", s.Get(t, s.path("")))
		made := s.Body(t, s.Token, http.MethodPost, s.path(""), `{"automation":`+quiet+`}`, 200)
		apitest.Golden(t, "created", made)
		second := s.create(t, strings.ReplaceAll(quiet, "Quiet tests", "Second"))
		list := s.Get(t, s.path(""))
		apitest.Golden(t, "list", list)
		over, err := client.ListAutomations(s.Context(t, s.Token), &notificationsv1.ListAutomationsRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, over, list)
		pages := fmt.Sprintf("/api/v2/deployments/%d/automations?limit=1", s.DeploymentID)
		var page struct {
			Automations []struct{ Name string }
			Cursor      string
		}
		decode(t, s.Get(t, pages), &page)
		if len(page.Automations) != 1 || page.Cursor == "" {
			t.Fatalf("the first page is %+v", page)
		}
		decode(t, s.Get(t, pages+"&cursor="+page.Cursor), &page)
		if page.Automations[0].Name != "Second" || page.Cursor != "" {
			t.Errorf("the last page is %+v", page)
		}
		changed := s.Body(t, s.Token, http.MethodPut, s.path("/"+second), `{"automation":{"name":"Second","active":false,"filters":{},"actions":[
			{"type":"ACTION_TYPE_TRIAGE","config":{"state":"FINDING_TRIAGE_STATE_REVIEWING"}}]}}`, 200)
		if !strings.Contains(changed, `"active":false`) || !strings.Contains(changed, `"state":"reviewing"`) {
			t.Errorf("updated to %s", changed)
		}
		if body := s.Body(t, s.Token, http.MethodDelete, s.path("/"+second), "", 200); body != "{}" {
			t.Errorf("deleted: %s", body)
		}
		s.Body(t, s.Token, http.MethodDelete, s.path("/"+second), "", 404)
		other := s.AddTenant(t, "other")
		for _, method := range []string{http.MethodPut, http.MethodDelete} {
			s.Body(t, other.Token, method, fmt.Sprintf("/api/notifications/deployments/%d/automations/1", other.DeploymentID), `{"automation":`+quiet+`}`, 404)
		}
	})
}

// TestRefused: errors name the field and what is allowed, and nothing is stored.
func TestRefused(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		with := func(trigger, conditions, actions string) string {
			return `{"name":"x","triggerSource":"` + trigger + `","filters":{"conditions":[` + conditions + `]},"actions":[` + actions + `]}`
		}
		const scan, triaged = "TRIGGER_SOURCE_SCAN", "TRIGGER_SOURCE_ISSUE_TRIAGED"
		const review = `{"type":"ACTION_TYPE_TRIAGE","config":{"state":"reviewing"}}`
		for want, automation := range map[string]string{
			"automation.triggerSource TRIGGER_SOURCE_PATCH_READY is not supported": with("TRIGGER_SOURCE_PATCH_READY", "", review),
			"automation.actions must have at least one action":                     with(scan, "", ""),
			"conditions[0].type CONDITION_TYPE_BREAKING_CHANGE is not supported":   with(scan, `{"type":"CONDITION_TYPE_BREAKING_CHANGE","values":["true"]}`, review),
			"conditions[0].type CONDITION_TYPE_FULL_SCAN needs the trigger":        with(triaged, `{"type":"CONDITION_TYPE_FULL_SCAN","values":["true"]}`, `{"type":"ACTION_TYPE_EMAIL"}`),
			"conditions[0].values must have at least one value":                    with(scan, `{"type":"CONDITION_TYPE_PATH"}`, review),
			"it must be critical, high, medium, low":                               with(scan, `{"type":"CONDITION_TYPE_SEVERITY","values":["loud"]}`, review),
			"only findings of sca have CONDITION_TYPE_REACHABILITY": with(scan, `{"type":"CONDITION_TYPE_PRODUCT","values":["PRODUCT_SAST"]},
				{"type":"CONDITION_TYPE_REACHABILITY","values":["reachable"]}`, review),
			"no finding has all of the values of CONDITION_TYPE_SEVERITY": with(scan, `{"type":"CONDITION_TYPE_SEVERITY","mode":"MODE_ALL","values":["high","critical"]}`, review),
			"conditions[1]: the conditions on CONDITION_TYPE_SEVERITY leave no value": with(scan, `{"type":"CONDITION_TYPE_SEVERITY","values":["high"]},
				{"type":"CONDITION_TYPE_SEVERITY","values":["low","medium"]}`, review),
			"the conditions on CONDITION_TYPE_PRODUCT leave no value": with(scan, `{"type":"CONDITION_TYPE_PRODUCT","mode":"MODE_NONE","values":["sast","ai_sast","sca","secrets"]}`, review),
			"the conditions on CONDITION_TYPE_RULE_ID leave no value": with(scan, `{"type":"CONDITION_TYPE_RULE_ID","mode":"MODE_NONE","values":["a","b"]},
				{"type":"CONDITION_TYPE_RULE_ID","values":["a"]}`, review),
			"only findings of secrets have CONDITION_TYPE_VALIDATION_STATE": with(scan, `{"type":"CONDITION_TYPE_REACHABILITY","values":["reachable"]},
				{"type":"CONDITION_TYPE_VALIDATION_STATE","values":["confirmed_valid"]}`, review),
			"conditions[0]: the conditions on CONDITION_TYPE_PATH leave no value": with(scan, `{"type":"CONDITION_TYPE_PATH","values":["gen"]},
				{"type":"CONDITION_TYPE_PATH","mode":"MODE_NONE","values":["gen"]}`, review),
			"conditions[0]: the conditions on CONDITION_TYPE_SEVERITY leave no value": strings.Replace(
				with(scan, `{"type":"CONDITION_TYPE_SEVERITY","values":["critical","high","medium","low"]}`, review),
				`"filters":{`, `"filters":{"mode":"MODE_NONE",`, 1),
			"it must be the path of a file or directory, without *":            with(scan, `{"type":"CONDITION_TYPE_PATH","values":["gen/**"]}`, review),
			"it would overrule that person, or run in circles":                 with(triaged, "", review),
			"config.state must be reviewing, fixing or ignored":                with(scan, "", `{"type":"ACTION_TYPE_TRIAGE","config":{"state":"gone"}}`),
			"config.reason is allowed only with the state ignored":             with(scan, "", `{"type":"ACTION_TYPE_TRIAGE","config":{"state":"fixing","reason":"no_time"}}`),
			"config has an unknown key":                                        with(scan, "", `{"type":"ACTION_TYPE_TRIAGE","config":{"state":"fixing","who":"me"}}`),
			"a remediation policy with the action block does":                  with(scan, "", `{"type":"ACTION_TYPE_BLOCK"}`),
			"actions[0].type ACTION_TYPE_OPEN_AUTOFIX_PR is not supported yet": with(scan, "", `{"type":"ACTION_TYPE_OPEN_AUTOFIX_PR"}`),
			"there is no notification rule 77":                                 with(scan, "", `{"type":"ACTION_TYPE_EMAIL","config":{"notification_rule_id":"77"}}`),
			"automation.filters.mode must be MODE_ALL, MODE_ANY or":            `{"name":"x","filters":{"mode":"MODE_UNKNOWN"},"actions":[` + review + `]}`,
			"there is no active remediation policy":                            with(scan, `{"type":"CONDITION_TYPE_POLICY","values":["nope"]}`, review),
			"there is no project":                                              with(scan, `{"type":"CONDITION_TYPE_REPOSITORY_ID","values":["999"]}`, review),
			"there is no tag":                                                  with(scan, `{"type":"CONDITION_TYPE_REPOSITORY_TAG_ID","values":["77"]}`, review),
			"is no id":                                                         with(scan, `{"type":"CONDITION_TYPE_REPOSITORY_ID","values":["abc"]}`, review),
			"automation.name is required":                                      `{"name":" ","actions":[` + review + `]}`,
		} {
			if got := s.refused(t, automation, 400); !strings.Contains(got, want) {
				t.Errorf("want %q in %s", want, got)
			}
		}
		if got := s.refused(t, with(scan, "", `{"type":"ACTION_TYPE_TRIGGER_WORKFLOW","config":{"workflow":"none"}}`), 404); !strings.Contains(got, "none") {
			t.Errorf("an unknown workflow: %s", got)
		}
		s.create(t, quiet)
		if got := s.refused(t, quiet, 409); !strings.Contains(got, "there is an automation") {
			t.Errorf("the same name: %s", got)
		}
		if body := s.Get(t, s.path("")); strings.Count(body, `"id"`) != 2 { // of the automation and its action
			t.Errorf("stored: %s", body)
		}
	})
}

// TestSpellings: values are stored in the spelling of findings, which conditions compare exactly.
func TestSpellings(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		id := s.create(t, `{"name":"Review","filters":{"conditions":[{"type":"CONDITION_TYPE_PATH","values":["./gen/"]},
			{"type":"CONDITION_TYPE_CWE","values":["cwe-79","89"]}]},"actions":[{"type":"ACTION_TYPE_TRIAGE","config":{"state":"reviewing"}}]}`)
		if got := s.Get(t, s.path("")); !strings.Contains(got, `"values":["gen"]`) || !strings.Contains(got, `"values":["CWE-79","CWE-89"]`) {
			t.Errorf("stored: %s", got)
		}
		s.Upload(t, "acme/web", "main", report("error:gen/api.go", "error:app/db.go"))
		if r := s.await(t, id, 1)[0]; r.Matched != "1" {
			t.Errorf("the run is %+v", r)
		}
	})
}

// TestRuleAlias: an automation about a rule goes on with its new name, and for rules of other tools with the old one.
func TestRuleAlias(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		id := s.create(t, `{"name":"Look","filters":{"conditions":[{"type":"CONDITION_TYPE_RULE_ID","values":["acme.error"]}]},
			"actions":[{"type":"ACTION_TYPE_TRIAGE","config":{"state":"reviewing"}}]}`)
		other := s.create(t, `{"name":"Others","filters":{"conditions":[{"type":"CONDITION_TYPE_RULE_ID","mode":"MODE_NONE","values":["acme.warning"]}]},
			"actions":[{"type":"ACTION_TYPE_TRIAGE","config":{"state":"fixing"}}]}`)
		s.Upload(t, "acme/web", "main", report("error:a.go"))
		s.await(t, id, 1)
		s.await(t, other, 1)
		s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/rules/v1/deployments/%d/aliases", s.DeploymentID),
			`{"tool":"acme-scan","name":"acme.error","canonical":"acme.problem"}`, 200)
		list := s.Get(t, s.path(""))
		if !strings.Contains(list, `"values":["acme.error","acme.problem"]`) || !strings.Contains(list, `"values":["acme.warning"]`) {
			t.Errorf("automations %s", list)
		}
		s.Upload(t, "acme/web", "main", bytes.ReplaceAll(report("error:b.go"), []byte("acme.error"), []byte("acme.problem")))
		if r := s.await(t, id, 2)[0]; r.Matched != "1" {
			t.Errorf("the run is %+v", r)
		}
		entry := s.Store.Reader.AuditEntry.Query().Where(auditentry.MethodContains("CreateRuleAlias")).OnlyX(s.System(t))
		if n := len(entry.Changes); n != 2 || entry.Changes[1].Kind != "automation" || entry.Changes[1].ID != id {
			t.Errorf("audited: %+v", entry.Changes)
		}
	})
}

// TestTriageAfterAScan: new findings that match are triaged once, and never against a person's decision.
func TestTriageAfterAScan(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		id := s.create(t, quiet)
		s.Upload(t, "acme/web", "main", report("error:gen/api.go", "warning:app/db.go"))
		runs := s.await(t, id, 1)
		if r := runs[0]; r.Evaluated != "2" || r.Matched != "1" || !r.Outcomes[0].Acted || !strings.Contains(r.Outcomes[0].Detail, "triaged 1 finding as ignored") {
			t.Errorf("the run is %+v", r)
		}
		if got := s.states(t, "main"); got["gen/api.go"] != "ignored" || got["app/db.go"] != "untriaged" {
			t.Errorf("the states are %v", got)
		}
		// A person reopens it: the same identity on another branch stays open.
		f := s.Store.Reader.Finding.Query().AllX(s.System(t))
		var ignored int64
		for _, row := range f {
			if row.TriageState == "ignored" {
				ignored = row.ID
			}
		}
		s.Body(t, s.Token, http.MethodPost, "/api/v1/deployments/"+s.Slug+"/triage", fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":"reopened"}`, ignored), 200)
		s.Upload(t, "acme/web", "next", report("error:gen/api.go", "error:gen/new.go"))
		runs = s.await(t, id, 2)
		if got := s.states(t, "next"); got["gen/api.go"] == "ignored" || got["gen/new.go"] != "ignored" {
			t.Errorf("on the other branch: %v, %+v", got, runs[0])
		}
		// The history names the automation, and the change can be undone.
		if got := s.Get(t, fmt.Sprintf("/api/agent/deployments/%d/findings/v2/changes", s.DeploymentID)); !strings.Contains(got, "Quiet tests") {
			t.Errorf("the changes do not name it: %s", got)
		}
	})
}

// TestMessages: a message per event, over the channel of the rule. What an automation decides triggers none.
func TestMessages(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		rule := s.rule(t)
		action := fmt.Sprintf(`{"type":"ACTION_TYPE_WEBHOOK","config":{"notification_rule_id":%q}}`, rule)
		if got := s.refused(t, `{"name":"x","actions":[`+strings.Replace(action, "WEBHOOK", "EMAIL", 1)+`]}`, 400); !strings.Contains(got, "has the channel CHANNEL_WEBHOOK, not CHANNEL_EMAIL") {
			t.Errorf("another channel: %s", got)
		}
		s.create(t, quiet)
		s.Upload(t, "acme/web", "main", report())
		told := s.create(t, `{"name":"Tell","triggerSource":"TRIGGER_SOURCE_ISSUE_TRIAGED","filters":{"mode":"MODE_ANY","conditions":[
			{"type":"CONDITION_TYPE_CWE","values":["CWE-79"]},{"type":"CONDITION_TYPE_TRIAGE_STATE","values":["fixing"]}]},"actions":[`+action+`]}`)
		scanned := s.create(t, `{"name":"Scanned","filters":{"conditions":[{"type":"CONDITION_TYPE_FULL_SCAN","values":["true"]},
			{"type":"CONDITION_TYPE_PRIMARY_REF","values":["true"]},{"type":"CONDITION_TYPE_REPOSITORY_ID","values":["1"]}]},"actions":[`+action+`]}`)
		s.Upload(t, "acme/web", "main", report("error:gen/api.go", "warning:app/db.go"))
		s.await(t, scanned, 1)
		s.Body(t, s.Token, http.MethodPost, "/api/v1/deployments/"+s.Slug+"/triage", `{"issue_type":"sast","new_triage_state":"fixing","limit":10,"status":"open"}`, 200)
		r := s.await(t, told, 1)[0]
		if r.TriageChangeID == "" || r.Matched != "1" || !strings.Contains(r.Outcomes[0].Detail, "sent with notification rule") {
			t.Errorf("the run is %+v", r)
		}
		if n := len(s.runs(t, told)); n != 1 {
			t.Errorf("a decision of an automation triggered %d runs", n-1)
		}
		var messages []string
		for _, d := range s.Store.Reader.Delivery.Query().Order(ent.Asc(delivery.FieldID)).Where(delivery.Kind("automation")).AllX(s.System(t)) {
			messages = append(messages, string(d.Payload))
		}
		if len(messages) != 2 || !strings.Contains(messages[0], `"automation":"Scanned"`) || !strings.Contains(messages[0], `"matched":2`) ||
			!strings.Contains(messages[1], "acme.warning at app/db.go in acme/web (main)") {
			t.Errorf("the messages are %v", messages)
		}
		// The rule is deleted: the automation goes on, and says so.
		s.Body(t, s.Token, http.MethodDelete, fmt.Sprintf("/api/agent/deployments/%d/actions/%s", s.DeploymentID, rule), "", 200)
		s.Upload(t, "acme/web", "main", report("error:gen/api.go", "warning:app/db.go", "warning:app/new.go"))
		if r := s.await(t, scanned, 2)[0]; r.Outcomes[0].Acted || !strings.Contains(r.Outcomes[0].Detail, "disabled or deleted") || r.Matched != "1" {
			t.Errorf("without its rule: %+v", r)
		}
	})
}

// TestLimit: an automation sends at most 100 messages in an hour, and the log says so.
func TestLimit(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		id := s.create(t, fmt.Sprintf(`{"name":"Tell","actions":[{"type":"ACTION_TYPE_WEBHOOK","config":{"notification_rule_id":%q}}]}`, s.rule(t)))
		number, _ := strconv.ParseInt(id, 10, 64)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.AutomationRun.Create().SetDeploymentID(s.DeploymentID).SetAutomationID(number).SetCause("scan").SetCauseID(9999).SetEvaluated(1).SetMatched(1).
				SetContent([]byte{}).SetSent(100).SetAt(store.Now()).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Upload(t, "acme/web", "main", report("error:app/db.go"))
		if r := s.await(t, id, 2)[0]; r.Outcomes[0].Acted || !strings.Contains(r.Outcomes[0].Detail, "within an hour") {
			t.Errorf("above the limit: %+v", r)
		}
	})
}

// TestWorkflow: a workflow is started for the project of the findings.
func TestWorkflow(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.Get(t, fmt.Sprintf("/api/workflows/v1/deployments/%d/registry", s.DeploymentID)) // stores the shipped workflows
		name := s.Store.Reader.Workflow.Query().Where(workflow.Enabled(true)).Order(ent.Asc(workflow.FieldID)).FirstX(s.System(t)).Name
		id := s.create(t, fmt.Sprintf(`{"name":"Start","actions":[{"type":"ACTION_TYPE_TRIGGER_WORKFLOW","config":{"workflow":%q}}]}`, name))
		s.Upload(t, "acme/web", "main", report("error:app/db.go"))
		if r := s.await(t, id, 1)[0]; r.Outcomes[0].Acted || !strings.Contains(r.Outcomes[0].Detail, "not started: no model is configured") {
			t.Fatalf("without a model: %+v", r)
		}
		definition, _ := json.Marshal(map[string]string{"definition": ownWorkflow})
		s.Body(t, s.Token, http.MethodPut, fmt.Sprintf("/api/workflows/v1/deployments/%d/registry", s.DeploymentID), string(definition), 200)
		name = "tidy"
		id = s.create(t, `{"name":"Tidy","actions":[{"type":"ACTION_TYPE_TRIGGER_WORKFLOW","config":{"workflow":"tidy"}}]}`)
		s.Upload(t, "acme/web", "main", report("error:app/db.go", "error:app/more.go"))
		if r := s.await(t, id, 1)[0]; !r.Outcomes[0].Acted || !strings.Contains(r.Outcomes[0].Detail, "started workflow tidy: run ") {
			t.Fatalf("the run is %+v", r)
		}
		begun := s.Store.Reader.WorkflowRun.Query().OnlyX(s.System(t))
		if begun.Workflow != name || begun.ActorKind != "automation" || begun.TriggerSource != "automation" || *begun.ProjectID != 1 {
			t.Errorf("started %+v", begun)
		}
	})
}

// TestSimulation equals what the automation does.
func TestSimulation(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.Upload(t, "acme/web", "main", report("error:gen/api.go", "warning:app/db.go"))
		got := s.Body(t, s.Token, http.MethodPost, s.path(":simulate"), `{"automation":`+quiet+`}`, 200)
		if strings.Count(got, `"kind":"created"`) != 2 || !strings.Contains(got, `"matched":1}`) || !strings.Contains(got, `"actions":["triage it as ignored"]`) {
			t.Errorf("simulated: %s", got)
		}
		if len(s.logged(t)) != 0 || s.states(t, "main")["gen/api.go"] != "untriaged" {
			t.Error("the simulation acted")
		}
		s.create(t, quiet)
		s.Upload(t, "acme/api", "main", report("error:gen/api.go", "warning:app/db.go"))
		apitest.Eventually(t, "the run", func() bool { return len(s.logged(t)) == 1 })
		if run := s.logged(t)[0]; run.Evaluated != 2 || run.Matched != 1 {
			t.Errorf("the run is %v", run)
		}
	})
}
