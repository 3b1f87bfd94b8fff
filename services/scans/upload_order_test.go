package scans_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// timed is a report of a case: the times of its run, and parameters of its upload.
type timed struct {
	began, ended string
	query        []string
}

const (
	nine   = "2020-11-20T09:00:00Z"
	ten    = "2020-11-20T10:00:00Z"
	eleven = "2020-11-20T11:00:00Z"
)

// noTimes are texts that are read as no time.
var noTimes = []string{"yesterday", "2020-11-19", "0001-01-01T00:00:00Z"}

// lateReports are a report (the first) that arrives after another one, and whether it is older.
var lateReports = map[string]struct {
	late, before timed
	older        bool
}{
	"end":                     {timed{ended: ten}, timed{ended: eleven}, true},
	"start":                   {timed{began: ten}, timed{began: eleven}, true},
	"the end decides":         {timed{began: nine, ended: eleven}, timed{began: ten, ended: ten}, false},
	"the earlier end":         {timed{began: nine, ended: ten}, timed{began: nine, ended: eleven}, true},
	"an end and a start":      {timed{ended: ten}, timed{began: eleven}, true},
	"later":                   {timed{ended: eleven}, timed{ended: ten}, false},
	"fractions":               {timed{ended: "2020-11-20T10:00:00.100Z"}, timed{ended: "2020-11-20T10:00:00.2Z"}, true},
	"offset":                  {timed{ended: "2020-11-20T12:00:00+03:00"}, timed{ended: ten}, true},
	"offset to the west":      {timed{ended: "2020-11-20T08:00:00-05:00"}, timed{ended: eleven}, false},
	"without a zone":          {timed{ended: "2020-11-20T10:00:00"}, timed{ended: eleven}, true},
	"equal":                   {timed{ended: ten}, timed{ended: ten}, false},
	"unknown":                 {timed{}, timed{ended: ten}, false},
	"unknown before":          {timed{ended: ten}, timed{}, false},
	"no time":                 {timed{ended: noTimes[0]}, timed{ended: ten}, false},
	"only a date":             {timed{ended: noTimes[1]}, timed{ended: ten}, false},
	"the year 1":              {timed{ended: noTimes[2]}, timed{ended: ten}, false},
	"both in the future":      {timed{ended: "2998-01-01T00:00:00Z"}, timed{ended: "2999-01-01T00:00:00Z"}, false},
	"the other in the future": {timed{ended: ten}, timed{ended: "2999-01-01T00:00:00Z"}, true},

	"one commit": {
		timed{ended: ten, query: []string{"commit", "c1"}}, timed{ended: eleven, query: []string{"commit", "c1"}}, true,
	},
	"one commit without times": {
		timed{query: []string{"commit", "c1"}}, timed{query: []string{"commit", "c1"}}, false,
	},
	"other commits": {
		timed{ended: ten, query: []string{"commit", "c1"}}, timed{ended: eleven, query: []string{"commit", "c2"}}, true,
	},
	"an older commit, run later": {
		timed{ended: eleven, query: []string{"commit", "c1", "commit_time", nine}},
		timed{ended: ten, query: []string{"commit", "c2", "commit_time", ten}}, true,
	},
	"a newer commit, run earlier": {
		timed{ended: ten, query: []string{"commit", "c2", "commit_time", ten}},
		timed{ended: eleven, query: []string{"commit", "c1", "commit_time", nine}}, false,
	},
	"commits of one time": {
		timed{ended: ten, query: []string{"commit", "c1", "commit_time", nine}},
		timed{ended: eleven, query: []string{"commit", "c2", "commit_time", nine}}, true,
	},
	"one commit time is unknown": {
		timed{ended: ten, query: []string{"commit", "c1"}},
		timed{ended: eleven, query: []string{"commit", "c2", "commit_time", nine}}, true,
	},
	"one commit with two times": {
		timed{ended: ten, query: []string{"commit", "c1", "commit_time", eleven}},
		timed{ended: eleven, query: []string{"commit", "c1", "commit_time", nine}}, true,
	},
}

