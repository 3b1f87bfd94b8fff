package scans_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingmatch"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// Code that is long enough to be recognised in another file.
var (
	query = result{Rule: "sqli", File: "store/db.go", Code: `rows, err := db.Query("SELECT * FROM users WHERE name = '" + name + "'")`, Line: 10}
	write = result{Rule: "xss", File: "web/page.go", Code: `fmt.Fprintf(w, "<h1>%s</h1>", r.URL.Query().Get("title"))`, Line: 20}
)

func ignore(t *testing.T, s *apitest.Server, rule string) {
	t.Helper()
	answer := s.Do(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage",
		`{"issue_type":"sast","rules":["`+rule+`"],"new_triage_state":"ignored","new_triage_reason":"false_positive","new_note":"checked"}`)
	if answer.Status != 200 {
		t.Fatalf("triage: %d %s", answer.Status, answer.Body)
	}
}

// rows are all findings of a ref in the order of their ids.
func rows(t *testing.T, s *apitest.Server, ref string) []*ent.Finding {
	t.Helper()
	return s.Store.Reader.Finding.Query().Where(finding.Ref(ref)).Order(ent.Asc(finding.FieldID)).AllX(s.System(t))
}

// matches are the recorded matches of findings.
func matches(t *testing.T, s *apitest.Server) (rungs []string, list []*storev1.FindingMatch) {
	t.Helper()
	for _, row := range s.Store.Reader.FindingMatch.Query().Order(ent.Asc(findingmatch.FieldID)).AllX(s.System(t)) {
		m := &storev1.FindingMatch{}
		if err := proto.Unmarshal(row.Content, m); err != nil {
			t.Fatal(err)
		}
		rungs, list = append(rungs, row.Rung), append(list, m)
	}
	return rungs, list
}

// A file that moves keeps its findings and decisions. A second scan changes nothing more.
func TestMovedFileKeepsTheFinding(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		page := artifact{Path: "web/page.go", Target: true, Hash: "bb02"}
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Files: []artifact{{Path: "store/db.go", Target: true, Hash: "aa01"}, page}, Results: []result{query, write}}))
		ignore(t, s, "sqli")
		moved := query
		moved.File, moved.Line = "internal/store/database.go", 12
		report := sarifOf(t, run{Tool: "gosec", Files: []artifact{{Path: moved.File, Target: true, Hash: "aa01"}, page}, Results: []result{moved, write}})
		wantCounts(t, "moved", upload(t, s, "main", report), [6]int32{0, 1, 1, 0, 0, 0})
		list := rows(t, s, "refs/heads/main")
		if len(list) != 2 || list[0].Status != "ignored" || *list[0].FilePath != moved.File {
			t.Fatalf("%v", list)
		}
		if got := reasons(t, s); !slices.Equal(got[1:], []string{"matched: moved from store/db.go:10 to internal/store/database.go:12"}) {
			t.Errorf("events %q", got)
		}
		rungs, notes := matches(t, s)
		if len(notes) != 1 || !strings.HasPrefix(rungs[0], "moved_file:") || notes[0].GetBefore().GetFilePath() != "store/db.go" ||
			notes[0].GetAfter().GetLine() != 12 || len(notes[0].GetEvidenceBefore()) == 0 || len(notes[0].GetContentBefore()) == 0 {
			t.Errorf("%v %v", rungs, notes)
		}
		events := len(kinds(t, s))
		wantCounts(t, "again", upload(t, s, "main", report), [6]int32{0, 0, 2, 0, 0, 0})
		if again, _ := matches(t, s); len(kinds(t, s)) != events || len(again) != 1 {
			t.Errorf("the same report again left %d events, %d notes", len(kinds(t, s))-events, len(again))
		}
	})
}

// A finding is still the same if the code on its line changes.
func TestChangedCodeKeepsTheFinding(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{query, write}}))
		ignore(t, s, "sqli")
		changed := query
		changed.Code = `result, failed := db.Query("SELECT * FROM users WHERE login = '" + login + "'")`
		wantCounts(t, "changed", upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{changed, write}})), [6]int32{0, 1, 1, 0, 0, 0})
		if list := rows(t, s, "refs/heads/main"); len(list) != 2 || list[0].Status != "ignored" {
			t.Errorf("%v", list)
		}
		if got := reasons(t, s); !slices.Equal(got[1:], []string{"matched: code changed, same place"}) {
			t.Errorf("events %q", got)
		}
	})
}

