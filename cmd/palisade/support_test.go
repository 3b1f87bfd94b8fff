package main

import (
	"strings"
	"testing"
)

func TestSupportCommand(t *testing.T) {
	const base = "/api/support/cases/1"
	one := `{"caseNumber":"2","status":"open","priority":"high","caseType":"bug_fix","subject":"Scans \u001b[31mfail","description":"Since Monday.\nAll.","email":"ann@acme.test","caseOwner":"","createdAt":"2026-05-04T10:20:30.123456Z","updatedAt":"2026-05-04T10:20:30.123456Z"}`
	closed := strings.NewReplacer(`"2"`, `"1"`, `"open"`, `"closed"`, `"caseOwner":""`, `"caseOwner":"eve"`).Replace(one)
	server := serveRecorded(t, map[string]string{
		deploymentsPath:        oneDeployment,
		"GET " + base:          `{"supportCases":[` + one + `,` + closed + `],"cursor":""}`,
		"PATCH " + base + "/2": `{"supportCase":` + closed + `}`,
	})
	for _, c := range []struct {
		args, body string
		status     int
		out        []string
	}{
		{"list", "", exitOK, []string{`2 open high bug_fix - 2026-05-04 Scans \x1b[31mfail`}},
		{"list --all", "", exitOK, []string{"1 closed high bug_fix eve 2026-05-04"}},
		{"list -o json", "", exitOK, []string{`"caseNumber":"2"`}},
		{"show 2", "", exitOK, []string{"Answer to: ann@acme.test", "Since Monday. All."}},
		{"show 7", "", exitError, []string{"there is no case 7"}},
		{"update 2 --status closed --owner eve", `{"status":"closed","caseOwner":"eve"}`, exitOK, []string{"1 closed"}},
		{"update 2", "", exitError, []string{"nothing to change"}},
		{"update two --status closed", "", exitError, []string{"want the number of a case"}},
	} {
		got := palisade(t, "", server.env(), append([]string{"support"}, strings.Fields(c.args)...)...)
		for _, want := range c.out {
			if out := strings.Join(strings.Fields(got.out+got.err), " "); got.status != c.status || !strings.Contains(out, want) {
				t.Errorf("%s: status %d: %s%s, want %d %s", c.args, got.status, got.out, got.err, c.status, want)
			}
		}
		if c.args == "list" && strings.Contains(got.out, "closed") {
			t.Errorf("list shows closed cases: %s", got.out)
		}
		if body := strings.ReplaceAll(string(server.bodies[len(server.bodies)-1]), `": `, `":`); c.body != "" && strings.ReplaceAll(body, `, "`, `,"`) != c.body {
			t.Errorf("%s sends %s, want %s", c.args, body, c.body)
		}
	}
}
