package scans_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// situation is one way in which scanners and servers meet. Each has its own project on a server that all share.
type situation struct {
	name string
	run  func(*situationRun)
}

// TestScannerSituations plays the situations in the recorded shape of the protocol. Version 1 and 2 of the protocol
// take turns.
func TestScannerSituations(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.MaxUpload = 1 << 20 })
		for i, of := range slices.Concat(fullSituations, diffSituations, brokenSituations, refusedSituations) {
			t.Run(of.name, func(t *testing.T) {
				of.run(&situationRun{t: t, scannerClient: newScanner(s), project: fmt.Sprintf("acme/situation-%d", i), v2: i%2 == 1, day: 1})
			})
		}
	})
}

// situationRun is the project of one situation, and its scanner.
type situationRun struct {
	t *testing.T
	scannerClient
	project string
	v2      bool
	// day is the day of the last commit.
	day int
}

// results is a body of results, in the form of the recorded one.
type results struct {
	searched []string
	// found has findings, each as "path:line code", where equal codes are equal code. The code "secret" is of another
	// rule.
	found   []string
	ignored []string
	change  []func(object)
}

// tree are the files of the repository.
var tree = []string{"app/run.py", "lib/hash.py", "lib/old.py"}

func found(list ...string) results { return results{searched: tree, found: list} }

func (r results) with(change ...func(object)) results {
	r.change = append(slices.Clone(r.change), change...)
	return r
}

func (r results) searching(paths ...string) results { r.searched = paths; return r }
func (r results) ignoring(list ...string) results   { r.ignored = list; return r }

func (r results) body(t testing.TB) string {
	body := parsed(t, string(testdata(t, "scanner/results.json")))
	sample, seen := body["findings"].([]any)[0].(object), map[string]int{}
	findings := func(list []string) []any {
		out := []any{}
		for _, text := range list {
			place, code, _ := strings.Cut(text, " ")
			path, line, _ := strings.Cut(place, ":")
			f := parsed(t, written(t, sample))
			key := digest("acme.python.eval", path, code)
			f["path"], f["line"], f["end_line"] = path, number(line), number(line)
			f["match_based_id"] = fmt.Sprintf("%s_%d", key, seen[key])
			f["syntactic_id"] = digest(key, fmt.Sprint(seen[key]))[:32]
			f["hashes"] = object{"start_line_hash": digest(code, "start"), "end_line_hash": digest(code, "end"), "code_hash": digest(code), "pattern_hash": digest(code, "p")}
			seen[key]++
			out = append(out, f)
		}
		return out
	}
	body["findings"], body["ignores"], body["searched_paths"] = findings(r.found), findings(r.ignored), r.searched
	for _, change := range r.change {
		change(body)
	}
	return written(t, body)
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

func number(text string) (n int) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

// begin opens a scan of the next commit and returns its id.
func (s *situationRun) begin(change ...func(object)) int64 {
	s.t.Helper()
	s.day++
	committed := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, s.day)
	name, path := "create_1.97", cliScans
	if s.v2 {
		name, path = "create_1.173", cliV2
	}
	of := []func(object){
		with(uuid.NewString(), "scan_metadata", "unique_id"), with([]any{}, "scan_metadata", "requested_products"),
		with(s.project, "project_metadata", "repository"), with(s.project, "project_metadata", "repo_display_name"),
		with(committed.Format("2006-01-02T15:04:05"), "project_metadata", "commit_timestamp"), with("refs/heads/main", "project_metadata", "branch"),
		with(digest(s.project, fmt.Sprint(s.day))[:40], "project_metadata", "commit"),
	}
	answer := s.ok(s.t, http.MethodPost, path, recorded(s.t, name, append(of, change...)...))
	id, _ := at(answer, "info", "id").(float64)
	return int64(id)
}

// end sends results and the completion.
func (s *situationRun) end(id int64, r results) object {
	s.t.Helper()
	return s.complete(s.t, id, s.results(s.t, id, r.body(s.t)))
}

// full does a full scan of the main branch.
func (s *situationRun) full(r results, change ...func(object)) object {
	s.t.Helper()
	return s.end(s.begin(change...), r)
}

// diff does a diff scan of pull request 7.
func (s *situationRun) diff(r results, change ...func(object)) object {
	s.t.Helper()
	return s.end(s.begin(append([]func(object){pull}, change...)...), r)
}

// want compares the findings of a ref, in the order of their creation: "path:line status".
func (s *situationRun) want(ref string, want ...string) {
	s.t.Helper()
	var got []string
	ctx := s.System(s.t)
	of := s.Store.Reader.Project.Query().Where(project.Name(s.project)).OnlyX(ctx)
	for _, f := range s.Store.Reader.Finding.Query().Where(finding.ProjectID(of.ID), finding.Ref(ref)).Order(ent.Asc(finding.FieldID)).AllX(ctx) {
		got = append(got, fmt.Sprintf("%s:%d %s", value(f.FilePath), contentOf(s.t, f).GetLocation().GetLine(), f.Status))
	}
	wantList(s.t, ref, got, want...)
}

// events counts the events of the project's findings.
func (s *situationRun) events() int {
	ctx := s.System(s.t)
	of := s.Store.Reader.Project.Query().Where(project.Name(s.project)).OnlyX(ctx)
	ids := s.Store.Reader.Finding.Query().Where(finding.ProjectID(of.ID)).IDsX(ctx)
	return s.Store.Reader.FindingEvent.Query().Where(findingevent.FindingIDIn(ids...)).CountX(ctx)
}

// ignore ignores a finding, by its path and line on main.
func (s *situationRun) ignore(place string) {
	s.t.Helper()
	ctx := s.System(s.t)
	of := s.Store.Reader.Project.Query().Where(project.Name(s.project)).OnlyX(ctx)
	for _, f := range s.Store.Reader.Finding.Query().Where(finding.ProjectID(of.ID), finding.Ref(mainRef)).AllX(ctx) {
		if fmt.Sprintf("%s:%d", value(f.FilePath), contentOf(s.t, f).GetLocation().GetLine()) != place {
			continue
		}
		body := fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":"ignored","new_triage_reason":"false_positive"}`, f.ID)
		if answer := s.Do(s.t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage", body); answer.Status != http.StatusOK {
			s.t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		return
	}
	s.t.Fatalf("no finding at %s", place)
}

// status is the status of a scan.
func (s *situationRun) status(id int64) string {
	return strings.TrimPrefix(s.Store.Reader.Scan.Query().Where(scan.ID(id)).OnlyX(s.System(s.t)).Status, "SCAN_STATUS_")
}
