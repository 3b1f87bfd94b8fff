package main

import (
	"strings"
	"testing"
)

const (
	closesBase = "/api/v1/deployments/default/"
	oneHold    = `{"id":7,"project_id":2,"project":"acme/web","ref":"refs/heads/main","tool":"gosec","tool_version":"2.21","category":"","scan_id":12,"state":"pending",` +
		`"findings":309,"open":309,"waiting":300,"rejected_before":false,"created_at":"2026-05-04T10:20:30.123456Z","decided_at":null,"actor_kind":"","actor_id":0,"note":""}`
	heldFinding = `{"id":4711,"rule_name":"G104","severity":"low","path":"app/\u001b[31mdb.go","line":12,"status":"open","closes_as":"fixed","reason":"gone from the report","waiting":true}`
)

func TestCloses(t *testing.T) {
	server := serveRecorded(t, map[string]string{
		deploymentsPath:                                oneDeployment,
		"GET " + closesBase + "held-closes":            `{"held_closes":[` + oneHold + `],"cursor":""}`,
		"GET " + closesBase + "held-closes/7":          `{"held_closes":` + oneHold + `,"findings":[` + heldFinding + `],"cursor":"next"}`,
		"POST " + closesBase + "held-closes/7/confirm": `{"held_closes":` + strings.Replace(oneHold, "pending", "confirmed", 1) + `,"closed":300}`,
		"POST " + closesBase + "held-closes/7/reject":  `{"held_closes":` + strings.Replace(oneHold, "pending", "rejected", 1) + `,"kept":300}`,
		"GET " + closesBase + "close-limits":           `{"effective":{"off":false,"all_of":10,"share":60,"share_of":50},"own":{}}`,
		"PATCH " + closesBase + "close-limits":         `{"effective":{"off":false,"all_of":10,"share":80,"share_of":50},"own":{"share":80}}`,
	})
	for _, c := range []struct {
		args, out, err string
		request, body  string
	}{
		{"list --state pending --project acme/web", "7 pending acme/web refs/heads/main gosec - 309 309 300 12 2026-05-04", "", "limit=100&project=acme%2Fweb&state=pending", ""},
		{"list -o json", `{"held_closes":[{"id":7,`, "", "limit=1000", ""},
		{"show 7", `4711 open yes low G104 app/\x1b[31mdb.go:12 fixed gone from the report`, "--all", "", ""},
		{"confirm 7 --note ok", "Closed 300 of 309 findings.", "", "", `{"note":"ok"}`},
		{"reject 7", "300 findings stay open.", "", "", `{"note":""}`},
		{"limits --project acme/web", "share 60 no", "", "project=acme%2Fweb", ""},
		{"limits --share 80 --on", "share 80 yes", "", "", `{"limits":{"off":false,"share":80},"project":"","reset":false}`},
		{"limits --reset", "share 80 yes", "", "", `{"limits":{},"project":"","reset":true}`},
	} {
		got := palisade(t, "", server.env(), append([]string{"closes"}, strings.Fields(c.args)...)...)
		out := strings.ReplaceAll(strings.Join(strings.Fields(got.out), " "), `": `, `":`)
		if got.status != exitOK || !strings.Contains(out, c.out) || !strings.Contains(got.err, c.err) {
			t.Errorf("%s: status %d: %s%s", c.args, got.status, got.out, got.err)
		}
		if last := server.requests[len(server.requests)-1]; last.URL.RawQuery != c.request {
			t.Errorf("%s: query %q, want %q", c.args, last.URL.RawQuery, c.request)
		}
		if body := string(server.bodies[len(server.bodies)-1]); body != c.body {
			t.Errorf("%s sends %s, want %s", c.args, body, c.body)
		}
	}
	for _, args := range []string{"show", "show x", "confirm", "reject 0", "list -o csv", "list --limit 0", "unknown"} {
		got := palisade(t, "", server.env(), append([]string{"closes"}, strings.Fields(args)...)...)
		if got.status != exitError || !strings.Contains(got.err, "--help") {
			t.Errorf("%s: status %d: %s", args, got.status, got.err)
		}
	}
	if got := palisade(t, "", server.env(), "closes"); !strings.Contains(got.out+got.err, "palisade closes confirm 7") {
		t.Errorf("help: %s%s", got.out, got.err)
	}
}