// Regression: the report of a slow job closed what a later one had found, and reopened what that had fixed.
func TestUploadOfAnOlderRun(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for name, c := range lateReports {
			t.Run(name, func(t *testing.T) {
				project := "late/" + strings.ReplaceAll(name, " ", "-")
				send := func(of timed, results ...result) *scansv1.UploadReportResponse {
					t.Helper()
					report := run{Tool: "gosec", Began: of.began, Ended: of.ended, Results: results}
					return sendTo(t, s, project, sarifOf(t, report), of.query...)
				}
				only := result{Rule: "only", File: "old.go", Code: "old(in)", Line: 30}
				const first = "2020-11-01T00:00:00Z"
				send(timed{ended: first, query: []string{"commit", "c0", "commit_time", first}}, xss)
				newer := send(c.before, sqli)
				wantCounts(t, "the newer one", newer, [6]int32{1, 0, 0, 0, 1, 0})
				answer := send(c.late, xss, only)
				scan := s.Store.Reader.Scan.GetX(s.System(t), answer.GetScanId())
				if scan.Status != "SCAN_STATUS_COMPLETED" || scan.TotalCount != 2 {
					t.Errorf("the scan: %v", scan)
				}
				warnings := strings.Join(answer.GetRuns()[0].GetWarnings(), "; ")
				if strings.Contains(warnings, "is no time") != slices.Contains(noTimes, c.late.ended) {
					t.Errorf("warnings: %s", warnings)
				}
				counted := [6]int32{1, 0, 0, 1, 1, 0}
				states := map[string]string{"xss": "unresolved", "sqli": "fixed", "only": "unresolved"}
				if c.older {
					counted, states = [6]int32{}, map[string]string{"xss": "fixed", "sqli": "unresolved", "only": "fixed"}
				}
				wantCounts(t, "the late one", answer, counted)
				if got := statesByRule(t, s, project); !maps.Equal(got, states) {
					t.Errorf("got %v, want %v", got, states)
				}
				if !c.older {
					if strings.Contains(warnings, "older") {
						t.Errorf("warnings: %s", warnings)
					}
					return
				}
				id := newer.GetScanId()
				want := fmt.Sprintf("is older than that of scan %d: it closes and reopens nothing that newer ones decided, and 2 of its findings", id)
				if !strings.Contains(warnings, want) || at(scan.Stats, "older_than_scan") != float64(id) {
					t.Errorf("warnings: %s; statistics: %v", warnings, scan.Stats)
				}
				wantCounts(t, "the newer one again", send(c.before, sqli), [6]int32{2: 1})
			})
		}
	})
}

// sendTo sends a report of the main branch to a project.
func sendTo(
	t testing.TB, s *apitest.Server, project string, report []byte, query ...string,
) *scansv1.UploadReportResponse {
	t.Helper()
	out := &scansv1.UploadReportResponse{}
	if err := protojson.Unmarshal([]byte(s.Upload(t, project, "main", report, query...)), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Runs are compared only within a tool, a category and a ref, also if one report has several.
func TestUploadOrderOfEachAnalysis(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		one := func(tool, category, ended string, results ...result) run {
			return run{Tool: tool, Category: category, Ended: ended, Results: results}
		}
		upload(t, s, "main", sarifOf(t, one("gosec", "", eleven, sqli), one("eslint", "", nine, xss)))
		for name, of := range map[string]run{"tool": one("bandit", "", ten), "category": one("gosec", "api", ten)} {
			if got := fmt.Sprint(upload(t, s, "main", sarifOf(t, of)).GetRuns()); strings.Contains(got, "older") {
				t.Errorf("another %s: %s", name, got)
			}
		}
		got := fmt.Sprint(upload(t, s, "dev", sarifOf(t, one("gosec", "", ten))).GetRuns())
		if strings.Contains(got, "older") {
			t.Errorf("another ref: %s", got)
		}
		answer := upload(t, s, "main", sarifOf(t, one("gosec", "", ten), one("eslint", "", ten)))
		older := func(n int) bool { return strings.Contains(fmt.Sprint(answer.GetRuns()[n].GetWarnings()), "older") }
		if !older(0) || older(1) || answer.GetFixed() != 1 {
			t.Errorf("%v", answer)
		}
	})
}

// Reports of other formats have the time of their run where the format has one.
func TestUploadOrderOfOtherFormats(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for format, report := range map[string]string{
			"trivy-json": `{"SchemaVersion":2,"Results":[],"CreatedAt":%q,"ArtifactName":".","ArtifactType":"repository"}`,
			"grype-json": `{"matches":[],"source":{"type":"directory","target":"."},
				"descriptor":{"name":"grype","version":"0.87.0","timestamp":%q}}`,
			"gitlab-security": `{"version":"15.0.0","vulnerabilities":[],
				"scan":{"type":"sast","status":"success","scanner":{"id":"x","name":"X"},"end_time":%q}}`,
			"sarif-1.0": `{"version":"1.0.0","runs":[{"tool":{"name":"old"},"invocation":{"endTime":%q},"results":[]}]}`,
		} {
			for i, ended := range []string{eleven, ten, "soon", "2020-11-20T12:30:00.5+01:00"} {
				answer := upload(t, s, "main", fmt.Appendf(nil, report, ended), "format", format)
				warnings := fmt.Sprint(answer.GetRuns()[0].GetWarnings())
				if strings.Contains(warnings, "older than that of scan") != (i == 1) || strings.Contains(warnings, "is no time") {
					t.Errorf("%s, %s: %s", format, ended, warnings)
				}
			}
		}
	})
}

