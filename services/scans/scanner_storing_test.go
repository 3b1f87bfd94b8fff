package scans_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/ent/scanpayload"
	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/scans/scanner"
)

// blockStoring makes the results of a scan impossible to store until the returned function is called.
func (c scannerClient) blockStoring(t testing.TB, id int64) (release func()) {
	t.Helper()
	ctx := tenant.NewContext(t.Context(), c.DeploymentID)
	const behind = 1 << 19
	err := c.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.ScanPayload.Create().SetDeploymentID(c.DeploymentID).SetScanID(id).SetPosition(behind).SetContent([]byte("no frame")).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		err := c.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.ScanPayload.Delete().Where(scanpayload.ScanID(id), scanpayload.Position(behind)).Exec(ctx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestScannerPollsUntilStored(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.CompleteWait = 0 })
		c := newScanner(s)
		id := c.create(t)
		release := c.blockStoring(t, id)
		task := c.results(t, id, recorded(t, "results"))
		body := recorded(t, "complete", with(task, "task_id"))
		for range 2 {
			if answer := c.ok(t, http.MethodPost, completePath(id), body); answer["success"] != false || answer["task_id"] != task {
				t.Errorf("%v", answer)
			}
		}
		shown := parsed(t, s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/scan/%d", s.DeploymentID, id)))
		if at(shown, "completed_at") != nil || at(shown, "exit_code") != 1.0 {
			t.Errorf("%v", shown)
		}
		if again := c.results(t, id, recorded(t, "results")); again != task {
			t.Errorf("another task while it waits: %s", again)
		}
		release()
		c.complete(t, id, task)
		wantList(t, "findings", c.findingsOf(t, mainRef), allFound...)
	})
}

// TestScannerGivesUp: results that cannot be stored fail in the end, and the scanner gets the error.
func TestScannerGivesUp(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.CompleteWait = 0 })
		c := newScanner(s)
		id := c.create(t)
		c.blockStoring(t, id)
		c.results(t, id, recorded(t, "results"))
		c.ok(t, http.MethodPost, completePath(id), recorded(t, "complete"))
		_, writer := s.Store.DB()
		apitest.Eventually(t, "the last attempt fails", func() bool {
			_, err := writer.ExecContext(t.Context(), "UPDATE river_job SET max_attempts = attempt + 1 WHERE kind = 'store_scan_results' AND state = 'retryable' AND max_attempts > 3")
			if err != nil {
				t.Fatal(err)
			}
			return s.Store.Reader.Scan.GetX(s.System(t), id).ResultsState == "failed"
		})
		if row := s.Store.Reader.Scan.GetX(s.System(t), id); row.Status != "SCAN_STATUS_ERROR" || s.Store.Reader.Finding.Query().CountX(s.System(t)) != 0 {
			t.Errorf("%v", row)
		}
		c.refused(t, 409, http.MethodPost, completePath(id), recorded(t, "complete"), "could not be stored")
		if answer := c.ok(t, http.MethodPost, resultsPath(id), recorded(t, "results")); !strings.Contains(fmt.Sprint(answer["errors"]), "could not be stored") {
			t.Errorf("%v", answer)
		}
	})
}

func TestScannerEndsWithoutResults(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		id := c.create(t)
		if answer := c.ok(t, http.MethodPost, completePath(id), recorded(t, "complete")); answer["success"] != false {
			t.Errorf("%v", answer)
		}
		for range 2 {
			if answer := c.ok(t, http.MethodPost, completePath(id), recorded(t, "complete", with(true, "final_attempt"))); answer["success"] != true {
				t.Errorf("%v", answer)
			}
		}
		if row := s.Store.Reader.Scan.GetX(s.System(t), id); row.Status != "SCAN_STATUS_ERROR" || row.ExitCode != 1 {
			t.Errorf("%v", row)
		}
		c.refused(t, 409, http.MethodPost, resultsPath(id), recorded(t, "results"), "takes no results")
	})
}

