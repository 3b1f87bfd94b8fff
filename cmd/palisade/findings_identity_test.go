package main

import (
	"slices"
	"strings"
	"testing"
)

const (
	identityBase = "/api/v1/deployments/1/"
	changed      = `{"change":{"id":"17","projectId":"2","kind":"IDENTITY_CHANGE_KIND_SPLIT","findingId":"4711","otherId":"4713","note":"","actorKind":"token","actorId":"1",` +
		`"at":"2026-05-04T10:20:30.123456Z"},"findings":[{"id":"4711","projectId":"2","ref":"refs/heads/main","state":"fixed","triageState":"ignored",` +
		`"triageReason":"false_positive","status":"fixed","place":{"filePath":"app/db.py","line":12,"column":1,"endLine":12,"endColumn":9}}]}`
)

func TestFindingsExplain(t *testing.T) {
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, "GET " + identityBase + "findings/4711/identity": "identity.json"})
	got := palisade(t, "", server.env(), "findings", "explain", "4711", "--limit", "5")
	if got.status != exitOK {
		t.Fatalf("status %d: %s", got.status, got.err)
	}
	wantParts(t, got.out, "Finding 4711 on main: unresolved, ignored (false_positive), app/db.py:90", "rule py.sqli of opengrep",
		"Identity 68b34ca87f70c2a689a5327c66691a40, since scan 411 of main, 2026-05-04 10:20Z", "  shape    the shape of the matched lines",
		"Scan 412 of main, 2026-05-05 10:20Z: The scan joined its result", "from app/db.py:12 to app/db.py:90", "finding 4700 by line: its shape is another one",
		"finding 4711 by shape: chosen", "4712 on dev: fixed, ignored (false_positive), app/db.py:12", "split  token 1", `left\x1b]0;x`, "(undone 2026-05-06 10:20Z)")
	if last := server.requests[len(server.requests)-1]; last.URL.RawQuery != "limit=5" {
		t.Errorf("query %q", last.URL.RawQuery)
	}
	if got := palisade(t, "", server.env(), "findings", "explain", "4711", "-o", "json"); !strings.HasPrefix(got.out, "{") || got.status != exitOK {
		t.Errorf("json: %s %s", got.out, got.err)
	}
	for _, args := range [][]string{{"explain"}, {"explain", "x"}, {"merge", "4711"}, {"split", "-1"}, {"undo", "0"}, {"explain", "1", "-o", "csv"}, {"unknown"}} {
		if got := palisade(t, "", server.env(), append([]string{"findings"}, args...)...); got.status != exitError || !strings.Contains(got.err, "--help") {
			t.Errorf("%v: status %d: %s", args, got.status, got.err)
		}
	}
}

func TestFindingsMoveCategory(t *testing.T) {
	server := serveRecorded(t, map[string]string{
		deploymentsPath: oneDeployment,
		"POST " + identityBase + "identity-changes/move": `{"change":{"id":"17"},"movedCount":12,"decidedCount":3,"replacedCount":1,"previewToken":"sealed"}`,
	})
	move := []string{"findings", "move-category", "backend", "api", "--project", "acme/web", "--tool", "gosec"}
	for _, c := range []struct {
		what, answer string
		flags        []string
		bodies       []string
	}{
		{"a preview", "", []string{"--preview"}, []string{`"validateOnly":true`}},
		{"no", "n\n", nil, []string{`"validateOnly":true`}},
		{"yes", "", []string{"--yes", "--note", "renamed"}, []string{`"validateOnly":true`, `"previewToken":"sealed"`}},
	} {
		before := len(server.bodies)
		got := palisade(t, c.answer, server.env(), append(slices.Clone(move), c.flags...)...)
		if got.status != exitOK || got.out != "12 findings move, 3 of them with a decision. 1 findings are replaced.\n" {
			t.Errorf("%s: status %d: %s%s", c.what, got.status, got.out, got.err)
		}
		var sent []string
		for _, body := range server.bodies[before:] {
			if strings.Contains(string(body), "toCategory") {
				sent = append(sent, strings.ReplaceAll(string(body), `": "`, `":"`))
			}
		}
		if len(sent) != len(c.bodies) {
			t.Fatalf("%s: sent %q", c.what, sent)
		}
		for n, part := range c.bodies {
			if !strings.Contains(strings.ReplaceAll(sent[n], " ", ""), part) {
				t.Errorf("%s: sent %s, want %s", c.what, sent[n], part)
			}
		}
		if hint := strings.Contains(got.err, "palisade findings undo 17"); hint != (c.what == "yes") {
			t.Errorf("%s: %s", c.what, got.err)
		}
	}
	for _, args := range [][]string{{"move-category", "a", "b"}, {"move-category", "a", "--project", "p", "--tool", "t"}} {
		if got := palisade(t, "", server.env(), append([]string{"findings"}, args...)...); got.status != exitError {
			t.Errorf("%v: status %d: %s", args, got.status, got.err)
		}
	}
}

