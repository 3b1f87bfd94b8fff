package main

import (
	"os"
	"strings"
	"testing"
)

// The command prints the bodies that the API's golden files have.
func TestFindingsShow(t *testing.T) {
	const testdata = "../../services/findings/issue/testdata/"
	bodies := map[string]string{deploymentsPath: oneDeployment}
	for path, name := range map[string]string{"1": "whole_sast", "4": "whole_secrets", "5": "whole_ai_sast"} {
		text, err := os.ReadFile(testdata + name + ".golden")
		if err != nil {
			t.Fatal(err)
		}
		bodies["GET /api/agent/deployments/1/issues/v2/"+path] = string(text)
	}
	server := serveRecorded(t, bodies)
	show := func(args ...string) string {
		t.Helper()
		got := palisade(t, "", server.env(), append([]string{"findings", "show"}, args...)...)
		if got.status != exitOK {
			t.Fatalf("status %d: %s", got.status, got.err)
		}
		return strings.Join(strings.Fields(got.out), " ")
	}
	wantParts(t, show("1"), "Finding 1: built from input", "high sast, rule python.flask.sqli", "src/app.py:7 of acme/web",
		"main provisionally ignored app", "refs/merge-requests/12/head ignored code finding 2", "note: checked", "ticket: APP-1 https://tickets.acme.test/APP-1", "first scan here 1, last scan 2",
		"Code cur.execute(q + name)", "History, newest first", "2026-05-04 10:20Z Triaged as ignored ann@acme.test false_positive checked")
	if query := server.requests[len(server.requests)-1].URL.RawQuery; query != "includeCodeSnippet=true&includeIsArchived=true" {
		t.Errorf("query %q", query)
	}
	wantParts(t, show("5"), "Data flow source src/in.py:3 step src/app.py:5 sink src/app.py:7")
	if secret := show("4"); strings.Contains(secret, "Code") || strings.Contains(secret, "Data flow") {
		t.Errorf("a secret is shown with code: %s", secret)
	}
	if raw := show("5", "-o", "json"); !strings.HasPrefix(raw, `{"id":"5"`) {
		t.Errorf("%s", raw)
	}
	if got := palisade(t, "", server.env(), "findings", "show", "x"); got.status != exitError || !strings.Contains(got.err, "--help") {
		t.Errorf("status %d: %s", got.status, got.err)
	}
}