func TestScannerSupplyChain(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.CompleteWait = 0 })
		c := newScanner(s)
		c.scan(t, recorded(t, "sca"))
		var got []string
		for _, f := range s.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).AllX(s.System(t)) {
			content := contentOf(t, f)
			fixes := ""
			for _, fix := range content.GetFixRecommendations() {
				fixes += " " + fix.GetPackage() + "@" + fix.GetVersion()
			}
			got = append(got, fmt.Sprint(f.IssueType, " ", f.Severity, " ", value(f.Package), "@", content.GetFoundDependency().GetVersion(), " ", value(f.Transitivity), " ", value(f.Exposure), " ", value(f.Advisory), fixes))
		}
		wantList(t, "findings", got,
			"sca critical minimist@1.2.5 transitive always_reachable CVE-2021-44906 minimist@0.2.4 minimist@1.2.6",
			"sca high pyyaml@5.3 direct reachable CVE-2020-14343",
			"sca medium jinja2@3.0.0 unknown unreachable CVE-2024-22195",
			"sca low six@0.9 direct unknown SSC-4")
		dependencies := func() (list []string) {
			for _, d := range s.Store.Reader.Dependency.Query().Order(ent.Asc(dependency.FieldLockfile, dependency.FieldPackage)).AllX(s.System(t)) {
				list = append(list, d.Lockfile+" "+d.Package+"@"+d.Version+" "+d.Transitivity)
			}
			return list
		}
		want := []string{"api/requirements.txt jinja2@3.0.0 unknown", "api/requirements.txt pyyaml@5.3 direct", "web/package-lock.json left-pad@1.3.0 direct", "web/package-lock.json minimist@1.2.5 transitive"}
		wantList(t, "dependencies", dependencies(), want...)
		smaller := with(object{"api/requirements.txt": []any{}}, "dependencies")
		c.scan(t, recorded(t, "sca", smaller), pull)
		wantList(t, "a diff scan replaces none", dependencies(), want...)
		c.scan(t, recorded(t, "results"))
		wantList(t, "a scan that did not look replaces none", dependencies(), want...)
		c.scan(t, recorded(t, "sca", smaller, with([]any{"web"}, "skipped_subprojects")))
		wantList(t, "what was not resolved stays", dependencies(), want[2:]...)
		c.scan(t, recorded(t, "sca", with([]any{}, "findings"), with(nil, "dependencies"), with([]any{object{"info": object{"root_dir": "web"}}}, "skipped_subprojects")))
		wantList(t, "its findings, too", c.findingsOf(t, mainRef)[:4], "web/package-lock.json:30 unresolved open", "api/app.py:3 fixed fixed",
			"api/requirements.txt:1 fixed fixed", "api/requirements.txt:4 fixed fixed")
		c.scan(t, recorded(t, "sca", with(object{}, "dependencies")))
		wantList(t, "no lockfile is left", dependencies())
		late := object{"go.mod": []any{object{"package": "rsc.io/quote", "version": "1.5.2", "ecosystem": "gomod", "transitivity": "direct"}}}
		for _, stored := range []bool{false, true} { // older scanners send them at the end
			id := c.create(t)
			release := func() {}
			if !stored {
				release = c.blockStoring(t, id)
			}
			task := c.results(t, id, recorded(t, "sca", with(nil, "dependencies")))
			if stored {
				neverCompleted(t, c, id, task)
			}
			c.ok(t, http.MethodPost, completePath(id), recorded(t, "complete", with(late, "dependencies")))
			release()
			c.complete(t, id, task)
			wantList(t, fmt.Sprintf("sent at the end, results stored: %v", stored), dependencies(), "go.mod rsc.io/quote@1.5.2 direct")
			late = object{"go.mod": late["go.mod"], "empty.lock": []any{}}
		}
	})
}

