package scans_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"google.golang.org/protobuf/encoding/protojson"
)

// result is one result of a report.
type result struct {
	Rule, File, Code string
	Line             int
	Suppressed       bool
	Level            string
}

// run is one run of a report.
type run struct {
	Tool, Category string
	Version        string
	Failed         bool
	RuleText       string
	Results        []result
	// Rules are declared in addition to the rules of the results. Files are listed as artifacts. FailedFiles could not
	// be scanned.
	Rules       []declared
	Files       []artifact
	FailedFiles []string
	// Began and Ended are the times of the invocation, or empty.
	Began, Ended string
}

// declared is a rule of the catalogue. Former is a former name.
type declared struct{ ID, Former string }

// artifact is a target of the analysis, with the hash of its content.
type artifact struct {
	Path, Hash string
	Target     bool
}

// sarifOf writes a report.
func sarifOf(t testing.TB, runs ...run) []byte {
	t.Helper()
	var list []any
	for _, r := range runs {
		results := []any{}
		rules := []any{}
		for _, one := range r.Results {
			item := map[string]any{
				"ruleId": one.Rule, "message": map[string]any{"text": "about " + one.Rule},
				"locations": []any{map[string]any{"physicalLocation": map[string]any{
					"artifactLocation": map[string]any{"uri": one.File},
					"region":           map[string]any{"startLine": one.Line, "snippet": map[string]any{"text": one.Code}},
				}}},
			}
			if one.Suppressed {
				item["suppressions"] = []any{map[string]any{"kind": "inSource", "justification": "by design"}}
			}
			if one.Level != "" {
				item["level"] = one.Level
			}
			results = append(results, item)
			rules = append(rules, map[string]any{"id": one.Rule, "shortDescription": map[string]any{"text": "Rule " + one.Rule + r.RuleText}})
		}
		for _, one := range r.Rules {
			rule := map[string]any{"id": one.ID, "shortDescription": map[string]any{"text": "Rule " + one.ID + r.RuleText}}
			if one.Former != "" {
				rule["deprecatedIds"] = []string{one.Former}
			}
			rules = append(rules, rule)
		}
		invocation := map[string]any{"executionSuccessful": !r.Failed}
		var failures []any
		for _, path := range r.FailedFiles {
			failures = append(failures, map[string]any{"level": "error", "message": map[string]any{"text": "timeout"},
				"locations": []any{map[string]any{"physicalLocation": map[string]any{"artifactLocation": map[string]any{"uri": path}}}}})
		}
		if failures != nil {
			invocation["toolExecutionNotifications"] = failures
		}
		if r.Began != "" {
			invocation["startTimeUtc"] = r.Began
		}
		if r.Ended != "" {
			invocation["endTimeUtc"] = r.Ended
		}
		out := map[string]any{
			"tool": map[string]any{"driver": map[string]any{"name": r.Tool, "version": r.Version, "rules": rules}}, "results": results,
			"invocations": []any{invocation},
		}
		if r.Category != "" {
			out["automationDetails"] = map[string]any{"id": r.Category + "/"}
		}
		if r.Files != nil {
			out["artifacts"] = artifactsOf(r.Files)
		}
		list = append(list, out)
	}
	raw, err := json.Marshal(map[string]any{"version": "2.1.0", "runs": list})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func artifactsOf(files []artifact) (list []any) {
	for _, file := range files {
		item := map[string]any{"location": map[string]any{"uri": file.Path}}
		if file.Target {
			item["roles"] = []string{"analysisTarget"}
		}
		if file.Hash != "" {
			item["hashes"] = map[string]any{"sha-256": file.Hash}
		}
		list = append(list, item)
	}
	return list
}

// targets lists files as targets of the analysis.
func targets(paths ...string) (list []artifact) {
	for _, path := range paths {
		list = append(list, artifact{Path: path, Target: true})
	}
	return list
}

// upload sends a report to acme/web and returns the answer.
func upload(t testing.TB, s *apitest.Server, ref string, report []byte, query ...string) *scansv1.UploadReportResponse {
	t.Helper()
	out := &scansv1.UploadReportResponse{}
	if err := protojson.Unmarshal([]byte(s.Upload(t, "acme/web", ref, report, query...)), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// counts are the numbers of an answer: created, updated, unchanged, reopened, fixed, skipped.
func counts(r *scansv1.UploadReportResponse) [6]int32 {
	return [6]int32{r.GetCreated(), r.GetUpdated(), r.GetUnchanged(), r.GetReopened(), r.GetFixed(), r.GetSkipped()}
}

func wantCounts(t *testing.T, what string, r *scansv1.UploadReportResponse, want [6]int32) {
	t.Helper()
	if got := counts(r); got != want {
		t.Errorf("%s: created, updated, unchanged, reopened, fixed, skipped = %v, want %v", what, got, want)
	}
}

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// statuses are the statuses of all findings by ref, file and code, in the order of their ids.
func statuses(t *testing.T, s *apitest.Server) (list []string) {
	t.Helper()
	for _, f := range s.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).AllX(s.System(t)) {
		list = append(list, f.Ref+" "+f.AnalysisCategory+" "+f.State+" "+f.Status)
	}
	return list
}

// reasons are the kinds and reasons of all events in order, without the "created" events.
func reasons(t *testing.T, s *apitest.Server) (list []string) {
	t.Helper()
	for _, e := range s.Store.Reader.FindingEvent.Query().Order(ent.Asc(findingevent.FieldID)).AllX(s.System(t)) {
		if e.Kind != "created" {
			list = append(list, e.Kind+": "+e.Reason)
		}
	}
	return list
}

// kinds are the kinds of all events in order.
func kinds(t *testing.T, s *apitest.Server) (list []string) {
	t.Helper()
	for _, e := range s.Store.Reader.FindingEvent.Query().Order(ent.Asc(findingevent.FieldID)).AllX(s.System(t)) {
		list = append(list, e.Kind)
	}
	return list
}
