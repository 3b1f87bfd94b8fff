package main

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// An auditor beside a running server: list, export, verify, and a database that somebody tampers with.
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
	tamper(t, dir, "UPDATE audit_entries SET actor_name = 'somebody else' WHERE sequence = 2")
	broken := palisade(t, "", store, "audit", "verify")
	wantParts(t, broken.out, "BROKEN  default: entry #2 was edited", "1 good entry")
	if broken.status != exitNo || broken.err != "" {
		t.Errorf("status %d %q, want %d and nothing said twice", broken.status, broken.err, exitNo)
	}
	tamper(t, dir, "DELETE FROM audit_entries")
	tamper(t, dir, "DELETE FROM audit_heads")
	wantParts(t, palisade(t, "", store, "audit", "verify").out, "OK      default: no entries yet")
	if got := palisade(t, "", store, known...); got.status != exitNo || !strings.Contains(got.out, "#1 to #2 are missing") {
		t.Errorf("a trail that is gone: %d %s%s", got.status, got.out, got.err)
	}
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
	wantParts(t, palisade(t, "", nil, "audit", "verify", "--help").out, "Exit status", "--known", "all of them without this flag")
}
