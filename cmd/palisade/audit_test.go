package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAuditCommands lists, exports and verifies the trail next to a running server, and verifies a tampered database.
func TestAuditCommands(t *testing.T) {
	dir := t.TempDir()
	client, store := startServer(t, dir), []string{"PALISADE_DATA=" + dir}
	if got := palisade(t, "", client, "upload", "testdata/gosec-pocketbase.sarif", "--project", "pocketbase/pocketbase", "--ref", "main", "--wait", "1m"); got.status != exitOK {
		t.Fatal(got.err)
	}
	wantParts(t, palisade(t, "", store, "audit", "verify").out, "OK      default\n", "1 good entry")
	if got := palisade(t, "", client, "upload", "testdata/gosec-pocketbase.sarif", "--project", "pocketbase/pocketbase", "--ref", "main"); got.status != exitOK {
		t.Fatal(got.err)
	}

	wantParts(t, palisade(t, "", store, "audit", "list").out, "TIME", "UploadReport", "scan:2", "bootstrap (token:1)", "OK")
	limited := palisade(t, "", store, "audit", "list", "--limit", "1")
	if limited.status != exitMore {
		t.Errorf("status %d", limited.status)
	}
	wantParts(t, limited.err, "more than 1")
	if strings.Contains(limited.out, "scan:1") {
		t.Errorf("the older one is shown:\n%s", limited.out)
	}
	if got := palisade(t, "", store, "audit", "list", "--object", "scan:1", "--since", "7d"); strings.Contains(got.out, "scan:2") || !strings.Contains(got.out, "scan:1") {
		t.Errorf("one scan: %s%s", got.out, got.err)
	}
	if got := palisade(t, "", store, "audit", "list", "--until", "7d"); strings.Contains(got.out, "scan:") {
		t.Errorf("nothing is that old: %s%s", got.out, got.err)
	}

	lines := strings.Split(strings.TrimSpace(palisade(t, "", store, "audit", "export", "--method", "UploadReport").out), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
	for i, line := range lines {
		var entry struct {
			Sequence string
			Changes  []struct{ After map[string]any }
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Sequence != string(rune('1'+i)) || len(entry.Changes) != 1 {
			t.Errorf("line %d (%v): %s", i+1, err, line)
		}
	}

	end := regexp.MustCompile(`last good entry: (\S+)`).FindStringSubmatch(palisade(t, "", store, "audit", "verify").out)
	known := []string{"audit", "verify", "--deployment", "default", "--known", end[1]}
	if got := palisade(t, "", store, known...); got.status != exitOK {
		t.Errorf("the end that was printed is not known: %s%s", got.out, got.err)
	}
	for _, edit := range []struct{ set, undo, said string }{
		{"audit_entries SET sequence = 2.5 WHERE sequence = 2", "audit_entries SET sequence = 2 WHERE sequence = 2.5", "default: entry #2.5 was edited"},
		{"audit_entries SET deployment_id = 1.5 WHERE sequence = 2", "audit_entries SET deployment_id = 1", "(none): 1 rows of the trails belong to no deployment"},
		{"audit_heads SET deployment_id = 1.5", "audit_heads SET deployment_id = 1", "default: the head of the trail was removed"},
		{"audit_heads SET sequence = 2.5", "audit_heads SET sequence = 2", "default: the head of the trail was edited"},
	} {
		tamper(t, dir, "UPDATE "+edit.set)
		got := palisade(t, "", store, "audit", "verify")
		if wantParts(t, got.out, "BROKEN  "+edit.said); got.status != exitNo {
			t.Errorf("%s: status %d %s", edit.set, got.status, got.err)
		}
		tamper(t, dir, "UPDATE "+edit.undo)
	}
	if got := palisade(t, "", store, "audit", "verify"); got.status != exitOK {
		t.Errorf("after the undo of all edits: %s%s", got.out, got.err)
	}
	tamper(t, dir, "UPDATE audit_entries SET actor_name = 'somebody else' WHERE sequence = 2")
	broken := palisade(t, "", store, "audit", "verify")
	wantParts(t, broken.out, "BROKEN  default: entry #2 was edited", "1 good entry")
	if broken.status != exitNo || broken.err != "" {
		t.Errorf("status %d %q, want %d and nothing said twice", broken.status, broken.err, exitNo)
	}
	tamper(t, dir, "DELETE FROM audit_entries")
	tamper(t, dir, "DELETE FROM audit_heads")
	gone := palisade(t, "", store, "audit", "verify")
	wantParts(t, gone.out, "BROKEN  default: the head of the trail was removed", "BROKEN  default: the origin of the trail")
	if gone.status != exitNo {
		t.Errorf("a trail that is gone: status %d", gone.status)
	}
}

// TestAuditOutsideComparison: anchors reveal what the database alone does not.
func TestAuditOutsideComparison(t *testing.T) {
	dir := t.TempDir()
	client, store := startReadyServer(t, dir), []string{"PALISADE_DATA=" + dir}
	verify := func(want int, parts []string, args ...string) {
		t.Helper()
		got := palisade(t, "", store, append([]string{"audit", "verify"}, args...)...)
		if got.status != want {
			t.Errorf("%v: status %d, want %d: %s%s", args, got.status, want, got.out, got.err)
		}
		wantParts(t, got.out, parts...)
	}
	upload := func() {
		t.Helper()
		if got := palisade(t, "", client, "upload", "testdata/gosec-pocketbase.sarif", "--project", "pocketbase/pocketbase", "--ref", "main", "--wait", "1m"); got.status != exitOK {
			t.Fatal(got.err)
		}
	}
	verify(exitOK, []string{"OK      default: no entries yet", "complete since the creation of the deployment"})
	verify(exitError, nil, "--known", os.DevNull) // without anything to compare with there is no proof
	tamper(t, dir, "CREATE TABLE heads_before AS SELECT * FROM audit_heads")
	empty := palisade(t, "", store, "audit", "anchor")
	upload()
	upload()
	line := palisade(t, "", store, "audit", "anchor").out
	wantParts(t, line, `{"deployment":"default","deployment_id":1,"sequence":2,"hash":"`, `"mac":"`)
	file := filepath.Join(t.TempDir(), "anchors.ndjson")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(empty.out + line)
	upload()
	verify(exitOK, []string{"OK      default\n", "compared with 1 anchor"}, "--known", file)
	store = append(store, "PALISADE_AUDIT_ANCHOR=file://"+file)
	verify(exitOK, []string{"compared with 1 anchor"})
	write(strings.Replace(line, `"sequence":2`, `"sequence":1`, 1))
	verify(exitNo, []string{"BROKEN  default: line 1 of", "was not written by this server"})
	write("no anchor\n")
	verify(exitError, nil)

	write(line)
	tamper(t, dir, "CREATE TABLE entries_before AS SELECT * FROM audit_entries")
	tamper(t, dir, "DELETE FROM audit_entries")
	tamper(t, dir, "DELETE FROM audit_heads")
	tamper(t, dir, "INSERT INTO audit_heads SELECT * FROM heads_before")
	verify(exitNo, []string{"BROKEN  default: entries #1 to #2 are missing although #2 is known"})
	store = store[:1]
	verify(exitOK, []string{"no entries yet"}) // not visible in the database alone
	tamper(t, dir, "INSERT INTO audit_entries (deployment_id, actor_kind, actor_id, method, code, request, request_id, remote, at) VALUES (1, 'user', 1, '/forged', 'OK', '{}', 'r', '', 1)")
	verify(exitNo, []string{"BROKEN  default: 1 entries without a place in the trail were added"})
	for _, command := range []string{"list", "export"} {
		got := palisade(t, "", store, "audit", command)
		if strings.Contains(got.out, "forged") {
			t.Errorf("a forged entry is shown:\n%s", got.out)
		}
		wantParts(t, got.err, "1 entry is left out", "palisade audit verify")
	}
	tamper(t, dir, "DELETE FROM settings WHERE name = 'audit_key'")
	verify(exitNo, []string{"BROKEN  default: the key of the audit trail is missing"})
	wantParts(t, palisade(t, "", store, "audit", "begin").out, "Nothing to do")
	tamper(t, dir, "DELETE FROM audit_heads")
	wantParts(t, palisade(t, "", store, "audit", "begin").out, "default: the trail now has an origin")
	verify(exitOK, []string{"the deployment is older", "1 entry from before the chain"})
	verify(exitNo, []string{"line 1 of"}, "--known", file)
	tamper(t, dir, "DELETE FROM deployments")
	verify(exitNo, []string{"BROKEN  deployment 1 (deleted): the deployment itself was removed"})
	tamper(t, dir, "DELETE FROM audit_heads")
	tamper(t, dir, "DELETE FROM audit_entries")
	verify(exitNo, []string{"BROKEN  (all): there is no deployment"})
}

func tamper(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(dir, "palisade.db")+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestAuditUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"audit", "check"}, []string{`unknown command "check"`, "palisade audit --help"}},
		{[]string{"audit", "verify", "--known", "3:ab"}, []string{"--known", `"3:ab"`, "64 hexadecimal digits"}},
		{[]string{"audit", "verify", "--known", "3:" + strings.Repeat("ab", 32)}, []string{"--deployment"}},
		{[]string{"audit", "list", "--since", "yesterday"}, []string{"--since", `"yesterday"`, "7d"}},
		{[]string{"audit", "export", "--until", "tomorrow"}, []string{"--until", `"tomorrow"`}},
		{[]string{"audit", "list", "--object", ":7"}, []string{"--object", "project:7"}},
		{[]string{"audit", "list", "--limit", "0"}, []string{"--limit", "at least 1"}},
		{[]string{"audit", "list"}, []string{"palisade serve"}},
		{[]string{"audit", "verify"}, []string{"palisade serve"}},
	} {
		got := palisade(t, "", []string{"PALISADE_DATA=" + t.TempDir()}, c.args...)
		if got.status != exitError {
			t.Errorf("%v: status %d", c.args, got.status)
		}
		wantParts(t, got.err, c.want...)
	}
	wantParts(t, palisade(t, "", nil, "audit").out, "verify", "list", "export", "chain")
	wantParts(t, palisade(t, "", nil, "audit", "verify", "--help").out, "Exit status", "--known", "all deployments without this flag")
}
