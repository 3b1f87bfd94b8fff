package scans_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

const (
	mainRef  = "refs/heads/main"
	pullRef  = "refs/pull/7/merge"
	cliScans = "/api/cli/scans"
	cliV2    = "/api/cli/v2/scans"
)

func contentOf(t testing.TB, f *ent.Finding) *storev1.FindingContent {
	t.Helper()
	content, err := blob.Decode(f.Content)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// allFound has the findings of results.json on main.
var allFound = []string{"app/run.py:12 unresolved open", "app/run.py:20 unresolved open", "lib/hash.py:4 unresolved open", "lib/old.py:7 muted ignored"}

func TestScannerFullScan(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		id, answer := c.scan(t, recorded(t, "results"))
		if answer["app_block_override"] != false || answer["app_block_reason"] != "" {
			t.Errorf("nothing blocks without a policy: %v", answer)
		}
		wantList(t, "findings", c.findingsOf(t, mainRef), allFound...)
		rows := s.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).AllX(s.System(t))
		first, content := rows[0], contentOf(t, rows[0])
		if first.Severity != "high" || value(first.PolicyMode) != "rule-board-block" || content.GetMatchBasedId() != "e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1_0" ||
			content.GetSyntacticId() != strings.Repeat("a1", 16) || !content.GetIsBlocking() || len(content.GetFixedLines()) != 1 || len(content.GetDataflowTrace()) == 0 ||
			content.GetPatternHash() != "13" || content.GetEngineKind() != "OSS" || content.GetCommit() == "" {
			t.Errorf("%v\n%v", first, content)
		}
		if rows[2].Severity != "medium" || value(rows[2].PolicyMode) != "rule-board-audit" || contentOf(t, rows[3]).GetSuppressionReason() != "ignored via nosemgrep" {
			t.Errorf("%v", rows[2:])
		}
		row := s.Store.Reader.Scan.GetX(s.System(t), id)
		if row.ExitCode != 1 || row.TotalCount != 4 || row.CodeCount != 4 || row.ResultsState != "stored" || s.Store.Reader.ScanPayload.Query().CountX(s.System(t)) != 0 {
			t.Errorf("%v", row)
		}
		project := s.Store.Reader.Project.Query().OnlyX(s.System(t))
		if project.Name != "acme/web" || project.URL != "https://github.com/acme/web" || project.DefaultBranch != mainRef || project.LatestScanAt == nil {
			t.Errorf("%v", project)
		}
		wantList(t, "tags", s.Store.Reader.Tag.Query().Order(ent.Asc("name")).Select("name").StringsX(s.System(t)), "backend", "tier-1")
		shown := parsed(t, s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/scan/%d", s.DeploymentID, id)))
		if at(shown, "exit_code") != 1.0 || at(shown, "meta", "on") != "push" || fmt.Sprint(at(shown, "enabled_products")) != "[sast sca secrets]" ||
			at(shown, "stats", "created") != 4.0 || at(shown, "stats", "scanner", "total_time") != 4.25 || at(shown, "meta", "commit_author_username") != "acme-dev" {
			t.Errorf("%v", shown)
		}
		listed := s.Do(t, s.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/scans/search", s.DeploymentID), `{}`)
		if !strings.Contains(listed.Body, `"status":"SCAN_STATUS_COMPLETED"`) || !strings.Contains(listed.Body, `"is_full_scan":true`) || !strings.Contains(listed.Body, `"exit_code":"1"`) {
			t.Errorf("%s", listed.Body)
		}

		jwt := s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleMember)
		versions := s.Do(t, jwt, http.MethodGet, fmt.Sprintf("/api/agent/versions/%d/project-info/sast", s.DeploymentID), "")
		if !strings.Contains(versions.Body, `"cliVersion":"1.97.0","scanEnvironment":"SCAN_ENVIRONMENT_GITHUB_ACTIONS"`) {
			t.Errorf("%s", versions.Body)
		}

		events := s.Store.Reader.FindingEvent.Query().CountX(s.System(t))
		_, _ = c.scan(t, recorded(t, "results"))
		if n := s.Store.Reader.FindingEvent.Query().CountX(s.System(t)); n != events {
			t.Errorf("the same results again made %d events", n-events)
		}
		wantList(t, "findings after the second scan", c.findingsOf(t, mainRef), allFound...)
		c.scan(t, recorded(t, "results", without(func(f object) bool { return f["path"] != "lib/hash.py" }), with([]any{}, "ignores")))
		wantList(t, "what is gone is fixed", c.findingsOf(t, mainRef), allFound[0], allFound[1], "lib/hash.py:4 fixed fixed", "lib/old.py:7 fixed fixed")
	})
}