func TestFindingsMoveProduct(t *testing.T) {
	server := serveRecorded(t, map[string]string{
		deploymentsPath: oneDeployment,
		"POST " + identityBase + "identity-changes/move": `{"change":{"id":"17"},"movedCount":12,"decidedCount":3,"replacedCount":1,"previewToken":"sealed"}`,
	})
	move := []string{"findings", "move-product", "sast", "secrets", "--project", "acme/web", "--tool", "leaks"}
	got := palisade(t, "", server.env(), append(slices.Clone(move), "--category", "api", "--yes")...)
	if got.status != exitOK || got.out != "12 findings move, 3 of them with a decision. 1 findings are replaced.\n" || !strings.Contains(got.err, "palisade findings undo 17") {
		t.Errorf("status %d: %s%s", got.status, got.out, got.err)
	}
	sent := strings.ReplaceAll(string(server.bodies[len(server.bodies)-1]), " ", "")
	wantParts(t, sent, `"fromProduct":"sast"`, `"toProduct":"secrets"`, `"fromCategory":"api"`, `"toCategory":"api"`, `"previewToken":"sealed"`)
	got = palisade(t, "", server.env(), append(slices.Clone(move), "--preview")...)
	if last := string(server.bodies[len(server.bodies)-1]); got.status != exitOK || got.err != "" || strings.Contains(last, "sealed") || !strings.Contains(last, "validateOnly") {
		t.Errorf("a preview: status %d: %s, sent %s", got.status, got.err, last)
	}
	if got := palisade(t, "", server.env(), "findings", "move-product", "sast", "--project", "p", "--tool", "t"); got.status != exitError || !strings.Contains(got.err, "needs the two products") {
		t.Errorf("one product: status %d: %s", got.status, got.err)
	}
}

func TestFindingsSplitMergeUndo(t *testing.T) {
	server := serveRecorded(t, map[string]string{
		deploymentsPath: oneDeployment, "POST " + identityBase + "findings/4711/split": changed, "POST " + identityBase + "findings/4712/merge": changed,
		"POST " + identityBase + "identity-changes/17/undo": strings.Replace(changed, `"at":`, `"undoneAt":"2026-05-06T10:20:30.123456Z","at":`, 1),
	})
	for _, c := range []struct {
		args []string
		body string
		hint bool
	}{
		{[]string{"split", "4711", "--note", "beside it"}, `{"note":"beside it"}`, true},
		{[]string{"merge", "4712", "4711"}, `{"into":"4711","note":""}`, true},
		{[]string{"undo", "17"}, `{"note":""}`, false},
	} {
		got := palisade(t, "", server.env(), append([]string{"findings"}, c.args...)...)
		if got.status != exitOK || got.out != "4711 on main: fixed, ignored (false_positive), app/db.py:12\n" {
			t.Errorf("%v: status %d: %s%s", c.args, got.status, got.out, got.err)
		}
		if body := string(server.bodies[len(server.bodies)-1]); body != c.body {
			t.Errorf("%v sends %s, want %s", c.args, body, c.body)
		}
		if hint := strings.Contains(got.err, "palisade findings undo 17"); hint != c.hint {
			t.Errorf("%v says %q", c.args, got.err)
		}
	}
}

func TestIdentityChanges(t *testing.T) {
	server := serveRecorded(t, map[string]string{deploymentsPath: oneDeployment, "GET " + identityBase + "identity-changes": `{"changes":[` +
		`{"id":"17","projectId":"2","kind":"IDENTITY_CHANGE_KIND_MERGE","findingId":"4711","otherId":"4713","note":"same","actorKind":"user","actorId":"3","at":"2026-05-04T10:20:30.123456Z"}],"cursor":""}`})
	got := palisade(t, "", server.env(), "findings", "identity-changes", "--finding", "4711")
	if got.status != exitOK {
		t.Fatalf("status %d: %s", got.status, got.err)
	}
	wantParts(t, strings.Join(strings.Fields(got.out), " "), "17 merge 4711 4713 2 user 3 2026-05-04 - same")
	if last := server.requests[len(server.requests)-1]; last.URL.RawQuery != "findingId=4711&limit=100" {
		t.Errorf("query %q", last.URL.RawQuery)
	}
	got = palisade(t, "", server.env(), "findings", "identity-changes", "-o", "json")
	wantParts(t, got.out, `{"changes":[{"id":"17"`)
}
