package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// cursored serves lists of 2,300 rows in pages of at most 1,000, with the id of the last row as the cursor.
func cursored(t *testing.T) *httptest.Server {
	t.Helper()
	const total = 2300
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/deployments" {
			_, _ = fmt.Fprint(w, oneDeployment)
			return
		}
		field := map[string]string{"exception-requests": "requests", "held-closes": "held_closes", "jobs": "jobs", "removed-findings": "findings",
			"advisories": "advisories", "rules": "rules", "7": "findings"}[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
		if field == "" {
			field = "changes"
		}
		limit, after := 100, 0
		if text := r.FormValue("limit"); text != "" {
			limit, _ = strconv.Atoi(text)
		}
		if text := r.FormValue("cursor"); text != "" {
			after, _ = strconv.Atoi(text)
		}
		if limit < 1 || limit > 1000 {
			t.Errorf("%s: limit %d", r.URL.Path, limit)
		}
		var rows []string
		for id := after + 1; id <= min(after+limit, total); id++ {
			name := "id"
			if field == "jobs" {
				name = "jobId"
			}
			rows = append(rows, fmt.Sprintf(`{"%s":"%d"}`, name, id))
		}
		cursor := strconv.Itoa(after + len(rows))
		if after+len(rows) == total {
			cursor = ""
		}
		_, _ = fmt.Fprintf(w, `{"%s":[%s],"cursor":"%s"}`, field, strings.Join(rows, ","), cursor)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestListsAreWhole: as JSON, each list has all rows, unless --limit leaves some out.
func TestListsAreWhole(t *testing.T) {
	server := cursored(t)
	env := []string{"PALISADE_URL=" + server.URL, "PALISADE_TOKEN=" + testToken}
	for command, shown := range map[string]int{
		"findings exceptions": 100, "findings triage changes": 100, "findings identity-changes": 100, "findings --removed": 100,
		"closes list": 100, "workflow jobs": 50, "advisories list": 100, "rules list": 2300,
	} {
		for _, c := range []struct {
			flags        string
			rows, status int
		}{
			{"-o json", 2300, exitOK},
			{"-o json --limit 1700", 1700, exitMore},
			{"-o json --limit 2300", 2300, exitOK},
			{"", shown, exitOK},
			{"--limit 7", 7, exitMore},
			{"--limit 3000", 2300, exitOK},
		} {
			got := palisade(t, "", env, strings.Fields(command+" "+c.flags)...)
			rows := rowsOf(t, got.out)
			if rows != c.rows || got.status != c.status {
				t.Errorf("%s %s: %d rows, status %d, %s; want %d rows, status %d", command, c.flags, rows, got.status, got.err, c.rows, c.status)
			}
			if more := strings.Contains(got.err, "There are more than "+strconv.Itoa(c.rows)); more != (c.rows < 2300) {
				t.Errorf("%s %s says %q", command, c.flags, got.err)
			}
		}
	}
	for flags, want := range map[string]int{"closes show 7 -o json": 2300, "closes show 7 --all": 2302, "findings --removed --all": 2300} {
		if got := palisade(t, "", env, strings.Fields(flags)...); rowsOf(t, got.out) < want || got.status != exitOK {
			t.Errorf("%s: %d rows, status %d, %s", flags, rowsOf(t, got.out), got.status, got.err)
		}
	}
}

// rowsOf counts the rows of a list: elements of the JSON array, or lines of the table.
func rowsOf(t *testing.T, out string) (n int) {
	t.Helper()
	if strings.HasPrefix(out, "[") {
		var items []json.RawMessage
		if err := json.Unmarshal([]byte(out), &items); err != nil {
			t.Fatal(err)
		}
		return len(items)
	}
	if !strings.HasPrefix(out, "{") {
		return strings.Count(out, "\n") - 1
	}
	var page map[string]json.RawMessage
	if err := json.Unmarshal([]byte(out), &page); err != nil {
		t.Fatalf("%.100s: %v", out, err)
	}
	for _, value := range page {
		var items []json.RawMessage
		if json.Unmarshal(value, &items) == nil {
			n += len(items)
		}
	}
	return n
}

// TestLimitOfWholeLists: lists that print everything have --limit, too, which says when there is more.
func TestLimitOfWholeLists(t *testing.T) {
	server := serveRecorded(t, map[string]string{
		deploymentsPath: oneDeployment,
		"POST /api/agent/deployments/1/repos/search": `{"repos":[{"id":"1","name":"acme/a"},{"id":"2","name":"acme/b"}],"cursor":"next"}`,
		"GET /api/v1/deployments/1/freshness":        `{"freshness":[{"project":"acme/a","state":"late"},{"project":"acme/b","state":"ok"}],"cursor":"next"}`,
		"GET /api/rules/v1/deployments/1/aliases":    `{"aliases":[{"name":"a"},{"name":"b"}],"cursor":"next"}`,
	})
	for _, args := range []string{"projects list", "freshness", "rules aliases"} {
		for _, output := range []string{"table", "json"} {
			got := palisade(t, "", server.env(), append(strings.Fields(args), "--limit", "2", "-o", output)...)
			if got.status != exitMore || !strings.Contains(got.err, "There are more than 2") || got.out == "" {
				t.Errorf("%s -o %s: status %d: %s%s", args, output, got.status, got.out, got.err)
			}
		}
		asked := server.requests[len(server.requests)-1].URL.RawQuery + string(server.bodies[len(server.bodies)-1])
		if !strings.Contains(asked, "limit=2") && !strings.Contains(asked, `"pageSize":2`) {
			t.Errorf("%s asks for %s", args, asked)
		}
		if got := palisade(t, "", server.env(), append(strings.Fields(args), "--limit", "0")...); got.status != exitError {
			t.Errorf("%s --limit 0: status %d", args, got.status)
		}
	}
}
