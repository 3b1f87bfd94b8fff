package scans_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/services/internal/apitest"
)

// incompleteScan is a scan that reports nothing of what the scan before it reported, and says that it is incomplete.
type incompleteScan struct {
	base           string // what the scan before reported; empty: results
	begins         func(object)
	results, after func(object) // after: of the completion
	ends           func(t *testing.T, c scannerClient, id int64, task string)
	kept           []string // open findings
}

const (
	evalFindings = "app/run.py:12 app/run.py:20 "
	hashFinding  = "lib/hash.py:4 lib/old.py:7"
)

func kept(findings string) []string { return strings.Fields(findings) }

func list(values ...any) []any { return append([]any{}, values...) }

// incompleteScans has a scan for each row of the table in docs/scanners.md.
var incompleteScans = map[string]incompleteScan{
	"`skipped_paths`":              {results: with(list("lib/hash.py", "lib/old.py"), "skipped_paths"), kept: kept(hashFinding)},
	"`skipped_paths` with objects": {results: with(list(object{"path": "./lib/hash.py", "reason": "too_big"}), "skipped_paths"), kept: kept("lib/hash.py:4")},
	"`searched_paths`":             {results: with(list("app/run.py"), "searched_paths"), kept: kept(hashFinding)},
	"`rule_ids`":                   {results: with(list(), "rule_ids"), kept: kept(evalFindings + hashFinding)},
	"an unusable finding": {results: func(b object) { b["findings"] = list(object{"check_id": "x", "message": strings.Repeat("x", 5<<20)}) },
		kept: kept(evalFindings + hashFinding)},
	"`skipped_subprojects`":      {base: "sca", results: with(list("web"), "skipped_subprojects"), kept: kept("web/package-lock.json:30")},
	"`partial_scan_rule_ids`":    {begins: with(list("acme.generic.unused"), "scan_metadata", "partial_scan_rule_ids"), kept: kept(evalFindings + hashFinding)},
	"`requested_products`":       {begins: with(list("secrets"), "scan_metadata", "requested_products"), kept: kept(evalFindings + hashFinding)},
	"`exit_code`":                {after: with(2, "exit_code"), kept: kept(evalFindings + hashFinding)},
	"`stats.errors` with a file": {after: with(list(object{"code": 3, "level": "warn", "type": "Syntax error", "path": "lib/hash.py"}), "stats", "errors"), kept: kept("lib/hash.py:4")},
	"`stats.errors` with a path of another root": {after: with(list(object{"level": "warn", "path": "/builds/acme/web/lib/hash.py"}), "stats", "errors"),
		kept: kept("lib/hash.py:4")},
	"`stats.errors` with an unknown file": {after: with(list(object{"level": "warn", "path": "/rules.yaml"}), "stats", "errors"), kept: kept(evalFindings + hashFinding)},
	"`stats.errors` with a rule":          {after: with(list(object{"code": 2, "level": "error", "type": "Rule parse error", "rule_id": "acme.python.eval"}), "stats", "errors"), kept: kept(evalFindings)},
	"`stats.errors`, others":              {after: with(list("out of memory"), "stats", "errors"), kept: kept(evalFindings + hashFinding)},
	"`stats.parse_rate`": {after: with(object{"python": object{"targets_parsed": 3, "num_targets": 4, "bytes_parsed": 800, "num_bytes": 900}}, "stats", "parse_rate"),
		kept: kept(evalFindings + hashFinding)},
	"`dependency_parser_errors`": {base: "sca", after: with(list(object{"path": "api/requirements.txt", "parser": "requirements", "reason": "bad line"}), "dependency_parser_errors"),
		kept: kept("api/app.py:3 api/requirements.txt:1 api/requirements.txt:4")},
	"`skipped_subprojects` of `/complete`": {base: "sca", after: with(list(object{"info": object{"root_dir": "web"}}), "skipped_subprojects"), kept: kept("web/package-lock.json:30")},
	"no `/complete`":                       {ends: neverCompleted, kept: kept(evalFindings + hashFinding)},
	"`/error`":                             {ends: failedScan, kept: kept(evalFindings + hashFinding)},
}

// neverCompleted waits for the results of a scanner that was killed after it sent them.
func neverCompleted(t *testing.T, c scannerClient, id int64, _ string) {
	t.Helper()
	_, writer := c.Store.DB()
	apitest.Eventually(t, "the results are stored without the completion", func() bool {
		_, err := writer.ExecContext(t.Context(), "UPDATE river_job SET state = 'available', scheduled_at = created_at WHERE kind = 'store_scan_results' AND state = 'scheduled'")
		if err != nil {
			t.Fatal(err)
		}
		return c.Store.Reader.Scan.GetX(c.System(t), id).ResultsState == "stored"
	})
}

func failedScan(t *testing.T, c scannerClient, id int64, task string) {
	t.Helper()
	c.ok(t, http.MethodPost, errorPath(id), `{"exit_code":2,"stderr":""}`)
	c.complete(t, id, task)
}