// A rule that the tool renames keeps its findings, because the report declares the former name.
func TestRenamedRuleKeepsTheFinding(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{query}}))
		ignore(t, s, "sqli")
		renamed := query
		renamed.Rule = "sql-injection"
		report := sarifOf(t, run{Tool: "gosec", Rules: []declared{{"sql-injection", "sqli"}}, Results: []result{renamed}})
		wantCounts(t, "renamed", upload(t, s, "main", report), [6]int32{0, 1, 0, 0, 0, 0})
		wantCounts(t, "again", upload(t, s, "main", report), [6]int32{0, 0, 1, 0, 0, 0})
		if body := s.Get(t, "/api/v1/deployments/acme/findings"); !strings.Contains(body, `"rule_name":"sql-injection"`) || !strings.Contains(body, `"status":"ignored"`) {
			t.Errorf("%s", body)
		}
		// An older version of the tool, which still says sqli, scans another branch.
		wantCounts(t, "former name", upload(t, s, "dev", sarifOf(t, run{Tool: "gosec", Results: []result{query}})), [6]int32{1, 0, 0, 0, 0, 0})
		list := rows(t, s, "refs/heads/dev")
		if len(list) != 1 || list[0].Status != "ignored" || list[0].Fingerprint != rows(t, s, "refs/heads/main")[0].Fingerprint {
			t.Errorf("%v", list)
		}
	})
}

// A branch on which the code has changed has the same identities as the main branch, and so the same decisions.
func TestIdentitiesOfOtherBranches(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{query, write}}))
		ignore(t, s, "sqli")
		changed := query
		changed.Code = `result, failed := db.Query("SELECT * FROM users WHERE login = '" + login + "'")`
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{changed, write}}))
		name := rows(t, s, "refs/heads/main")[0].Fingerprint
		for ref, code := range map[string]result{"dev": changed, "old": query} {
			wantCounts(t, ref, upload(t, s, ref, sarifOf(t, run{Tool: "gosec", Results: []result{code, write}})), [6]int32{2, 0, 0, 0, 0, 0})
			list := rows(t, s, "refs/heads/"+ref)
			if list[0].Fingerprint != name || list[0].Status != "ignored" || list[1].Status != "open" {
				t.Errorf("%s: %v, want the identity %s", ref, list, name)
			}
			wantCounts(t, ref+" again", upload(t, s, ref, sarifOf(t, run{Tool: "gosec", Results: []result{code, write}})), [6]int32{0, 0, 2, 0, 0, 0})
		}
	})
}

// Equal results of one file are distinguished by their order. New ones get their own fingerprint.
func TestEqualCode(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		at := func(lines ...int) []byte {
			var list []result
			for _, line := range lines {
				one := query
				one.Line = line
				list = append(list, one)
			}
			return sarifOf(t, run{Tool: "gosec", Results: list})
		}
		wantCounts(t, "three", upload(t, s, "main", at(10, 20, 30)), [6]int32{3, 0, 0, 0, 0, 0})
		wantCounts(t, "the second is gone", upload(t, s, "main", at(10, 30)), [6]int32{0, 1, 1, 0, 1, 0})
		if list := rows(t, s, "refs/heads/main"); list[0].Status != "open" || list[1].Status != "fixed" || list[2].Status != "open" {
			t.Errorf("%v", list)
		}
		wantCounts(t, "two more", upload(t, s, "main", at(10, 20, 30, 40)), [6]int32{1, 1, 1, 1, 0, 0})
		names := map[string]bool{}
		for _, row := range rows(t, s, "refs/heads/main") {
			names[row.Fingerprint] = true
		}
		if len(names) != 4 {
			t.Errorf("%d names of 4 findings", len(names))
		}
		wantCounts(t, "again", upload(t, s, "main", at(10, 20, 30, 40)), [6]int32{0, 0, 4, 0, 0, 0})
	})
}

// A user's alias takes precedence over an alias that a report declares.
func TestReportsDoNotContradictUsers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ctx := s.System(t)
		err := s.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			return tx.RuleAlias.Create().SetDeploymentID(s.DeploymentID).SetTool("gosec").SetName("sqli").SetCanonical("injection").
				SetSource("user").SetCreatedAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		declares := func(rules ...declared) { upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Rules: rules})) }
		declares(declared{"sql-injection", "sqli"}, declared{"a", "shared"}, declared{"b", "shared"}, declared{"sqli", "sql"})
		declares(declared{"injection", "very-old"}, declared{"sqli", "injection"})
		declares(declared{"newest", "very-old"})
		got := map[string]string{}
		for _, row := range s.Store.Reader.RuleAlias.Query().AllX(ctx) {
			got[row.Name] = row.Canonical + " by " + row.Source
		}
		want := map[string]string{"sqli": "injection by user", "sql": "injection by report", "very-old": "newest by report"}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{query}}))
		if body := s.Get(t, "/api/v1/deployments/acme/findings"); !strings.Contains(body, `"rule_name":"injection"`) {
			t.Errorf("%s", body)
		}
	})
}
