package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// load uploads reports and triages findings, until its context ends or it has done its share.
type load struct {
	url string
	// projects have an acknowledged upload; triaged ones also have an acknowledged triage.
	mu                sync.Mutex
	projects, triaged map[string]bool
	wrote             atomic.Int64
}

const resultsOfLoad = 5

func (l *load) run(ctx context.Context, t *testing.T, worker, most int) {
	for i := range most {
		project := fmt.Sprintf("load/%d-%d", worker, i)
		var results []string
		for n := range resultsOfLoad {
			results = append(results, fmt.Sprintf(`{"ruleId":"L1","message":{"text":"hit %d"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a%d.go"},"region":{"startLine":%d,"snippet":{"text":"f%d()"}}}}]}`, n, n, n+1, n))
		}
		report := `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"load","rules":[{"id":"L1"}]}},"results":[` + strings.Join(results, ",") + `]}]}`
		if !l.post(ctx, t, "/api/v1/deployments/default/reports?ref=main&project="+project, report) {
			return
		}
		l.note(l.projects, project)
		triage := `{"issue_type":"sast","repos":["` + project + `"],"new_triage_state":"ignored","new_triage_reason":"no_time"}`
		if !l.post(ctx, t, "/api/v1/deployments/default/triage", triage) {
			return
		}
		l.note(l.triaged, project)
	}
}

func (l *load) note(in map[string]bool, project string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in[project] = true
	l.wrote.Add(1)
}

// acknowledged returns what the server has acknowledged so far.
func (l *load) acknowledged() (projects, triaged []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for project := range l.projects {
		projects = append(projects, project)
	}
	for project := range l.triaged {
		triaged = append(triaged, project)
	}
	return projects, triaged
}

func (l *load) post(ctx context.Context, t *testing.T, path, body string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return false
	}
	request.Header.Set("Authorization", "Bearer "+testToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if ctx.Err() == nil {
			t.Error(err)
		}
		return false
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s: %d %s", path, response.StatusCode, text)
	}
	return response.StatusCode == http.StatusOK
}

