package main

import (
	"strings"
	"testing"
)

func TestPullRequestsCommand(t *testing.T) {
	const base = "/api/v1/deployments/1/"
	shown := `{"pull_request":{"number":7},"blocked":true,"blockers":[{"policy_slug":"no-new","name":"No new","reason":"ask first","findings":1}],"added":1,"fixed":2,"ignored":3,
		"findings":[{"id":12,"added":true,"blocked_by":["No new"],"rule_name":"sqli","severity":"high","status":"open","path":"app/\u001b[31mdb.go","line":4}],
		"feedback":{"commit":"bbbb","statuses":["Palisade"],"comment_id":"","problem":"the access token may not do this"}}`
	server := serveRecorded(t, map[string]string{
		deploymentsPath:                           oneDeployment,
		"GET " + base + "pull-request":            shown,
		"GET " + base + "pull-request-feedback":   `{"settings":{"statuses":false,"comments":false}}`,
		"PATCH " + base + "pull-request-feedback": `{"settings":{"statuses":true,"comments":false}}`,
	})
	for _, c := range []struct {
		args, request, body string
		out                 []string
	}{
		{"show 7 --project acme/web", "number=7&project=acme%2Fweb", "", []string{"1 new, 2 fixed, 3 ignored; it is blocked.", "blocked by No new: 1 ask first",
			"1 statuses of bbbb, comment -", "the last try failed: the access token", `12 yes high open sqli app/\x1b[31mdb.go:4 No new`}},
		{"show 7 --project acme/web -o json", "number=7&project=acme%2Fweb", "", []string{`"number":7`}},
		{"feedback", "", "", []string{"statuses off comments off"}},
		{"feedback --statuses on --comments off", "", `{"settings":{"comments":false,"statuses":true}}`, []string{"statuses on comments off"}},
	} {
		got := palisade(t, "", server.env(), append([]string{"pull-requests"}, strings.Fields(c.args)...)...)
		for _, want := range c.out {
			if out := strings.Join(strings.Fields(got.out), " "); got.status != exitOK || !strings.Contains(out, want) {
				t.Errorf("%s: status %d: %s%s, want %s", c.args, got.status, got.out, got.err, want)
			}
		}
		if last := server.requests[len(server.requests)-1]; last.URL.RawQuery != c.request {
			t.Errorf("%s: query %q, want %q", c.args, last.URL.RawQuery, c.request)
		}
		if body := string(server.bodies[len(server.bodies)-1]); body != c.body {
			t.Errorf("%s sends %s, want %s", c.args, body, c.body)
		}
	}
	for _, args := range []string{"show --project a", "show x --project a", "show 7", "feedback --statuses maybe", "unknown"} {
		got := palisade(t, "", server.env(), append([]string{"pull-requests"}, strings.Fields(args)...)...)
		if got.status != exitError || got.err == "" {
			t.Errorf("%s: status %d: %s", args, got.status, got.err)
		}
	}
}
