package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/findings/printout"
)

func TestFindingsTable(t *testing.T) {
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, findingsPath: "findings.json"})
	got := palisade(t, "", server.env(), "findings")
	if got.status != exitOK {
		t.Fatalf("status %d: %s", got.status, got.err)
	}
	want := `SEVERITY  STATUS  RULE     LOCATION                      PROJECT   REF                ID     SINCE
high      open    py.sqli  app/db.py:42                  acme/web  main               90017  2026-05-04
critical  open    ssc-1    left\x1b]0;x\apad@1.0.0       acme/web  refs/pull/7/merge  90018  2026-05-03
`
	if strings.Join(strings.Fields(got.out), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got:\n%s\nwant:\n%s", got.out, want)
	}
	wantParts(t, got.err, "2 findings on page 0, the last one.")
}

func TestFindingsColourKeepsColumns(t *testing.T) {
	var plain, coloured bytes.Buffer
	for _, p := range []*tablePrinter{newTablePrinter(&plain, false), newTablePrinter(&coloured, true)} {
		for _, severity := range []string{"low", "medium", "high", "critical", "new-word", ""} {
			if err := p.add(nil, finding{Severity: severity, Status: "open"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.end(); err != nil {
			t.Fatal(err)
		}
	}
	bare := coloured.String()
	for _, colour := range severityColours {
		bare = strings.ReplaceAll(bare, colour, "")
	}
	if bare = strings.ReplaceAll(bare, "\x1b[0m", ""); bare != plain.String() || !strings.Contains(coloured.String(), "\x1b[31mhigh\x1b[0m") {
		t.Errorf("without its colours:\n%s\nplain:\n%s", bare, plain.String())
	}
}

func TestEveryFilterBecomesItsParameter(t *testing.T) {
	server := serveRecorded(t, map[string]string{findingsPath: `{"findings":[]}`})
	args := []string{"findings", "--deployment", "default"}
	for _, f := range filters {
		switch f.kind {
		case list, names:
			args = append(args, "--"+f.flag(), "a,b", "--"+f.flag(), "c")
		case flagged:
			args = append(args, "--"+f.flag()+"=false")
		case number:
			args = append(args, "--"+f.flag(), "150")
		case moment:
			args = append(args, "--"+f.flag(), "7d")
		}
	}
	if got := palisade(t, "", server.env(), args...); got.status != exitOK {
		t.Fatalf("status %d: %s", got.status, got.err)
	}
	query := server.requests[0].URL.Query()
	if len(query) != 21 || len(filters) != 21 {
		t.Errorf("%d parameters of %d filters, want the contract's 21", len(query), len(filters))
	}
	for _, f := range filters {
		want := map[filterKind]string{list: "[a b c]", names: "[a,b c]", flagged: "[false]", number: "[150]", moment: "[1777636800]"}[f.kind]
		if got := fmt.Sprint(query[f.name]); got != want {
			t.Errorf("%s: got %s, want %s", f.name, got, want)
		}
	}
}

func TestMoments(t *testing.T) {
	now := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"1777636800": "1777636800", "1777636800.5": "1777636800.5", "1d": "1778155200", "90m": "1778236200",
		"2026-05-01": "1777593600", "2026-05-01T12:00:00+02:00": "1777629600", "2026-05-01T12:00:00.25Z": "1777636800.25",
	} {
		if got, err := parseMoment(text, now); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
	}
}

// pages serves total findings in pages. Between two pages it inserts one at the front, like a scan.
func pages(t *testing.T, total int) *httptest.Server {
	t.Helper()
	shift := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var page, size int
		if _, err := fmt.Sscan(r.FormValue("page")+" "+r.FormValue("page_size"), &page, &size); err != nil {
			t.Errorf("page %q, page_size %q", r.FormValue("page"), r.FormValue("page_size"))
		}
		rows := []string{}
		for i := page*size - shift; i < (page+1)*size-shift && i < total; i++ {
			rows = append(rows, fmt.Sprintf(`{"id":%d,"rule_name":"r"}`, total-i))
		}
		shift++
		_, _ = fmt.Fprintf(w, `{"findings":[%s]}`, strings.Join(rows, ","))
	}))
	t.Cleanup(server.Close)
	return server
}

func TestFindingsLimit(t *testing.T) {
	for _, c := range []struct {
		args, err     string
		status, shown int
	}{
		{"-o csv", "", exitOK, 350},
		{"-o csv --limit 120", "There are more than 120 findings.", exitMore, 120},
		{"-o csv --limit 349", "There are more than 349 findings.", exitMore, 349},
		{"-o csv --limit 350", "", exitOK, 350},
		{"-o csv --page 1 --page-size 100", "100 findings on page 1; there may be more", exitOK, 100},
		{"--limit 120", "There are more than 120 findings.", exitMore, 120},
	} {
		server := pages(t, 350)
		got := palisade(t, "", []string{"PALISADE_URL=" + server.URL, "PALISADE_TOKEN=" + testToken},
			append([]string{"findings", "--deployment", "default"}, strings.Fields(c.args)...)...)
		if lines := strings.Count(got.out, "\n"); got.status != c.status || lines != c.shown+1 || !strings.Contains(got.err, c.err) {
			t.Errorf("%s: status %d, %d lines, %s", c.args, got.status, lines, got.err)
		}
	}
	got := palisade(t, "", []string{"PALISADE_URL=http://127.0.0.1:1", "PALISADE_TOKEN=" + testToken}, "findings", "--limit", "0")
	if got.status != exitError || !strings.Contains(got.err, "--limit: got 0") {
		t.Errorf("status %d: %s", got.status, got.err)
	}
}

