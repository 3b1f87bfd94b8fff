package main

import (
	"strings"
	"testing"
)

func TestProjects(t *testing.T) {
	const one = `{"repos":[{"id":"7","name":"acme/\u001b[31mweb","tags":["backend","web"],"latestScan":{"id":"12","startedAt":"2026-05-04T10:20:30.123456Z",` +
		`"exitCode":"0","status":"SCAN_STATUS_ERROR"},"findings":{"critical":"1","high":"2","medium":"3","low":"40"},"freshness":"late"},` +
		`{"id":"8","name":"acme/new","findings":{}}],"cursor":""}`
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, "POST /api/agent/deployments/1/repos/search": one})
	for args, want := range map[string][2]string{
		"list":                                 {"7 acme/\\x1b[31mweb 2026-05-04 error 1 2 3 40 late backend, web 8 acme/new - - 0 0 0 0 - -", `"filters":{"archived":false,"search":""}`},
		"list --search web --had-problems":     {"acme/new", `"filters":{"archived":false,"latestScanStatus":"LATEST_SCAN_STATUS_BUCKET_HAD_PROBLEMS","search":"web"}`},
		"list --not-set-up --archived -o json": {`"status":"SCAN_STATUS_ERROR"`, `"filters":{"archived":true,"search":"","setup":false}`},
	} {
		got := palisade(t, "", server.env(), append([]string{"projects"}, strings.Fields(args)...)...)
		if out := strings.Join(strings.Fields(got.out), " "); got.status != exitOK || !strings.Contains(out, want[0]) {
			t.Errorf("%s: status %d: %s%s", args, got.status, got.out, got.err)
		}
		if body := string(server.bodies[len(server.bodies)-1]); !strings.Contains(body, want[1]) || !strings.Contains(body, `"includeSummary":true`) {
			t.Errorf("%s sends %s, want %s", args, body, want[1])
		}
	}
	if got := palisade(t, "", server.env(), "projects", "list", "-o", "csv"); got.status != exitError || !strings.Contains(got.err, "--help") {
		t.Errorf("status %d: %s", got.status, got.err)
	}
}