// pull turns a body into a diff scan of pull request 7.
func pull(body object) {
	with("refs/pull/7/merge", "project_metadata", "branch")(body)
	with("pull_request", "project_metadata", "on")(body)
	with("7", "project_metadata", "pull_request_id")(body)
	with("Use the new client", "project_metadata", "pull_request_title")(body)
	with(false, "project_metadata", "is_full_scan")(body)
}

func TestScannerDiffScan(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.scan(t, recorded(t, "results"))
		diff := func(path string, renamed ...any) string {
			return recorded(t, "results", without(func(f object) bool { return f["line"] == 12.0 }), func(b object) {
				list, _ := b["findings"].([]any)
				for _, f := range list {
					with(path, "path")(f.(object))
				}
				b["ignores"], b["searched_paths"], b["renamed_paths"] = []any{}, []any{path}, renamed
			})
		}
		id, _ := c.scan(t, diff("app/new.py"), pull)
		wantList(t, "pull request", c.findingsOf(t, pullRef), "app/new.py:12 unresolved open")
		wantList(t, "main is as it was", c.findingsOf(t, mainRef), allFound...)
		c.scan(t, diff("app/newer.py", "app/new.py"), pull)
		for _, f := range c.findingsOf(t, pullRef) { // never open at both paths
			if strings.HasPrefix(f, "app/new.py") && strings.HasSuffix(f, "open") {
				t.Errorf("a renamed file still has an open finding: %v", c.findingsOf(t, pullRef))
			}
		}
		wantList(t, "main is still as it was", c.findingsOf(t, mainRef), allFound...)
		c.scan(t, recorded(t, "results", with([]any{}, "findings"), with([]any{}, "ignores"), with([]any{"app/newer.py"}, "searched_paths")), pull)
		for _, f := range c.findingsOf(t, pullRef) {
			if strings.Contains(f, "unresolved") {
				t.Errorf("fixed in the pull request, and still %s", f)
			}
		}
		row := s.Store.Reader.Scan.GetX(s.System(t), id)
		if row.IsFullScan || row.Ref != pullRef || s.Store.Reader.Project.Query().OnlyX(s.System(t)).DefaultBranch != mainRef {
			t.Errorf("%v", row)
		}
	})
}

func TestScannerEngineFailure(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.scan(t, recorded(t, "results"))
		id := c.create(t)
		for range 2 {
			if answer := c.send(t, http.MethodPost, errorPath(id), `{"exit_code":2,"stderr":"Traceback ghs_CANARY"}`); answer.Status != 200 || answer.Body != "{}" {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
		}
		row := s.Store.Reader.Scan.GetX(s.System(t), id)
		if row.Status != "SCAN_STATUS_ERROR" || row.ExitCode != 2 || row.CompletedAt == nil {
			t.Errorf("%v", row)
		}
		wantList(t, "a failed scan closes nothing", c.findingsOf(t, mainRef), allFound...)
		c.refused(t, http.StatusConflict, http.MethodPost, resultsPath(id), recorded(t, "results"), "reported an error")
		if answer := c.ok(t, http.MethodPost, completePath(id), recorded(t, "complete")); answer["success"] != true {
			t.Errorf("the scanner would wait for results that do not come: %v", answer)
		}
		done, _ := c.scan(t, recorded(t, "results"))
		c.ok(t, http.MethodPost, errorPath(done), `{"exit_code":2}`)
		if row := s.Store.Reader.Scan.GetX(s.System(t), done); row.Status != "SCAN_STATUS_COMPLETED" {
			t.Errorf("an error after the results: %v", row)
		}
	})
}

