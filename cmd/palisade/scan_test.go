package main

import (
	"strings"
	"testing"
)

func TestScanCommand(t *testing.T) {
	const base = "/api/agent/deployments/1/"
	scan := func(status, problem string) string {
		return `{"managedScan":{"id":"1","scanId":"7","projectId":"1","ref":"refs/heads/main","commit":"3f2a9c10000000000000","cause":"MANAGED_SCAN_CAUSE_REQUEST",
			"status":"SCAN_STATUS_` + status + `","problem":"` + problem + `","log":"12:00:01 fetches\n12:00:02 \u001b[31mred\n","createdAt":"2026-05-04T10:20:30.123456Z","retryOf":"0"}}`
	}
	task := `{"tasks":[{"repoId":"1","scanId":"7","configId":"1","branch":"refs/heads/main","taskId":"3","managedScanId":"1"}],"errors":[]}`
	refused := `{"tasks":[],"errors":[{"repoId":"","project":"acme/none","message":"project not found"}]}`
	server := func(run, got string) *recorded {
		return serveRecorded(t, map[string]string{
			deploymentsPath: oneDeployment, "POST " + base + "scans/run": run, "GET " + base + "managed-scans/7": got,
			"POST " + base + "managed-scans/7/cancel": scan("CANCELLED", "it was cancelled"),
			"POST /api/v2/deployments/1/scans/retry":  `{"tasks":[],"errors":[{"repoId":"1","scanId":"7","message":"it succeeded"}]}`,
		})
	}
	completed := server(task, scan("COMPLETED", ""))
	for _, c := range []struct {
		on     *recorded
		args   string
		status int
		out    []string
	}{
		{completed, "acme/web", exitOK, []string{"scan 7 waits for a node; see: palisade scan show 7"}},
		{completed, "acme/web --wait", exitOK, []string{"scan 7 12:00:01 fetches", "7 completed refs/heads/main 3f2a9c100000 request"}},
		{server(task, scan("ERROR", "the branch is gone")), "acme/web --wait", exitNo, []string{"7 error", "the branch is gone"}},
		{server(refused, ""), "acme/none", exitNo, []string{"acme/none: project not found"}},
		{completed, "show 7", exitOK, []string{"7 completed", `12:00:02 \x1b[31mred`}},
		{completed, "show seven", exitError, []string{"want the id of a scan"}},
		{completed, "cancel 7", exitOK, []string{"7 cancelled", "it was cancelled"}},
		{completed, "retry 7", exitNo, []string{"scan 7: it succeeded"}},
		{completed, "", exitError, []string{"requires at least 1 arg"}},
	} {
		got := palisade(t, "", c.on.env(), append([]string{"scan"}, strings.Fields(c.args)...)...)
		for _, want := range c.out {
			if out := strings.Join(strings.Fields(got.out+got.err), " "); got.status != c.status || !strings.Contains(out, want) {
				t.Errorf("%s: status %d: %s%s, want %d %s", c.args, got.status, got.out, got.err, c.status, want)
			}
		}
	}
}
