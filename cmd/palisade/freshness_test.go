package main

import (
	"strings"
	"testing"
)

const (
	freshnessPath = "GET /api/v1/deployments/1/freshness"
	silentScan    = `{"project_id":2,"project":"acme/\u001b[31mweb","ref":"refs/heads/main","tool":"gosec","category":"","state":"silent","since":"2026-05-04T10:20:30.123456Z",` +
		`"reason":"No successful scan for 92 days.","last_scan":{"id":12,"at":"2026-04-20T10:20:30.123456Z","status":"SCAN_STATUS_COMPLETED"},"last_success_at":null,` +
		`"usual_interval_days":1,"late_at":null,"results":{"now":3,"before":120},"files":{"now":null,"before":null},"rules":{"now":7,"before":7},"scanner_version":""}`
)

func TestFreshness(t *testing.T) {
	server := serveRecorded(t, map[string]string{
		deploymentsPath: oneDeployment,
		freshnessPath:   `{"freshness":[` + silentScan + `],"cursor":""}`,
	})
	for _, c := range []struct {
		args, out, err, request string
		status                  int
	}{
		{"", `silent 2026-05-04 acme/\x1b[31mweb refs/heads/main gosec - 2026-04-20 1 3 (was 120) - No successful scan for 92 days.`, "", "limit=1000", exitOK},
		{"--state silent,late --project acme/web --check", "silent", "1 not ok", "limit=1000&project=acme%2Fweb&state=silent&state=late", exitNo},
		{"-o json", `{"freshness":[{"project_id":2,`, "", "limit=1000", exitOK},
	} {
		got := palisade(t, "", server.env(), append([]string{"freshness"}, strings.Fields(c.args)...)...)
		if got.status != c.status || !strings.Contains(strings.Join(strings.Fields(got.out), " "), c.out) || !strings.Contains(got.err, c.err) {
			t.Errorf("%s: status %d: %s%s", c.args, got.status, got.out, got.err)
		}
		if last := server.requests[len(server.requests)-1]; last.URL.RawQuery != c.request {
			t.Errorf("%s: query %q, want %q", c.args, last.URL.RawQuery, c.request)
		}
	}
	for _, args := range []string{"x", "-o csv", "--state old"} {
		got := palisade(t, "", server.env(), append([]string{"freshness"}, strings.Fields(args)...)...)
		if got.status != exitError || !strings.Contains(got.err, "--help") {
			t.Errorf("%s: status %d: %s", args, got.status, got.err)
		}
	}
}

func TestFreshnessIsOK(t *testing.T) {
	server := serveRecorded(t, map[string]string{
		deploymentsPath: oneDeployment,
		freshnessPath:   `{"freshness":[` + strings.Replace(silentScan, `"silent"`, `"ok"`, 1) + `],"cursor":""}`,
	})
	if got := palisade(t, "", server.env(), "freshness", "--check"); got.status != exitOK {
		t.Errorf("status %d: %s", got.status, got.err)
	}
}
