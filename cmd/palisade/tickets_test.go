package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTicketsCommand(t *testing.T) {
	const base = "/api/notifications/deployments/1/ticketing/v2"
	one := `{"id":3,"isConfigured":true,"isAuthRevoked":true,"instanceType":"jira","baseUrl":"https://acme.test","projectId":"SEC","issueTypeId":"Bug","labels":["appsec"],
		"mappings":[{"repository":"acme/*","projectId":"OPS"}]}`
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(" secret \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := serveRecorded(t, map[string]string{
		deploymentsPath:                             oneDeployment,
		"GET " + base:                               `{"instances":[` + one + `]}`,
		"POST " + base:                              `{"instance":` + one + `}`,
		"PATCH " + base + "/3":                      `{"instance":` + one + `}`,
		"DELETE " + base + "/3":                     `{}`,
		"POST " + base + "/3/check":                 `{"ok":true,"problems":[]}`,
		"POST " + base + "/4/check":                 `{"ok":false,"problems":["SEC: no such \u001b[31mproject"]}`,
		"POST " + base + "/3/tickets/link":          `{"ticketId":9,"externalSlug":"SEC-1","linkedIssueIds":[7,8],"replacedIssueIds":[8]}`,
		"POST /api/v1/deployments/1/tickets/unlink": `{"unlinked_issue_ids":["7"]}`,
		"POST " + base + "/3/create_tickets":        `{"succeeded":[{"issueIds":[1,2,3,4,5,6,7],"ticketId":9,"ticketUrl":"https://acme.test/browse/SEC-1","externalSlug":"SEC-1"}],"skipped":[{"issueIds":[8],"reason":"has the ticket SEC-0"}],"failed":[]}`,
		"POST " + base + "/5/create_tickets":        `{"succeeded":[],"skipped":[],"failed":[{"issueIds":[8],"error":"SEC: customfield_1 is required"}]}`,
		"POST " + base + "/6/create_tickets":        `{"succeeded":[],"skipped":[],"failed":[]}`,
	})
	for _, c := range []struct {
		args, body string
		status     int
		out        []string
	}{
		{"trackers list", "", exitOK, []string{"3 jira https://acme.test SEC acme/*=OPS Bug appsec refused by the tracker"}},
		{"trackers list -o json", "", exitOK, []string{`"isAuthRevoked":true`}},
		{"trackers add jira --url https://acme.test --user bot@acme.test --project SEC --map acme/*=OPS --automatic sast --close-at fixed --token-file " + token, `{}`, exitOK,
			[]string{"3 jira https://acme.test", "Tracker 3 accepts the token"}},
		{"trackers edit 3 --project OPS --closed-state reviewing", `{}`, exitOK, []string{"Tracker 3 accepts the token"}},
		{"trackers check 4", `{}`, exitError, []string{`SEC: no such \x1b[31mproject`, "tracker 4 cannot be used as it is"}},
		{"trackers remove 3", "", exitOK, []string{"Tracker 3 is disconnected."}},
		{"link https://acme.test/browse/SEC-1 7 8", `{"ticketUrl":"https://acme.test/browse/SEC-1","issueIds":["7","8"]}`, exitOK, []string{"SEC-1: 2 findings linked, 1 of them had another ticket."}},
		{"unlink 7", `{"issue_ids":[7]}`, exitOK, []string{"1 findings unlinked."}},
		{"create --ids 1,8 --each --project OPS", `{"groupIssues":false,"projectId":"OPS","issueIds":["1","8"],"issueFilters":{"ids":["1","8"]}}`, exitOK,
			[]string{"created SEC-1 1 2 3 4 5 and 2 more https://acme.test/browse/SEC-1", "skipped - 8 has the ticket SEC-0"}},
		{"create --severities high --issue-type sast --tracker 5", `{"groupIssues":true,"issueFilters":{"severities":["SEVERITY_HIGH"]},"issueTypes":["ISSUE_TYPE_SAST"]}`, exitError,
			[]string{"failed - 8 SEC: customfield_1 is required", "some findings have no ticket"}},
		{"create --tracker 6", `{"groupIssues":true,"issueFilters":{}}`, exitOK, []string{"no findings without a ticket"}},
	} {
		got := palisade(t, "", server.env(), append([]string{"tickets"}, strings.Fields(c.args)...)...)
		for _, want := range c.out {
			if out := strings.Join(strings.Fields(got.out+got.err), " "); got.status != c.status || !strings.Contains(out, want) {
				t.Errorf("%s: status %d: %s%s, want %d %s", c.args, got.status, got.out, got.err, c.status, want)
			}
		}
		if body := strings.ReplaceAll(string(server.bodies[len(server.bodies)-1]), `": `, `":`); strings.ReplaceAll(body, `, "`, `,"`) != c.body {
			t.Errorf("%s sends %s, want %s", c.args, body, c.body)
		}
	}
	var added string
	for i, r := range server.requests {
		if r.Method == "POST" && r.URL.Path == base {
			added = string(server.bodies[i])
		}
	}
	for _, part := range []string{`"token":"secret"`, `"instanceType":"jira"`, `"sast":true`, `"semgrepAggregateState":"fixed"`, `"repository":"acme/*"`} {
		if !strings.Contains(strings.ReplaceAll(added, `": `, `":`), part) {
			t.Errorf("add sends %s, without %s", added, part)
		}
	}
	for _, args := range []string{"unknown", "link https://acme.test", "link u x", "unlink", "create --severities x", "trackers add jira", "trackers add", "trackers edit x",
		"trackers edit 3 --map a", "trackers edit 3 --fields x", "trackers edit 3 --automatic x", "trackers edit 3 --token-file /does/not/exist"} {
		if got := palisade(t, "", server.env(), append([]string{"tickets"}, strings.Fields(args)...)...); got.status != exitError || got.err == "" {
			t.Errorf("%s: status %d: %s", args, got.status, got.err)
		}
	}
}