func TestScannerSecrets(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.scan(t, recorded(t, "secrets"))
		var got []string
		for _, f := range s.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).AllX(s.System(t)) {
			content := contentOf(t, f)
			got = append(got, fmt.Sprint(f.IssueType, " ", f.Severity, " ", value(f.ValidationState), " ", f.Historical != nil, " ", content.GetHistoricalCommit(), " ", content.GetMessage()))
		}
		wantList(t, "secrets", got, "secrets critical confirmed_valid false  AWS key [redacted] is in the code",
			"secrets critical confirmed_invalid true 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567 AWS key [redacted] is in the code",
			"secrets medium validation_error false  A key", "secrets medium no_validator false  A key")
		if listed := s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/secrets", s.DeploymentID)); !strings.Contains(listed, "VALIDATION_STATE_CONFIRMED_VALID") || strings.Contains(listed, "CANARY") {
			t.Errorf("%s", listed)
		}
	})
}

// TestScannerBlocking: a remediation policy makes the scanner fail for open findings, except for findings of monitored
// rules. Ignored findings do not count, and the scanner gets their ids.
func TestScannerBlocking(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.block(t, &policiesv1.RemediationPolicy{
			Slug: "no-eval", Name: "No eval", Active: true,
			Filters: &policiesv1.RemediationPolicyFilters{Mode: "all", Conditions: []*policiesv1.RemediationPolicyCondition{{Type: "severity", Values: []string{"high", "medium"}, Mode: "include"}}},
			Actions: []*policiesv1.RemediationPolicyAction{{Type: "block", Config: map[string]string{"reason": "ask security"}}},
		})
		eval := "e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1"
		_, answer := c.scan(t, recorded(t, "results"))
		if answer["app_block_override"] != true || !strings.Contains(fmt.Sprint(answer["app_block_reason"]), "No eval") || fmt.Sprint(answer["app_blocking_match_based_ids"]) != "["+eval+"_0 "+eval+"_1]" {
			t.Errorf("%v", answer)
		}
		first := s.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).FirstX(s.System(t))
		triage := fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":"ignored","new_triage_reason":"false_positive"}`, first.ID)
		if answer := s.Do(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage", triage); answer.Status != 200 {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		config := at(c.ok(t, http.MethodPost, cliScans, recorded(t, "create_1.97", with(uuid.NewString(), "scan_metadata", "unique_id"), pull)), "config")
		if fmt.Sprint(at(config, "triage_ignored_match_based_ids")) != "["+eval+"_0]" || fmt.Sprint(at(config, "triage_ignored_syntactic_ids")) != "["+strings.Repeat("a1", 16)+"]" {
			t.Errorf("%v %v", at(config, "triage_ignored_match_based_ids"), at(config, "triage_ignored_syntactic_ids"))
		}
		if _, answer := c.scan(t, recorded(t, "results")); fmt.Sprint(answer["app_blocking_match_based_ids"]) != "["+eval+"_1]" {
			t.Errorf("%v", answer)
		}
	})
}