func TestScannerRulesAndProducts(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		body := func(change ...func(object)) string { return recorded(t, "create_1.97", change...) }
		all := c.ok(t, http.MethodPost, cliScans, body(with(uuid.NewString(), "scan_metadata", "unique_id")))
		if rules, _ := at(all, "config", "rules", "rules").([]any); len(rules) < 10 {
			t.Errorf("the starter rules are missing: %d", len(rules))
		}
		only := c.ok(t, http.MethodPost, cliScans, body(with(uuid.NewString(), "scan_metadata", "unique_id"), with([]any{"secrets"}, "scan_metadata", "requested_products")))
		rules, _ := at(only, "config", "rules", "rules").([]any)
		for _, rule := range rules {
			if at(rule, "metadata", "product") != "secrets" {
				t.Errorf("asked for secrets only, got %v", at(rule, "id"))
			}
		}
		if fmt.Sprint(at(only, "info", "enabled_products")) != "[secrets]" || len(rules) == 0 {
			t.Errorf("%v, %d rules", at(only, "info"), len(rules))
		}
		name := at(at(all, "config", "rules", "rules").([]any)[0], "id")
		partial := c.ok(t, http.MethodPost, cliScans, body(with(uuid.NewString(), "scan_metadata", "unique_id"), with([]any{name}, "scan_metadata", "partial_scan_rule_ids")))
		if rules, _ := at(partial, "config", "rules", "rules").([]any); len(rules) != 1 || at(rules[0], "id") != name {
			t.Errorf("asked for one rule: %v", rules)
		}
		none := c.ok(t, http.MethodPost, cliScans, body(with(uuid.NewString(), "scan_metadata", "unique_id"), with([]any{"no.such.rule"}, "scan_metadata", "partial_scan_rule_ids")))
		if rules, ok := at(none, "config", "rules", "rules").([]any); !ok || len(rules) != 0 {
			t.Errorf("no rules: %v", at(none, "config", "rules"))
		}
		err := s.Store.Write(s.System(t), productsOff(s.DeploymentID))
		if err != nil {
			t.Fatal(err)
		}
		off := c.ok(t, http.MethodPost, cliScans, body(with(uuid.NewString(), "scan_metadata", "unique_id")))
		if products, ok := at(off, "info", "enabled_products").([]any); !ok || len(products) != 0 {
			t.Errorf("%v", at(off, "info"))
		}
	})
}

// TestScannerPartialScanClosesNothing: findings of rules that did not run are not closed.
func TestScannerPartialScanClosesNothing(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.scan(t, recorded(t, "results"))
		empty := recorded(t, "results", with([]any{}, "findings"), with([]any{}, "ignores"), with([]any{"acme.other"}, "rule_ids"))
		c.scan(t, empty, with([]any{"acme.other"}, "scan_metadata", "partial_scan_rule_ids"))
		wantList(t, "limited to other rules", c.findingsOf(t, mainRef), allFound...)
		c.scan(t, `{"findings":[],"searched_paths":["app/run.py","lib/hash.py"]}`)
		wantList(t, "no rule was run", c.findingsOf(t, mainRef), allFound...)
		c.scan(t, empty, with([]any{"secrets"}, "scan_metadata", "requested_products"))
		wantList(t, "limited to another product", c.findingsOf(t, mainRef), allFound...)
		c.scan(t, recorded(t, "results", with([]any{}, "findings"), with([]any{"app/run.py", "lib/hash.py", "lib/old.py"}, "skipped_paths"), with([]any{}, "searched_paths"), with([]any{}, "ignores")))
		wantList(t, "files were skipped", c.findingsOf(t, mainRef), allFound...)
	})
}

