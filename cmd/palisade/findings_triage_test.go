package main

import (
	"strings"
	"testing"
)

const (
	agentBase = "/api/agent/deployments/1/"
	previewed = `{"previewToken":"tok","expiresAt":"2026-05-04T10:35:30Z","issueCount":2,"issueParentCount":1,"updatedCount":3,"statuses":[{"status":"open","count":2}],` +
		`"examples":[{"findingId":"4711","project":"acme/web","ref":"refs/heads/main","ruleName":"py.sqli","severity":"high","status":"open","filePath":"app/db.py","line":12}]}`
	applied = `{"issueParentCount":1,"issueCount":2,"updatedCount":3,"changeId":"17"}`
)

func TestFindingsTriage(t *testing.T) {
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, "POST " + agentBase + "findings/v2/preview": previewed, "PATCH " + agentBase + "findings/v2": applied})
	flags := []string{"findings", "triage", "--rules", "py.sqli", "--severities", "high,critical", "--status", "open", "--state", "ignored", "--reason", "false_positive", "--note", "test data"}
	for _, c := range []struct {
		more, in string
		applies  bool
	}{{"", "y\n", true}, {"--yes", "", true}, {"", "\n", false}, {"", "no\n", false}, {"--preview", "", false}} {
		before := len(server.requests)
		got := palisade(t, c.in, server.env(), append(flags, strings.Fields(c.more)...)...)
		if got.status != exitOK {
			t.Fatalf("%q: status %d: %s", c.more, got.status, got.err)
		}
		wantParts(t, got.out, "open", "selected", "4711", "app/db.py:12", "3 findings on all refs would change.")
		sent := string(server.bodies[len(server.bodies)-1])
		if applies := strings.Contains(got.out, "3 findings were changed."); applies != c.applies || applies != strings.Contains(sent, `"previewToken":"tok"`) {
			t.Errorf("%q %q: sent %s after %d requests: %s%s", c.more, c.in, sent, len(server.requests)-before, got.out, got.err)
		}
		if c.applies != strings.Contains(got.err, "palisade findings triage undo 17") {
			t.Errorf("%q: %s", c.more, got.err)
		}
		for _, part := range []string{`"rules":["py.sqli"]`, `"SEVERITY_HIGH","SEVERITY_CRITICAL"`, `"tab":"ISSUE_TAB_OPEN"`, `"triageReason":"FINDING_TRIAGE_REASON_FALSE_POSITIVE"`, `"note":"test data"`} {
			if !strings.Contains(strings.ReplaceAll(sent, " ", ""), strings.ReplaceAll(part, " ", "")) {
				t.Errorf("%q is not in %s", part, sent)
			}
		}
	}
	for _, args := range [][]string{{}, {"--state", "gone"}, {"--note", "x", "--severities", "huge"}, {"--note", "x", "--filter", "{"}, {"--note", "x", "--yes", "--preview"}, {"undo"}, {"changes", "--limit", "0"}} {
		if got := palisade(t, "", server.env(), append([]string{"findings", "triage"}, args...)...); got.status != exitError {
			t.Errorf("%v: status %d: %s", args, got.status, got.err)
		}
	}
}

func TestTriageUndoAndChanges(t *testing.T) {
	server := serveRecorded(t, map[string]string{
		deploymentsPath: oneDeployment,
		"POST " + agentBase + "findings/v2/undo/17": `{"change":{"id":"18"},"restoredCount":2,"keptCount":1,"kept":[{"reason":"KEPT_REASON_CHANGED_SINCE","count":1,"findingIds":["4712"]}]}`,
		"GET " + agentBase + "findings/v2/changes": `{"changes":[{"id":"17","kind":"TRIAGE_CHANGE_KIND_BULK_UPDATE","triageState":"FINDING_TRIAGE_STATE_FIXING","note":"soon","actorKind":"user","actorId":"3",` +
			`"issueCount":2,"updatedCount":3,"at":"2026-05-04T10:20:30.123456Z","undoneBy":"18"}],"cursor":""}`,
	})
	got := palisade(t, "", server.env(), "findings", "triage", "undo", "17")
	wantParts(t, got.out, "2 findings were restored, 1 stay as they are.", "1 changed since: 4712")
	wantParts(t, got.err, "palisade findings triage undo 18")
	got = palisade(t, "", server.env(), "findings", "triage", "changes", "--finding", "4711")
	wantParts(t, strings.Join(strings.Fields(got.out), " "), "17 bulk_update fixing - 2 3 user 3 2026-05-04 - 18 soon")
	if last := server.requests[len(server.requests)-1]; last.URL.RawQuery != "findingId=4711&limit=100" {
		t.Errorf("query %q", last.URL.RawQuery)
	}
}

func TestFindingsExceptions(t *testing.T) {
	const requests = `"requests":[{"id":"7","findingId":"4711","projectName":"acme/web","ruleName":"py.sqli","findingStatus":"open","state":"FINDING_EXCEPTION_REQUEST_STATE_REQUESTED",` +
		`"source":"FINDING_EXCEPTION_REQUEST_SOURCE_SCM_COMMENT","triageReason":"FINDING_TRIAGE_REASON_NO_TIME","note":"later","requesterLogin":"octavia","createdAt":"2026-05-04T10:20:30Z"}]`
	server := serveRecorded(t, map[string]string{
		deploymentsPath: oneDeployment, "GET " + agentBase + "exception-requests": "{" + requests + `,"cursor":""}`,
		"POST " + agentBase + "exception-requests/review": "{" + requests + `,"changeIds":["19"]}`,
	})
	got := palisade(t, "", server.env(), "findings", "exceptions", "--state", "requested")
	wantParts(t, strings.Join(strings.Fields(got.out), " "), "7 requested 4711 open acme/web py.sqli no_time octavia scm_comment 2026-05-04 - later")
	got = palisade(t, "", server.env(), "findings", "exceptions", "approve", "7", "8", "--note", "fine")
	if got.status != exitOK || !strings.Contains(got.err, "palisade findings triage undo 19") {
		t.Errorf("status %d: %s%s", got.status, got.out, got.err)
	}
	if sent := strings.ReplaceAll(string(server.bodies[len(server.bodies)-1]), " ", ""); sent != `{"requestIds":["7","8"],"decision":"EXCEPTION_DECISION_APPROVE","note":"fine"}` {
		t.Errorf("sent %s", sent)
	}
	for _, args := range [][]string{{"approve"}, {"reject", "x"}, {"--state", "gone"}} {
		if got := palisade(t, "", server.env(), append([]string{"findings", "exceptions"}, args...)...); got.status != exitError {
			t.Errorf("%v: status %d: %s", args, got.status, got.err)
		}
	}
}