// block stores a remediation policy.
func (c scannerClient) block(t testing.TB, policy *policiesv1.RemediationPolicy) {
	t.Helper()
	content, err := proto.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Store.Write(tenant.NewContext(t.Context(), c.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		return tx.RemediationPolicy.Create().SetDeploymentID(c.DeploymentID).SetSlug(policy.GetSlug()).SetPosition(0).SetActive(policy.GetActive()).
			SetContent(content).SetCreatedAt(store.Now()).SetUpdatedAt(store.Now()).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestScannerCredentialsAreNowhere: tokens and secrets that a scanner sends are in no answer, log, table or file.
func TestScannerCredentialsAreNowhere(t *testing.T) {
	for name, database := range map[string]func(*testing.T) string{
		"sqlite": func(*testing.T) string { return "" }, "postgres": func(t *testing.T) string { return storetest.Postgres(t) },
	} {
		if !testrun.On(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			log, places := &logRecorder{TB: t}, map[string][]byte{}
			t.Run("server", func(t *testing.T) {
				url := database(t)
				log.TB = t
				c := newScanner(apitest.Start(log, func(c *config.Config) { c.Database, c.LogLevel = url, "debug" }))
				c.sendCredentials(t, places)
				readTables(t, c.Server, places)
				readFiles(t, c.Config.Data, places)
			})
			places["log"] = log.bytes()
			if len(places["log"]) == 0 || len(places["table findings"]) == 0 || len(places["payload"]) == 0 {
				t.Fatal("something was not recorded")
			}
			for place, content := range places {
				if at := bytes.Index(bytes.ToUpper(content), []byte("CANARY")); at >= 0 {
					t.Errorf("a credential is in %s: …%q…", place, content[max(0, at-80):min(len(content), at+40)])
				}
			}
		})
	}
}

// sendCredentials sends them everywhere scanners do, and collects the answers and the spooled data.
func (c scannerClient) sendCredentials(t *testing.T, places map[string][]byte) {
	t.Helper()
	note := func(answer apitest.Answer) {
		places["answers"] = fmt.Append(places["answers"], answer.Status, answer.Header, answer.Body)
	}
	body := recorded(t, "create_1.97", with(uuid.NewString(), "scan_metadata", "unique_id"), with("https://oauth2:ghs_CANARYcanary@github.com/acme/web", "project_metadata", "repo_url"))
	created := c.send(t, http.MethodPost, cliScans, body)
	note(created)
	note(c.send(t, http.MethodPost, cliScans, body[:len(body)-1]))
	id := int64(at(parsed(t, created.Body), "info", "id").(float64))
	release := c.blockStoring(t, id)
	results := recorded(t, "secrets", with("ghs_CANARYcanaryCANARYcanaryCANARYcanary1", "token"))
	note(c.send(t, http.MethodPost, resultsPath(id), results[:len(results)-1]))
	note(c.send(t, http.MethodPost, resultsPath(id), results))
	var stored []byte
	for _, row := range c.Store.Reader.ScanPayload.Query().Where(scanpayload.ScanID(id), scanpayload.PositionLT(1000)).Order(ent.Asc(scanpayload.FieldPosition)).AllX(c.System(t)) {
		stored = append(stored, row.Content...)
	}
	err := scanner.Read(bytes.NewReader(stored), func(f *storev1.ScannerFrame) error {
		places["payload"] = append(places["payload"], prototext.Format(f)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	readTables(t, c.Server, places)
	release()
	note(c.send(t, http.MethodPost, errorPath(c.create(t)), `{"exit_code":2,"stderr":"token ghs_CANARYcanary"}`))
	note(c.send(t, http.MethodPost, completePath(id), recorded(t, "complete", with("ghs_CANARYcanary", "token"), with("ghs_CANARYcanary", "stats", "token"))))
	c.complete(t, id, "")
}

// readTables reads every row of every table.
func readTables(t *testing.T, s *apitest.Server, places map[string][]byte) {
	t.Helper()
	reader, _ := s.Store.DB()
	names := []string{"river_job"}
	for _, table := range migrate.Tables {
		names = append(names, table.Name)
	}
	for _, name := range names {
		rows, err := reader.QueryContext(t.Context(), "SELECT * FROM "+name)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		for rows.Next() {
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			for _, v := range values {
				places["table "+name] = fmt.Appendf(places["table "+name], "%s|", *(v.(*any)))
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func readFiles(t *testing.T, dir string, places map[string][]byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		places["file "+entry.Name()], err = io.ReadAll(file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// logRecorder keeps what the server logs.
type logRecorder struct {
	testing.TB
	mu   sync.Mutex
	text []byte
}

func (r *logRecorder) Log(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = fmt.Appendln(r.text, args...)
}

func (r *logRecorder) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text
}