func TestScannerDryRun(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.scan(t, recorded(t, "results")) // creates the starter rules
		before := rowCounts(t, s)
		unique := uuid.NewString()
		dry := []func(object){with(unique, "scan_metadata", "unique_id"), with(true, "scan_metadata", "dry_run"), with("acme/dry", "project_metadata", "repo_display_name"),
			with(object{"tags": []any{"dry"}}, "project_config")}
		v1 := c.ok(t, http.MethodPost, cliScans, recorded(t, "create_1.97", dry...))
		v2 := c.ok(t, http.MethodPost, cliV2, recorded(t, "create_1.173", dry...))
		config := c.ok(t, http.MethodGet, cliV2+"/"+unique+"/config", "")
		nothing := c.ok(t, http.MethodPost, cliScans, `{"scan_metadata":{"unique_id":"`+uuid.NewString()+`"},"project_metadata":{"repository":""}}`)
		c.ok(t, http.MethodGet, "/api/agent/deployments/scans/config?dry_run=True&full_scan=True&semgrep_version=1.50.0&is_code_scan=True&repo_name=acme/web", "")
		for name, answer := range map[string]object{"v1": v1, "v2": v2, "no repository": nothing} {
			if _, ok := at(answer, "info").(object)["id"]; ok {
				t.Errorf("%s: a dry run has an id: %v", name, answer["info"])
			}
		}
		if config["status"] != "success" || at(config, "config", "rules", "rules") == nil {
			t.Errorf("%v", config["status"])
		}
		if after := rowCounts(t, s); !slices.Equal(before, after) {
			t.Errorf("rows before and after dry runs:\n%v\n%v", before, after)
		}
	})
}

func TestScannerV2(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c, unique := newScanner(s), uuid.NewString()
		body := recorded(t, "create_1.173", with(unique, "scan_metadata", "unique_id"))
		ids := make([]any, 8)
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				answer := c.send(t, http.MethodPost, cliV2, body)
				if answer.Status == http.StatusOK {
					ids[i] = at(parsed(t, answer.Body), "info", "id")
				}
			})
		}
		all.Wait()
		for _, id := range ids {
			if id != ids[0] || id == nil {
				t.Errorf("one uuid in parallel: %v", ids)
			}
		}
		if n := s.Store.Reader.Scan.Query().CountX(s.System(t)); n != 1 {
			t.Errorf("%d scans", n)
		}
		again := c.ok(t, http.MethodPost, cliV2, strings.Replace(body, unique, strings.ToUpper(unique), 1))
		if at(again, "info", "id") != ids[0] {
			t.Errorf("%v", again)
		}
		config := c.ok(t, http.MethodGet, cliV2+"/"+unique+"/config", "")
		if config["status"] != "success" || config["engine_params"] == nil {
			t.Errorf("%v", config)
		}
		other := s.AddTenant(t, "umbrella")
		scannerClient{s, other.Token}.refused(t, 404, http.MethodGet, cliV2+"/"+unique+"/config", "", "not found")
		c.refused(t, 404, http.MethodGet, cliV2+"/"+uuid.NewString()+"/config", "", "not found")
		// The configuration is never fetched, but the scan is open.
		unasked := c.ok(t, http.MethodPost, cliV2, recorded(t, "create_1.173", with(uuid.NewString(), "scan_metadata", "unique_id")))
		id := int64(at(unasked, "info", "id").(float64))
		c.complete(t, id, c.results(t, id, recorded(t, "results")))
		if row := s.Store.Reader.Scan.GetX(s.System(t), id); row.Status != "SCAN_STATUS_COMPLETED" {
			t.Errorf("%v", row)
		}
	})
}

// A scanner gets the paths that its project leaves out, and nobody else's.
func TestScannerIgnoredFiles(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		const name = "acme/web"
		body := func(project string) string {
			return recorded(t, "create_1.173", with(uuid.NewString(), "scan_metadata", "unique_id"), with(project, "project_metadata", "repository"), with(project, "project_metadata", "repo_display_name"))
		}
		config := func(project string) any {
			request := body(project)
			c.ok(t, http.MethodPost, cliV2, request)
			return at(c.ok(t, http.MethodGet, cliV2+"/"+at(parsed(t, request), "scan_metadata", "unique_id").(string)+"/config", ""), "engine_params", "ignored_files")
		}
		if got := config(name); got != nil {
			t.Errorf("before: %v", got)
		}
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Project.Update().Where(project.Name(name)).SetIgnoredFiles([]string{"vendor/", "*.min.js"}).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(config(name)); got != "[vendor/ *.min.js]" {
			t.Errorf("got %s", got)
		}
		if got := config("acme/other"); got != nil {
			t.Errorf("another project: %v", got)
		}
		err = s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			return tx.PathIgnore.Create().SetProduct("sast").SetPatterns([]string{"/gen/*", "!/gen/ours/", "docs/"}).SetUpdatedAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		request := body(name)
		c.ok(t, http.MethodPost, cliV2, request)
		params := at(c.ok(t, http.MethodGet, cliV2+"/"+at(parsed(t, request), "scan_metadata", "unique_id").(string)+"/config", ""), "engine_params")
		if got := fmt.Sprint(at(params, "ignored_files")); got != "[vendor/ *.min.js]" {
			t.Errorf("for all products: %s", got)
		}
		// Patterns before an exception are not sent: the scanner might skip what they except.
		if got := fmt.Sprint(at(params, "product_ignored_files")); !strings.HasPrefix(got, "[[sast [docs/ vendor/ *.min.js]] [sca [vendor/ *.min.js]]") {
			t.Errorf("for each product: %s", got)
		}
		legacy := c.ok(t, http.MethodGet, "/api/agent/deployments/scans/config?is_code_scan=true&repo_name="+name, "")
		if got := fmt.Sprint(legacy["ignored_files"]); got != "[docs/ vendor/ *.min.js]" {
			t.Errorf("the legacy configuration: %s", got)
		}
	})
}

