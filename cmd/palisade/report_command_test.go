package main

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
)

const (
	agePath     = "POST /api/reporting/1/reports/median-open-age/by-severity"
	rulePath    = "POST /api/reporting/1/reports/backlog/by-rule"
	funnelPath  = "POST /api/reporting/1/reports/funnel"
	ageAnswer   = `{"buckets":[{"timePeriod":{"since":"2026-05-04T00:00:00.000000Z","until":"2026-05-11T00:00:00.000000Z"},"low":3,"medium":0,"high":12,"critical":1},{"timePeriod":{"since":"2026-05-11T00:00:00.000000Z","until":"2026-05-12T10:00:00.000000Z"},"low":4,"medium":2,"high":9,"critical":1}]}`
	ruleAnswer  = `{"buckets":[{"timePeriod":{"since":"2026-05-04T00:00:00.000000Z","until":"2026-05-05T00:00:00.000000Z"},"open":{"gone":4,"sqli":1}},{"timePeriod":{"since":"2026-05-05T00:00:00.000000Z","until":"2026-05-06T00:00:00.000000Z"},"open":{"sqli":1,"x\u001b[31m":7}}]}`
	funnelReply = `{"allFindings":9,"possiblyExploitable":5,"internetExposed":0,"priorityFindings":2,"byProduct":{"code":{"allFindings":9,"possiblyExploitable":5,"internetExposed":0,"priorityFindings":2},"sca":{"allFindings":0,"possiblyExploitable":0,"internetExposed":0,"priorityFindings":0}}}`
)

func TestReportTables(t *testing.T) {
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, agePath: ageAnswer, rulePath: ruleAnswer, funnelPath: funnelReply})
	for _, c := range []struct {
		args, want string
	}{
		{"report median-open-age --by severity", "since until low medium high critical 2026-05-04 2026-05-11 3 0 12 1 2026-05-11 2026-05-12T10:00:00Z 4 2 9 1"},
		{"report backlog --by rule", `since until x\x1b[31m sqli gone 2026-05-04 2026-05-05 0 1 4 2026-05-05 2026-05-06 7 1 0`},
		{"report funnel", "product allFindings possiblyExploitable internetExposed priorityFindings all 9 5 0 2 code 9 5 0 2 sca 0 0 0 0"},
		{"report funnel -o chart", "product allFindings possiblyExploitable internetExposed priorityFindings all 9 5 0 2 code 9 5 0 2 sca 0 0 0 0"},
	} {
		got := palisade(t, "", server.env(), strings.Fields(c.args)...)
		if got.status != exitOK || strings.Join(strings.Fields(got.out), " ") != c.want {
			t.Errorf("%s: %d\n%s%s", c.args, got.status, got.out, got.err)
		}
	}
	got := palisade(t, "", server.env(), "report", "median-open-age", "--by", "severity", "-o", "csv")
	rows, err := csv.NewReader(strings.NewReader(got.out)).ReadAll()
	if err != nil || len(rows) != 3 || strings.Join(rows[2], "|") != "2026-05-11|2026-05-12T10:00:00Z|4|2|9|1" {
		t.Errorf("CSV: %v %v", rows, err)
	}
	if got = palisade(t, "", server.env(), "report", "median-open-age", "--by", "severity", "-o", "json"); !json.Valid([]byte(got.out)) || !strings.Contains(got.out, "buckets") {
		t.Errorf("JSON: %s", got.out)
	}
	got = palisade(t, "", server.env(), "report", "median-open-age", "--by", "severity", "-o", "chart")
	wantParts(t, got.out, "high 9", "critical 1", "days, 2026-05-04 to 2026-05-12T10:00:00Z", "┤", "■")
	marked := map[string]bool{}
	for _, line := range strings.Split(got.out, "\n") {
		if mark, _, ok := strings.Cut(strings.ReplaceAll(line, "┼", "┤"), "┤"); ok {
			if mark = strings.TrimSpace(mark); marked[mark] {
				t.Errorf("two lines of the chart are for %s:\n%s", mark, got.out)
			}
			marked[mark] = true
		}
	}
	if strings.Contains(got.out, "\x1b") {
		t.Errorf("colours away from a terminal: %q", got.out)
	}
}

func TestReportFilters(t *testing.T) {
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, agePath: ageAnswer})
	got := palisade(t, "", server.env(), "report", "median-open-age", "--by", "severity", "--since", "2026-05-04", "--until", "2026-05-12T10:00:00Z", "--bucket", "week",
		"--project", "acme/web,acme/api", "--tag", "pci", "--team", "platform", "--rule", "sqli", "--severity", "high", "--type", "sca", "--verdict", "no_verdict")
	if got.status != exitOK {
		t.Fatalf("%d: %s", got.status, got.err)
	}
	want := `{"filters":{"aiVerdicts":["VERDICT_NO_VERDICT"],"findingSeverities":["FINDING_SEVERITY_HIGH"],"findingTypes":["FINDING_TYPE_SCA"],"projects":["acme/web","acme/api"],"ruleIds":["sqli"],"tags":["pci"],"teams":["platform"],"timeBucketSize":"TIME_BUCKET_SIZE_WEEK","timePeriod":{"since":"2026-05-04T00:00:00Z","until":"2026-05-12T10:00:00Z"}}}`
	if body := string(server.bodies[len(server.bodies)-1]); body != want {
		t.Errorf("got %s\nwant %s", body, want)
	}
	for _, args := range []string{"--by rule", "--bucket year", "-o svg", "--since soon", "--until later"} {
		if got := palisade(t, "", server.env(), append([]string{"report", "median-open-age"}, strings.Fields(args)...)...); got.status != exitError || !strings.Contains(got.err, "want") {
			t.Errorf("%s: %d %s", args, got.status, got.err)
		}
	}
}

// TestReportOfAServer runs the command against a real server without findings.
func TestReportOfAServer(t *testing.T) {
	client := startReadyServer(t, t.TempDir())
	for _, args := range []string{"median-open-age", "backlog --by rule", "activity", "funnel"} {
		for _, output := range []string{"chart", "table", "csv", "json"} {
			got := palisade(t, "", client, append(append([]string{"report"}, strings.Fields(args)...), "-o", output)...)
			if got.status != exitOK || got.out == "" {
				t.Errorf("%s -o %s: %d %s%s", args, output, got.status, got.out, got.err)
			}
		}
	}
}