// A scan closes nothing that it did not look at.
func TestScannerIncompleteScansKeepFindings(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.keep(t, incompleteScans)
	})
}

// keep does the scans, and checks which findings stay open.
func (c scannerClient) keep(t *testing.T, scans map[string]incompleteScan) {
	t.Helper()
	for name, scan := range scans {
		of := func(body object) { with(displayName(name), "project_metadata", "repo_display_name")(body) }
		base := orText(scan.base, "results")
		c.scan(t, recorded(t, base), of)
		id := c.create(t, of, orNone(scan.begins))
		nothingFound := recorded(t, base, with(list(), "findings"), with(list(), "ignores"), with(object{}, "dependencies"), orNone(scan.results))
		task, _ := c.ok(t, http.MethodPost, resultsPath(id), nothingFound)["task_id"].(string)
		if scan.ends == nil {
			body := recorded(t, "complete", with(task, "task_id"), orNone(scan.after))
			apitest.Eventually(t, "the results are stored", func() bool {
				return c.ok(t, http.MethodPost, completePath(id), body)["success"] == true
			})
		} else {
			scan.ends(t, c, id, task)
		}
		wantList(t, name, c.openFindings(t, displayName(name)), scan.kept...)
	}
}

func removed(path ...string) func(object) {
	return func(body object) {
		inner, _ := at(body, path[:len(path)-1]...).(object)
		delete(inner, path[len(path)-1])
	}
}

// A scan closes nothing if a part of it that says so much cannot be read.
func TestScannerUnreadablePartsKeepFindings(t *testing.T) {
	t.Parallel()
	all, dependencies := kept(evalFindings+hashFinding), kept("web/package-lock.json:30 api/app.py:3 api/requirements.txt:1 api/requirements.txt:4")
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		newScanner(s).keep(t, map[string]incompleteScan{
			"no findings":              {results: removed("findings"), kept: all},
			"findings null":            {results: with(nil, "findings"), kept: all},
			"findings object":          {results: with(object{}, "findings"), kept: all},
			"ignores text":             {results: with("x", "ignores"), kept: all},
			"searched text":            {results: with("app/run.py", "searched_paths"), kept: all},
			"rule of another type":     {results: with(list("acme.python.eval", object{"id": "x"}), "rule_ids"), kept: all},
			"skipped text":             {results: with("lib/hash.py", "skipped_paths"), kept: all},
			"skipped object":           {results: with(object{"path": "lib/hash.py"}, "skipped_paths"), kept: all},
			"skipped number":           {results: with(list(5), "skipped_paths"), kept: all},
			"skipped empty":            {results: with(list(""), "skipped_paths"), kept: all},
			"errors text":              {after: with("out of memory", "stats", "errors"), kept: all},
			"errors object":            {after: with(object{"path": "lib/hash.py"}, "stats", "errors"), kept: all},
			"stats text":               {after: with("x", "stats"), kept: all},
			"no exit code":             {after: removed("exit_code"), kept: all},
			"exit code null":           {after: with(nil, "exit_code"), kept: all},
			"exit code text":           {after: with("killed", "exit_code"), kept: all},
			"subprojects text":         {base: "sca", results: with("web", "skipped_subprojects"), kept: dependencies},
			"dependency errors object": {base: "sca", after: with(object{}, "dependency_parser_errors"), kept: dependencies},
			"optional lists null":      {results: with(nil, "skipped_paths"), after: with(nil, "stats", "errors")},
		})
	})
}

// displayName makes a name of a project from a name of a test.
func displayName(name string) string {
	return "acme/" + strings.NewReplacer("`", "", "/", "").Replace(name)
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func orNone(change func(object)) func(object) {
	if change == nil {
		return func(object) {}
	}
	return change
}

// The table in the documentation has a test for each row, and no test is missing from it.
func TestScannerIncompleteScansAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/scanners.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## What a scan did not look at\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented, tested []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+?) +\|`).FindAllStringSubmatch(section, -1) {
		if row[1] != "Field" && row[1] != "---" {
			documented = append(documented, row[1])
		}
	}
	for name := range incompleteScans {
		tested = append(tested, name)
	}
	slices.Sort(documented)
	slices.Sort(tested)
	wantList(t, "rows", documented, tested...)
}

// openFindings are the open findings of a project in the order of their ids: path:line.
func (c scannerClient) openFindings(t testing.TB, name string) (list []string) {
	t.Helper()
	id := c.Store.Reader.Project.Query().Where(project.Name(name)).OnlyIDX(c.System(t))
	for _, f := range c.Store.Reader.Finding.Query().Where(finding.ProjectID(id), finding.StateIn("unresolved", "muted")).Order(ent.Asc(finding.FieldID)).AllX(c.System(t)) {
		list = append(list, fmt.Sprintf("%s:%d", value(f.FilePath), contentOf(t, f).GetLocation().GetLine()))
	}
	return list
}