func TestScannerRetries(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		request := recorded(t, "create_1.97", with(uuid.NewString(), "scan_metadata", "unique_id"))
		first := c.ok(t, http.MethodPost, cliScans, request)
		id := int64(at(first, "info", "id").(float64))
		if second := c.ok(t, http.MethodPost, cliScans, request); at(second, "info", "id") != at(first, "info", "id") {
			t.Errorf("%v", second["info"])
		}
		body := recorded(t, "results")
		task := c.results(t, id, body)
		if again := c.results(t, id, body); again != task {
			t.Errorf("another task: %s, %s", again, task)
		}
		answer := c.complete(t, id, task)
		events := s.Store.Reader.FindingEvent.Query().CountX(s.System(t))
		if again := c.results(t, id, body); again != task {
			t.Errorf("another task after the end: %s, %s", again, task)
		}
		if again := c.complete(t, id, task); written(t, again) != written(t, answer) || again["task_id"] != task {
			t.Errorf("%v, %v", again, answer)
		}
		if n := s.Store.Reader.FindingEvent.Query().CountX(s.System(t)); n != events || s.Store.Reader.ScanPayload.Query().CountX(s.System(t)) != 0 {
			t.Errorf("%d events, %d before", n, events)
		}
		c.refused(t, 409, http.MethodPost, resultsPath(id), recorded(t, "results", with([]any{}, "findings")), "other results")
		for name, bad := range map[string]string{"broken": `{"findings":[`, "no object": `[]`, "empty": ""} {
			fresh := c.create(t)
			c.refused(t, 400, http.MethodPost, resultsPath(fresh), bad, "body")
			if row := s.Store.Reader.Scan.GetX(s.System(t), fresh); row.ResultsState != "" || s.Store.Reader.ScanPayload.Query().CountX(s.System(t)) != 0 {
				t.Errorf("%s: %v", name, row)
			}
		}
	})
}

func TestScannerForeignScans(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		id := c.create(t)
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{sqli}}))
		uploaded := s.Store.Reader.Scan.Query().Where(scan.ScannerIsNil()).OnlyIDX(s.System(t))
		other := scannerClient{s, s.AddTenant(t, "umbrella").Token}
		for _, path := range []func(int64) string{resultsPath, completePath, errorPath} {
			other.refused(t, 404, http.MethodPost, path(id), `{"exit_code":1}`, "not found")
			c.refused(t, 404, http.MethodPost, path(id+1000), `{"exit_code":1}`, "not found")
			c.refused(t, 404, http.MethodPost, path(uploaded), `{"exit_code":1}`, "not found")
			for _, malformed := range []string{"None", "0", "-1", "1e3", "99999999999999999999"} {
				c.refused(t, 404, http.MethodPost, strings.Replace(path(777), "777", malformed, 1), `{"exit_code":1}`, "not found")
			}
		}
		scannerClient{s, ""}.refused(t, 401, http.MethodPost, cliScans, `{}`, "Not authorized")
		reader := scannerClient{s, s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly})}
		reader.refused(t, 403, http.MethodPost, cliScans, `{}`, "role")
		agent := scannerClient{s, s.AddToken(t, s.Tenant, access.TokenSpec{Scopes: []access.Scope{access.ScopeAgent}})}
		agent.create(t)
	})
}