// TestBackupUnderLoad: a backup during writes contains everything that was acknowledged before it began, and no partial
// transaction.
func TestBackupUnderLoad(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	const backups = 5
	files, file := t.TempDir(), ""
	client := startReadyServer(t, dir)
	l := &load{url: strings.TrimPrefix(client[0], "PALISADE_URL="), projects: map[string]bool{}, triaged: map[string]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	warm := make(chan struct{})
	for worker := range 3 {
		workers.Go(func() {
			l.run(ctx, t, worker, 4)
			if worker == 0 {
				close(warm)
			}
			l.run(ctx, t, worker+10, 150)
		})
	}
	<-warm
	var projects, triaged []string
	for i := range backups {
		file = filepath.Join(files, fmt.Sprintf("%d.db", i))
		projects, triaged = l.acknowledged()
		before := l.wrote.Load()
		made := palisade(t, "", []string{"PALISADE_DATA=" + dir}, "backup", "--to", file)
		t.Logf("%d writes before the backup, %d during it", before, l.wrote.Load()-before)
		if made.status != exitOK {
			t.Fatalf("backup: %s", made.err)
		}
		wantParts(t, made.out, file, "bytes", "findings")
		wantParts(t, made.err, filepath.Join(dir, "palisade.key"), "does not contain the key file")
		checkRestored(t, file, projects, triaged)
	}
	stop()
	workers.Wait()

	again := palisade(t, "", []string{"PALISADE_DATA=" + dir}, "backup", "--to", file)
	if again.status != exitError {
		t.Error("a backup was replaced")
	}
	wantParts(t, again.err, file, "exists")

	restore(t, dir, other, file)
	checkRestored(t, filepath.Join(other, "palisade.db"), projects, triaged)
	wantTamperedRefused(t, other, file)
	restored := startReadyServer(t, other)
	got := palisade(t, "", restored, "findings", "--repos", projects[0], "-o", "json")
	var answer struct{ Findings []json.RawMessage }
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil || len(answer.Findings) != resultsOfLoad {
		t.Errorf("%d findings of %s, %v: %s", len(answer.Findings), projects[0], err, got.err)
	}
	refused := palisade(t, "", []string{"PALISADE_DATA=" + other}, "restore", "--from", file, "--force")
	if refused.status != exitError {
		t.Error("restored under a running server")
	}
	wantParts(t, refused.err, "in use", "stop")
}

// restore also tries restores that must be refused.
func restore(t *testing.T, dir, other, file string) {
	t.Helper()
	environ := []string{"PALISADE_DATA=" + other}
	missing := palisade(t, "", environ, "restore", "--from", file)
	if missing.status != exitError {
		t.Error("restored without the key")
	}
	wantParts(t, missing.err, "key")
	if entries, err := os.ReadDir(other); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "palisade.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "palisade.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	first := palisade(t, "", environ, "restore", "--from", file)
	if first.status != exitOK {
		t.Fatalf("restore: %s", first.err)
	}
	wantParts(t, first.out, "OK", "default", "good entr", "findings")
	second := palisade(t, "", environ, "restore", "--from", file)
	if second.status != exitError {
		t.Error("replaced a database without --force")
	}
	wantParts(t, second.err, "--force")
	forced := palisade(t, "", environ, "restore", "--from", file, "--force", "-o", "json")
	var report struct {
		Restored bool
		Kept     string
	}
	if err := json.Unmarshal([]byte(forced.out), &report); err != nil || !report.Restored || forced.status != exitOK {
		t.Fatalf("restore --force: %v %s %s", err, forced.out, forced.err)
	}
	if _, err := os.Stat(report.Kept); err != nil {
		t.Error(err)
	}
}

// wantTamperedRefused changes the audit trail of a backup.
func wantTamperedRefused(t *testing.T, dir, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tampered := filepath.Join(t.TempDir(), "tampered.db")
	if err := os.WriteFile(tampered, content, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", "file:"+tampered)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("DELETE FROM audit_entries WHERE id = (SELECT MAX(id) / 2 FROM audit_entries)")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	got := palisade(t, "", []string{"PALISADE_DATA=" + dir}, "restore", "--from", tampered, "--force")
	if got.status != exitNo {
		t.Errorf("status %d", got.status)
	}
	wantParts(t, got.out+got.err, "BROKEN", "nothing was restored", "--accept-broken-audit")
}

// checkRestored reads the tables: each upload and each triage decision is complete or absent.
func checkRestored(t *testing.T, path string, projects, triaged []string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity: %s %v", verdict, err)
	}
	found, decided := map[string]int{}, map[string]int{}
	rows, err := db.Query("SELECT p.name, COUNT(*), SUM(f.triage_state = 'ignored') FROM findings f JOIN projects p ON p.id = f.project_id GROUP BY p.name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var all, ignored int
		if err := rows.Scan(&name, &all, &ignored); err != nil {
			t.Fatal(err)
		}
		found[name], decided[name] = all, ignored
		if all != resultsOfLoad || ignored != 0 && ignored != resultsOfLoad {
			t.Errorf("%s: %d findings, %d of them ignored: half a transaction", name, all, ignored)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, project := range projects {
		if found[project] == 0 {
			t.Errorf("the upload to %s was acknowledged before the backup and is not in it", project)
		}
	}
	for _, project := range triaged {
		if decided[project] == 0 {
			t.Errorf("the decision about %s was acknowledged before the backup and is not in it", project)
		}
	}
	var events int
	if err := db.QueryRow("SELECT COUNT(*) FROM findings f WHERE NOT EXISTS (SELECT 1 FROM finding_events e WHERE e.finding_id = f.id)").Scan(&events); err != nil || events != 0 {
		t.Errorf("%d findings without an event, %v", events, err)
	}
}

func TestRestoreRefusesDamage(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if got := palisade(t, "", []string{"PALISADE_DATA=" + dir}, "migrate", "up"); got.status != exitOK {
		t.Fatal(got.err)
	}
	file := filepath.Join(t.TempDir(), "empty.db")
	if got := palisade(t, "", []string{"PALISADE_DATA=" + dir}, "backup", "--to", file); got.status != exitOK {
		t.Fatal(got.err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file string
		want string
	}{
		"no database": {write("x.db", []byte("hello")), "is not a Palisade database"},
		"cut off":     {write("x.db", whole[:len(whole)/2]), "x.db"},
		"absent":      {"/nowhere/x.db", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			target := t.TempDir()
			made := filepath.Join(target, "new") // created by this command, and removed again
			got := palisade(t, "", []string{"PALISADE_DATA=" + made}, "restore", "--from", c.file)
			if got.status != exitError {
				t.Errorf("status %d: %s", got.status, got.out)
			}
			wantParts(t, got.err, c.want)
			if entries, err := os.ReadDir(target); err != nil || len(entries) > 0 {
				t.Errorf("left behind: %v %v", entries, err)
			}
		})
	}
}

func TestBackupOnPostgresNamesItsTools(t *testing.T) {
	environ := []string{"PALISADE_DATABASE=postgres://palisade:hidden@db:5433/app"}
	for _, args := range [][]string{{"backup", "--to", "/b/a b.dump"}, {"restore", "--from", "/b/a b.dump"}} {
		got := palisade(t, "", environ, args...)
		if got.status != exitError || strings.Contains(got.err, "hidden") {
			t.Errorf("status %d: %s", got.status, got.err)
		}
		wantParts(t, got.err, "pg_dump --format=custom --no-owner --file='/b/a b.dump' 'postgres://palisade@db:5433/app'", "pg_restore", "PITR", "palisade audit verify")
	}
	// The connection settings are kept, but no secrets and no parameters that only Palisade's driver knows.
	environ = []string{"PALISADE_DATABASE=postgres://palisade:hidden@[::1]:5433/app?sslmode=verify-full&default_query_exec_mode=exec&sslpassword=hidden"}
	got := palisade(t, "", environ, "backup", "--to", "a.dump")
	if got.status != exitError || strings.Contains(got.err, "hidden") {
		t.Errorf("status %d: %s", got.status, got.err)
	}
	wantParts(t, got.err, "'postgres://palisade@[::1]:5433/app?sslmode=verify-full'")
}

func TestCopyUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"migrate", "copy"}, []string{`"from"`, `"to"`}},
		{[]string{"migrate", "copy", "--from", "mysql://u:secret@h/x", "--to", "sqlite:x"}, []string{"--from", `"mysql:…"`, "sqlite:PATH"}},
		{[]string{"migrate", "copy", "--from", "sqlite:/nowhere/x.db", "--to", "postgres://h/x"}, []string{"/nowhere/x.db"}},
		{[]string{"migrate", "copy", "--from", "sqlite:x", "--to", "sqlite:y"}, []string{"palisade backup"}},
		{[]string{"migrate", "copy", "--from", "postgres://u:secret@h/x", "--to", "postgres://h/y"}, []string{"pg_dump"}},
	} {
		got := palisade(t, "", nil, c.args...)
		if got.status != exitError || strings.Contains(got.err, "secret") {
			t.Errorf("%v: status %d: %s", c.args, got.status, got.err)
		}
		wantParts(t, got.err, c.want...)
	}
	for _, args := range []string{"migrate copy", "backup", "restore"} {
		got := palisade(t, "", nil, append(strings.Fields(args), "--help")...)
		if got.status != exitOK {
			t.Errorf("%s: status %d", args, got.status)
		}
		wantParts(t, got.out, "Examples:", "palisade "+args, "Exit status:")
	}
}
