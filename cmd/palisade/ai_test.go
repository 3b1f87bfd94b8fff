package main

import (
	"strings"
	"testing"
)

const aiStatus = `{"model":"qwen","disabledReason":"","costUsd":1.8,"month":{"used":"3","maxAllowed":"10"},"hour":{"used":"1","maxAllowed":"1000"},` +
	`"analyses":{"pending":"1","done":"2","failed":"4"},"fixes":{"pending":"0","done":"0","failed":"1"},` +
	`"tasks":[{"groupId":"7","chains":["CHAIN_AUTOTRIAGE","CHAIN_ISSUE_TAGS"],"createdAt":"2026-05-04T10:20:30.123456Z","numAnalyzed":"7",` +
	`"analyses":{"pending":"1","done":"2","failed":"4"}}],` +
	`"failedAnalyses":[{"id":"9","issueId":"4711","status":"ANALYSIS_STATUS_FAILED","verdict":"","error":"the key is\u001b[31m rejected","finishedAt":"2026-05-04T10:20:31.123456Z","model":""},{"id":"10","issueId":"4713","status":"ANALYSIS_STATUS_PENDING","verdict":"","error":"too busy","model":""}],` +
	`"failedFixes":[{"id":"3","issueId":"4712","error":"no fix","finishedAt":"2026-05-04T10:20:32.123456Z"}]}`

func TestAIStatus(t *testing.T) {
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, "GET /api/ai/1/status": aiStatus})
	got := palisade(t, "", server.env(), "ai", "status")
	if got.status != exitOK {
		t.Fatalf("status %d: %s", got.status, got.err)
	}
	out := strings.Join(strings.Fields(got.out), " ")
	for _, want := range []string{
		"Model: qwen Quota of the month: 3 used, 7 left of 10 Quota of the hour: 1 used, 999 left of 1000",
		"Analyses this month: 1 waiting, 2 done, 4 failed Fixes this month: 0 waiting, 0 done, 1 failed Cost of the analyses: 1.80 US dollars",
		"7 2026-05-04 10:20:30 7 1 2 4 autotriage,issue_tags",
		`analysis 9 4711 2026-05-04 10:20:31 the key is\x1b[31m rejected analysis 10 4713 will be retried too busy fix 3 4712 2026-05-04 10:20:32 no fix`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, got.out)
		}
	}
	if got := palisade(t, "", server.env(), "ai", "status", "-o", "json"); got.status != exitOK || strings.TrimSpace(got.out) != aiStatus {
		t.Errorf("status %d: %s%s", got.status, got.out, got.err)
	}
	for _, args := range []string{"status x", "status -o csv", "unknown"} {
		got := palisade(t, "", server.env(), append([]string{"ai"}, strings.Fields(args)...)...)
		if got.status != exitError || !strings.Contains(got.err, "--help") {
			t.Errorf("%s: status %d: %s", args, got.status, got.err)
		}
	}
}

func TestMoney(t *testing.T) {
	for amount, want := range map[float64]string{
		0: "0.00", 1.8: "1.80", 1234.567: "1234.57", 0.25: "0.25", 0.092: "0.092", 0.099: "0.10", 0.004: "0.0040", 0.000123: "0.00012", 1e-12: "0.000000000",
	} {
		if got := money(amount); got != want {
			t.Errorf("%v: %s, want %s", amount, got, want)
		}
	}
}

// Without a model, nothing is left, and the status says why.
func TestAIStatusOfARealServer(t *testing.T) {
	client := startReadyServer(t, t.TempDir())
	got := palisade(t, "", client, "ai", "status")
	out := strings.Join(strings.Fields(got.out), " ")
	if got.status != exitOK || !strings.Contains(out, "Model: - Disabled: no model is configured: set ai-url") || !strings.Contains(out, "0 used, 0 left of 10000 (no model is configured: set ai-url") {
		t.Errorf("status %d: %s%s", got.status, got.out, got.err)
	}
}