func TestFindingsAll(t *testing.T) {
	server := pages(t, 350)
	got := palisade(t, "", []string{"PALISADE_URL=" + server.URL, "PALISADE_TOKEN=" + testToken},
		"findings", "--deployment", "default", "--page-size", "100", "-o", "json")
	if got.status != exitOK {
		t.Fatalf("status %d: %s", got.status, got.err)
	}
	var answer struct{ Findings []struct{ ID int } }
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Findings) != 350 || answer.Findings[0].ID != 350 || answer.Findings[349].ID != 1 {
		t.Errorf("got %d findings, want 350 from id 350 to 1", len(answer.Findings))
	}
	for i := 1; i < len(answer.Findings); i++ {
		if answer.Findings[i-1].ID != answer.Findings[i].ID+1 {
			t.Fatalf("finding %d follows %d", answer.Findings[i].ID, answer.Findings[i-1].ID)
		}
	}
}

func TestFindingsJSONIsTheServers(t *testing.T) {
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, findingsPath: "findings.json"})
	got := palisade(t, "", server.env(), "findings", "-o", "json")
	recorded, err := os.ReadFile("testdata/findings.json")
	if err != nil {
		t.Fatal(err)
	}
	var shown, sent bytes.Buffer
	if err := json.Compact(&shown, []byte(got.out)); err != nil {
		t.Fatal(err)
	}
	if err := json.Compact(&sent, recorded); err != nil {
		t.Fatal(err)
	}
	if shown.String() != sent.String() || got.err != "" {
		t.Errorf("got %s\n%s", got.out, got.err)
	}
	empty := serveRecorded(t, map[string]string{findingsPath: `{"findings":[]}`})
	if got := palisade(t, "", empty.env(), "findings", "-o", "json", "--deployment", "default"); got.out != "{\"findings\":[]}\n" {
		t.Errorf("got %q", got.out)
	}
}

func TestFindingsCSV(t *testing.T) {
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, findingsPath: "findings.json"})
	got := palisade(t, "", server.env(), "findings", "-o", "csv")
	rows, err := csv.NewReader(strings.NewReader(got.out)).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	row := map[string]string{}
	for i, name := range rows[0] {
		row[name] = rows[1][i]
	}
	for name, want := range map[string]string{
		"id": "90017", "path": "app/db.py", "line": "42", "project": "acme/web", "ref": "refs/heads/main",
		"message": `'=HYPERLINK("https://evil.test","Query, built")`,
	} {
		if row[name] != want {
			t.Errorf("%s: got %q, want %q", name, row[name], want)
		}
	}
}

func TestNoFormula(t *testing.T) {
	for cell, want := range map[string]string{
		"": "", "main": "main", "a=b": "a=b", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": `'\t=1`, "\r=1": `'\r=1`, "＝1": "'＝1",
	} {
		if got := printout.Cell(cell); got != want {
			t.Errorf("%q: got %q, want %q", cell, got, want)
		}
	}
}

func TestFindingsErrorIsReadable(t *testing.T) {
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, findingsPath: "400 error-400.json"})
	got := palisade(t, "", server.env(), "findings", "--page-size", "7")
	if got.status != exitError || got.out != "" {
		t.Errorf("status %d, output %q", got.status, got.out)
	}
	wantParts(t, got.err, "page_size: got 7, want 100 to 3000", "PAGE_SIZE_OUT_OF_RANGE", "HTTP 400", "req-1", `status: unknown word "opne"`)
}

func TestPlainHTTPBeyondThisMachineWarns(t *testing.T) {
	var errs bytes.Buffer
	flags := clientFlags{server: "http://palisade.example.com", token: testToken}
	if _, err := flags.newClient(streams{err: &errs}); err != nil {
		t.Fatal(err)
	}
	wantParts(t, errs.String(), "warning", "plain HTTP")
}

func TestRemovedFindings(t *testing.T) {
	const path = "GET /api/v1/deployments/default/removed-findings"
	server := serveRecorded(t, map[string]string{path: `{"findings":[{"id":90017,"project":"acme/web","ref":"refs/pull/7/merge","rule_name":"py.sqli","severity":"high",` +
		`"path":"app/db.py","line":42,"triage_state":"untriaged","reason":"pull request closed","removed_at":"2026-05-04T10:20:30Z"}],"cursor":""}`})
	got := palisade(t, "", server.env(), "findings", "--removed", "--deployment", "default", "--repos", "acme/web,api", "--ref", "main", "--page-size", "50")
	if got.status != exitOK {
		t.Fatalf("status %d: %s", got.status, got.err)
	}
	wantParts(t, got.out, "SEVERITY", "high", "app/db.py:42", "refs/pull/7/merge", "2026-05-04", "pull request closed")
	wantParts(t, got.err, "1 removed findings.")
	if query := server.requests[0].URL.Query(); query.Get("project") != "acme/web,api" || query.Get("ref") != "main" || query.Get("limit") != "50" || len(query) != 3 {
		t.Errorf("query %v", query)
	}
	for _, bad := range [][]string{{"--status", "open"}, {"--repos", "a", "--repos", "b"}, {"--issue-type", "sast,sca"}, {"-o", "csv"}} {
		if got := palisade(t, "", server.env(), append([]string{"findings", "--removed", "--deployment", "default"}, bad...)...); got.status != exitError {
			t.Errorf("%v: status %d, %s", bad, got.status, got.err)
		}
	}
}