// Reports and scans of the scanner protocol have one order. The time of such a scan is its start, by the clock of the
// server.
func TestUploadOrderWithTheScanner(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.scan(t, recorded(t, "results", lines(4), with([]any{}, "ignores")))
		before := c.findingsOf(t, mainRef)
		old := sarifOf(t, run{Tool: "Semgrep OSS", Ended: ten, Results: []result{sqli}})
		name := s.Store.Reader.Project.Query().OnlyX(s.System(t)).Name
		answer := s.Upload(t, name, mainRef, old)
		if !strings.Contains(answer, "is older than that of scan") {
			t.Errorf("%s", answer)
		}
		// It would close the finding of the scanner. That did not run the rule of the report.
		wantList(t, "findings", c.findingsOf(t, mainRef), append(before, "db.go:10 removed removed")...)
	})
}

// drawnReports are three reports of one analysis in their true order: finding and whether it is suppressed.
type drawnReport struct {
	results map[int]bool
	rules   []declared // without a result; nil: the catalogue is not complete
	files   []artifact // nil: none is listed
	timed
}

// drawCoverage draws which rules ran over which files. Reports have files in common: else they are parts of a project.
// A file counts as gone if two reports miss it, and one report of one commit twice is one report.
func (r *drawnReport) drawCoverage(t *rapid.T, files bool) {
	if rapid.Bool().Draw(t, "has a catalogue") {
		r.rules = []declared{{ID: "without-results"}}
		for i, f := range modelFindings {
			if _, found := r.results[i]; !found && rapid.Bool().Draw(t, "ran") {
				r.rules = append(r.rules, declared{ID: f.Rule})
			}
		}
	}
	if !files || rapid.Bool().Draw(t, "lists no files") {
		return
	}
	for i := range 4 {
		r.files = append(r.files, artifact{Path: fmt.Sprintf("src/common%d.go", i), Target: true})
	}
	for i := range len(modelFindings) / 2 {
		if rapid.Bool().Draw(t, "listed") {
			r.files = append(r.files, artifact{Path: modelFindings[2*i].File, Target: true})
		}
	}
}

func drawReports(t *rapid.T) (list [3]drawnReport) {
	kind := rapid.SampledFrom([]string{"commit", "end", "start"}).Draw(t, "decided by")
	commits := rapid.SampledFrom([]string{"", "c", "cdef"}).Draw(t, "commits")
	moment := time.Date(2020, 11, 20, 0, 0, 0, 0, time.UTC)
	written := func(at time.Time) string {
		zone := time.FixedZone("", 1800*rapid.IntRange(-24, 28).Draw(t, "zone"))
		return at.In(zone).Format(time.RFC3339Nano)
	}
	anyTime := func(what string) string {
		return written(moment.Add(time.Duration(rapid.IntRange(-100, 100).Draw(t, what)) * time.Minute))
	}
	for n := range list {
		r := &list[n]
		r.results = map[int]bool{}
		for i := range modelFindings {
			if rapid.Bool().Draw(t, "found") {
				r.results[i] = rapid.IntRange(0, 4).Draw(t, "suppressed") == 0
			}
		}
		r.drawCoverage(t, kind == "commit" || commits == "cdef")
		moment = moment.Add(time.Duration(rapid.Int64Range(1, 1e7).Draw(t, "microseconds later")) * time.Microsecond)
		at := written(moment)
		switch {
		case kind == "commit":
			r.query = []string{"commit", fmt.Sprintf("c%d", n), "commit_time", at}
			if rapid.Bool().Draw(t, "has an end") {
				r.ended = anyTime("end")
			}
		case commits != "":
			r.query = []string{"commit", commits[n%len(commits):][:1]}
		}
		switch kind {
		case "end":
			if r.ended = at; rapid.Bool().Draw(t, "has a start") {
				r.began = anyTime("start")
			}
		case "start":
			r.began = at
		}
	}
	return list
}

