package services_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shortLists are the lists that become one parameter per value, or one row per item of a statement, by file and by
// call, and why they are never too long. All other lists use store.In, store.OneOf and similar functions, or are split
// for CreateBulk. A statement takes 32,766 parameters on SQLite, 65,535 on PostgreSQL.
var shortLists = map[string]map[string]string{
	"ai/tasks.go":                         {"CreateBulk(rows)": "of a part"},
	"deployments/deployment.go":           {"ScmTypeIn(githubTypes)": "a constant"},
	"deployments/onboarding_tasks.go":     {"UserIDIn(users)": "no user and the caller", "IssueTypeIn(issueTypes)": "constants"},
	"findings/export/author.go":           {"KindIn(decisionKinds)": "constants", `KindIn(append(decisionKinds, "triage_undone"))`: "constants"},
	"findings/identity_changes_rows.go":   {"CreateBulk(rows)": "of a part", "CreateBulk(events)": "of a part"},
	"internal/access/sessions.go":         {"IDIn(batch)": "of a batch"},
	"internal/access/usage.go":            {"IDIn(batch)": "of a batch"},
	"notifications/automations/memory.go": {"CreateBulk(acts)": "of a part"},
	"notifications/digests_collect.go":    {"CreateBulk(some)": "of a part", "StatusNotIn(left)": "constants"},
	"notifications/events_findings.go":    {"IssueTypeIn(types)": "constants"},
	"policies/ignores/preview.go":         {"IssueTypeIn(products)": "the products"},
	"policies/policies_v2.go":             {"CreateBulk(writes)": "a bundle has at most 200"},
	"policies/references.go":              {"NameIn(names)": "of a part: namesPerQuery"},
	"projects/byname/byname.go":           {"In(keys)": "two spellings of a name"},
	"projects/repositories_filter.go":     {"In(endStates)": "a constant"},
	"rules/ruleset/put.go":                {"NameIn(names)": "of a part", "RuleDocumentIDIn(ids)": "of a part", "CreateBulk(creates)": "of a part"},
	"scans/ingest/close_events.go":        {"StateIn(s.from())": "constants"},
	"scans/ingest/match_foreign.go":       {"NameIn(part)": "of a part"},
	"scans/ingest/write_accepted.go":      {"FingerprintIn(prints)": "of a batch"},
	"scans/vex/write.go":                  {"CreateBulk(events)": "of a batch"},
	"scans/ingest/write_lookup.go":        {"FingerprintIn(prints)": "of a batch"},
	"scans/ingest/products.go":            {"In(list)": "of the products"},
	"scans/ingest/write_names.go":         {"FingerprintIn(prints)": "of a batch"},
	"scans/ingest/write.go":               {"CreateBulk(matches)": "of a batch"},
	"scans/ingest/write_recognised.go":    {"CreateBulk(rows)": "of a batch", "FingerprintIn(prints)": "of a batch"},
	"scans/ingest/aliases.go":             {"NameIn(part)": "of a part"},
	"scm/config_sync_projects.go":         {"CreateBulk(created)": "of a page of the host's"},
	"scm/incoming_webhook_events.go":      {"RefIn(refs)": "two of a pull request"},
	"scm/scm_apps.go":                     {"TypeIn(gitHub)": "a constant"},
	"workflows/engine/advance.go":         {"CreateBulk(creates)": "of a part"},
	"workflows/issues/activity.go":        {"CreateBulk(rows)": "of a part"},
	"workflows/issues/upsert.go":          {"KeyIn(part)": "of a part", "IdentityIn(identities)": "of a part"},
}

// takesValues matches functions that make a parameter of each argument.
var takesValues = regexp.MustCompile(`^(.*In|NotIn|InValues|InInts|CreateBulk|Parameters|Args)$`)

// TestListsAreOneParameter finds lists of values that may be too long for a statement.
func TestListsAreOneParameter(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		if strings.HasPrefix(path, filepath.Join("internal", "store")) {
			return nil // the helpers are defined here
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, source, 0)
		if err != nil {
			return err
		}
		text := func(n ast.Node) string {
			return string(source[files.Position(n.Pos()).Offset:files.Position(n.End()).Offset])
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, name, list := listCall(n, text)
			if call == nil || name == "CreateBulk" && (list == "part" || list == "chunk") || name == "NameIn" && list == "chunk" {
				return true
			}
			key := name + "(" + list + ")"
			if shortLists[filepath.ToSlash(path)][key] == "" {
				t.Errorf("%s: %s makes a parameter of each value: give it to store.OneOf or store.In, rows to CreateBulk in parts of store.RowsAtOnce, "+
					"or say in shortLists why there are few", files.Position(call.Pos()), key)
			}
			used[filepath.ToSlash(path)+" "+key] = true
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, calls := range shortLists {
		for call := range calls {
			if !used[path+" "+call] {
				t.Errorf("%s: %s is not there any more: remove it from shortLists", path, call)
			}
		}
	}
}

// listCall is a call that passes a list as arguments, or makes parameters of one.
func listCall(n ast.Node, text func(ast.Node) string) (call *ast.CallExpr, name, list string) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil, "", ""
	}
	switch fun := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = fun.Sel.Name
	case *ast.Ident:
		name = fun.Name
	}
	switch {
	case !takesValues.MatchString(name) || len(call.Args) == 0:
		return nil, "", ""
	case call.Ellipsis != token.NoPos, name == "Parameters":
		return call, name, text(call.Args[len(call.Args)-1])
	}
	return nil, "", ""
}
