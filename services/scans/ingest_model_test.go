package scans_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apitest"
	"google.golang.org/protobuf/encoding/protojson"
)

// modelFindings are the findings that reports of the model may have. Every second one shares its file with the next,
// and each has its own rule, so that findings are never confused.
var modelFindings = func() (list []result) {
	for i := range 6 {
		list = append(list, result{Rule: fmt.Sprintf("rule-%d", i), File: fmt.Sprintf("src/f%d.go", i/2), Code: fmt.Sprintf("call%d(x)", i), Line: 10 * (i + 1)})
	}
	return list
}()

// modelReport is one upload of the model. Findings, rules and files are indexes.
type modelReport struct {
	ref        string
	results    map[int]bool // true: suppressed in the code
	rules      []int        // declared without a result
	files      []int        // nil: none is listed
	failed     bool
	commit     string
	rulesKnown bool
	knownRules map[int]bool
	filesKnown bool
	knownFiles map[int]bool
}

func drawReport(t *rapid.T, n int) *modelReport {
	r := &modelReport{ref: rapid.SampledFrom([]string{"main", "dev"}).Draw(t, "ref"), results: map[int]bool{}, commit: fmt.Sprintf("c%d", n)}
	r.knownRules, r.knownFiles = map[int]bool{}, map[int]bool{}
	for i := range modelFindings {
		if rapid.Bool().Draw(t, "found") {
			r.results[i] = rapid.IntRange(0, 4).Draw(t, "suppressed") == 0
			r.knownRules[i], r.knownFiles[i/2] = true, true
		}
	}
	if rapid.Bool().Draw(t, "has a catalogue") {
		for i := range modelFindings {
			if _, found := r.results[i]; !found && rapid.Bool().Draw(t, "declared") {
				r.rules, r.knownRules[i], r.rulesKnown = append(r.rules, i), true, true
			}
		}
	}
	if rapid.Bool().Draw(t, "lists files") {
		for i := range len(modelFindings) / 2 {
			if rapid.Bool().Draw(t, "listed") {
				r.files, r.knownFiles[i], r.filesKnown = append(r.files, i), true, true
			}
		}
	}
	r.failed = rapid.IntRange(0, 5).Draw(t, "failed") == 0
	return r
}

func (r *modelReport) sarif(t testing.TB) []byte {
	one := run{Tool: "model", Failed: r.failed}
	for _, i := range slices.Sorted(maps.Keys(r.results)) {
		found := modelFindings[i]
		found.Suppressed = r.results[i]
		one.Results = append(one.Results, found)
	}
	for _, i := range r.rules {
		one.Rules = append(one.Rules, declared{ID: modelFindings[i].Rule})
	}
	for _, i := range r.files {
		one.Files = append(one.Files, artifact{Path: modelFindings[2*i].File, Target: true})
	}
	return sarifOf(t, one)
}

// model computes what should be stored, in the simplest way.
type model struct {
	states map[string]map[int]string // by ref and finding
	last   map[string]*modelReport   // by ref: the latest that did not fail
}

// apply applies a report and counts created, updated, unchanged, reopened, fixed and removed.
func (m *model) apply(r *modelReport) (n [6]int32) {
	states := m.states[r.ref]
	if states == nil {
		states = map[int]string{}
		m.states[r.ref] = states
	}
	before := m.last[r.ref]
	for i, state := range maps.Clone(states) {
		if _, found := r.results[i]; found || !lifecycle.Seen(state) || r.failed {
			continue
		}
		switch {
		case r.rulesKnown && !r.knownRules[i]:
			states[i] = lifecycle.Removed
			n[5]++
		case !r.filesKnown || r.knownFiles[i/2]:
			states[i] = lifecycle.Fixed
			n[4]++
		case before != nil && before.filesKnown && !before.knownFiles[i/2]:
			states[i] = lifecycle.Removed
			n[5]++
		}
	}
	for i, suppressed := range r.results {
		old, stored := states[i]
		states[i] = lifecycle.Unresolved
		if suppressed {
			states[i] = lifecycle.Muted
		}
		switch {
		case !stored:
			n[0]++
		case !lifecycle.Seen(old):
			n[3]++
		case old != states[i]:
			n[1]++
		default:
			n[2]++
		}
	}
	if !r.failed {
		m.last[r.ref] = r
	}
	return n
}

// TestModel uploads random reports and compares the states and counts with the model. Uploading a report again changes
// nothing.
func TestModel(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		projects := 0
		rapid.Check(t, func(rt *rapid.T) {
			projects++
			name := fmt.Sprintf("model/%d", projects)
			m := &model{states: map[string]map[int]string{}, last: map[string]*modelReport{}}
			for n := range rapid.IntRange(1, 5).Draw(rt, "reports") {
				r := drawReport(rt, n)
				want := m.apply(r)
				raw := r.sarif(t)
				if got := sent(t, s, name, r, raw); got != want {
					rt.Fatalf("report %d (%+v): created, updated, unchanged, reopened, fixed, removed = %v, want %v", n, r, got, want)
				}
				if rapid.IntRange(0, 3).Draw(rt, "again") == 0 {
					if got := sent(t, s, name, r, raw); got != [6]int32{2: int32(len(r.results))} {
						rt.Fatalf("report %d (%+v) again: %v", n, r, got)
					}
				}
				compare(t, rt, s, name, m)
			}
		})
	})
}

func sent(t *testing.T, s *apitest.Server, name string, r *modelReport, raw []byte) [6]int32 {
	out := &scansv1.UploadReportResponse{}
	if err := protojson.Unmarshal([]byte(s.Upload(t, name, r.ref, raw, "commit", r.commit)), out); err != nil {
		t.Fatal(err)
	}
	return [6]int32{out.GetCreated(), out.GetUpdated(), out.GetUnchanged(), out.GetReopened(), out.GetFixed(), out.GetRemoved()}
}

func compare(t *testing.T, rt *rapid.T, s *apitest.Server, name string, m *model) {
	ctx := s.System(t)
	id := s.Store.Reader.Project.Query().Where(project.Name(name)).OnlyX(ctx).ID
	rules := map[int64]string{}
	for _, row := range s.Store.Reader.Rule.Query().AllX(ctx) {
		rules[row.ID] = row.Name
	}
	got := map[string]string{}
	for _, row := range s.Store.Reader.Finding.Query().Where(finding.ProjectID(id)).AllX(ctx) {
		got[row.Ref+" "+rules[row.RuleID]] = row.State
	}
	want := map[string]string{}
	for ref, states := range m.states {
		for i, state := range states {
			want["refs/heads/"+ref+" "+modelFindings[i].Rule] = state
		}
	}
	if !maps.Equal(got, want) {
		rt.Fatalf("stored %v, want %v", got, want)
	}
}