// Three reports end in one state, in whatever order they arrive: as if they arrived in their own order.
func TestUploadsInAnyOrder(t *testing.T) {
	t.Parallel()
	orders := [][3]int{{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	each := testrun.Size(2, len(orders)) // of each drawn set of reports
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		projects := 0
		send := func(reports [3]drawnReport, order [3]int) map[string]string {
			projects++
			name := fmt.Sprintf("order/%d", projects)
			for _, n := range order {
				s.Upload(t, name, "main", reports[n].sarif(t), reports[n].query...)
			}
			return statesByRule(t, s, name)
		}
		rapid.Check(t, func(rt *rapid.T) {
			reports := drawReports(rt)
			want := send(reports, [3]int{0, 1, 2})
			for i, suppressed := range reports[2].results {
				state := map[bool]string{true: "muted", false: "unresolved"}[suppressed]
				if got := want[modelFindings[i].Rule]; got != state {
					rt.Fatalf("%+v: the newest one reports finding %d, and it is %s", reports, i, got)
				}
			}
			for _, order := range rapid.Permutation(orders).Draw(rt, "orders")[:each] {
				if got := send(reports, order); !maps.Equal(got, want) {
					rt.Fatalf("%+v in the order %v: %v, want %v", reports, order, got, want)
				}
			}
		})
	})
}

func (r drawnReport) sarif(t testing.TB) []byte {
	one := run{Tool: "model", Began: r.began, Ended: r.ended, Rules: r.rules, Files: r.files}
	for _, i := range slices.Sorted(maps.Keys(r.results)) {
		found := modelFindings[i]
		found.Suppressed = r.results[i]
		one.Results = append(one.Results, found)
	}
	return sarifOf(t, one)
}

// statesByRule are the states of the findings of a project by their rules.
func statesByRule(t *testing.T, s *apitest.Server, name string) map[string]string {
	t.Helper()
	ctx, rules, states := s.System(t), map[int64]string{}, map[string]string{}
	id := s.Store.Reader.Project.Query().Where(project.Name(name)).OnlyX(ctx).ID
	for _, row := range s.Store.Reader.Rule.Query().AllX(ctx) {
		rules[row.ID] = row.Name
	}
	for _, row := range s.Store.Reader.Finding.Query().Where(finding.ProjectID(id)).AllX(ctx) {
		states[rules[row.RuleID]] = row.State
	}
	return states
}

// Each finding is decided by the newest report that covers it, also if that is neither the newest nor the last one.
func TestUploadsThatCoverLess(t *testing.T) {
	t.Parallel()
	one, two := modelFindings[0], modelFindings[2]
	files := func(paths ...string) (list []artifact) {
		for _, path := range append(paths, "src/a.go", "src/b.go", "src/c.go") {
			list = append(list, artifact{Path: path, Target: true})
		}
		return list
	}
	rules := func(names ...string) (list []declared) {
		for _, name := range append(names, "without-results") {
			list = append(list, declared{ID: name})
		}
		return list
	}
	for name, reports := range map[string][3]run{
		"rules": {
			{Ended: nine, Rules: rules(), Results: []result{one, two}}, {Ended: ten, Rules: rules(one.Rule), Results: []result{two}},
			{Ended: eleven, Rules: rules(), Results: []result{two}},
		},
		"files": {
			{Ended: nine, Files: files(), Results: []result{one, two}}, {Ended: ten, Files: files(one.File), Results: []result{two}},
			{Ended: eleven, Files: files(), Results: []result{two}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apitest.Each(t, func(t *testing.T, s *apitest.Server) {
				for _, order := range []string{"012", "021", "102", "120", "201", "210"} {
					project := "less/" + order
					for _, n := range order {
						report := reports[n-'0']
						report.Tool = "gosec"
						sendTo(t, s, project, sarifOf(t, report), "commit", fmt.Sprintf("c%c", n))
					}
					want := map[string]string{one.Rule: "fixed", two.Rule: "unresolved"}
					if got := statesByRule(t, s, project); !maps.Equal(got, want) {
						t.Errorf("%s: %v", order, got)
					}
				}
				for _, order := range []string{"02", "20"} {
					project := "two/" + order
					for _, n := range order {
						report := reports[n-'0']
						report.Tool = "gosec"
						sendTo(t, s, project, sarifOf(t, report))
					}
					want := map[string]string{one.Rule: map[string]string{"rules": "removed", "files": "unresolved"}[name], two.Rule: "unresolved"}
					if got := statesByRule(t, s, project); !maps.Equal(got, want) {
						t.Errorf("%s: %v", order, got)
					}
				}
			})
		})
	}
}
