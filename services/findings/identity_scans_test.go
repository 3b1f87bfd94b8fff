package findings_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingmatch"
	"github.com/palisade/palisade/ent/identitychange"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apitest"
)

// hit is a result of a report.
type hit struct {
	file, code string
	line       int
}

func (h hit) String() string { return fmt.Sprintf("%s:%d", h.file, h.line) }

func reportOf(t testing.TB, hits ...hit) []byte {
	t.Helper()
	results := []any{}
	for _, h := range hits {
		results = append(results, map[string]any{
			"ruleId": "py.sqli", "message": map[string]any{"text": "query from input"},
			"locations": []any{map[string]any{"physicalLocation": map[string]any{
				"artifactLocation": map[string]any{"uri": h.file},
				"region":           map[string]any{"startLine": h.line, "snippet": map[string]any{"text": h.code}},
			}}},
		})
	}
	raw, err := json.Marshal(map[string]any{"version": "2.1.0", "runs": []any{map[string]any{
		"tool": map[string]any{"driver": map[string]any{"name": "opengrep", "rules": []any{map[string]any{"id": "py.sqli"}}}}, "results": results,
		"invocations": []any{map[string]any{"executionSuccessful": true}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// scanned uploads a report and returns its counts: created, updated, unchanged, reopened, fixed.
func scanned(t testing.TB, s *apitest.Server, project, ref string, hits ...hit) string {
	t.Helper()
	var n struct{ Created, Updated, Unchanged, Reopened, Fixed int }
	if err := json.Unmarshal([]byte(s.Upload(t, project, ref, reportOf(t, hits...))), &n); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("created %d, updated %d, unchanged %d, reopened %d, fixed %d", n.Created, n.Updated, n.Unchanged, n.Reopened, n.Fixed)
}

func want(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// again requires that a repeated scan changes nothing.
func again(t testing.TB, s *apitest.Server, project, ref string, hits ...hit) {
	t.Helper()
	before, events := snapshot(t, s), s.Store.Reader.FindingEvent.Query().CountX(s.System(t))
	want(t, "the same scan again", scanned(t, s, project, ref, hits...),
		fmt.Sprintf("created 0, updated 0, unchanged %d, reopened 0, fixed 0", len(hits)))
	if after := snapshot(t, s); after != before {
		t.Errorf("the repeated scan changed\n%s\nto\n%s", before, after)
	}
	if now := s.Store.Reader.FindingEvent.Query().CountX(s.System(t)); now != events {
		t.Errorf("the repeated scan wrote %d events", now-events)
	}
}

// ignore sets the triage state of a finding to ignored.
func ignore(t testing.TB, s *apitest.Server, id int64) {
	t.Helper()
	body := fmt.Sprintf(`{"issue_type":"sast","new_triage_state":"ignored","new_triage_reason":"acceptable_risk","issue_ids":[%d]}`, id)
	if answer := s.Do(t, s.Token, http.MethodPost, triagePath, body); answer.Status != http.StatusOK {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
}

func TestSplitSurvivesScans(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := &fixture{Tenant: s.Tenant, findings: map[string]int64{"a": 1}}
		first := hit{"app/db.py", "cursor.execute(query + name)", 12}
		edited := hit{"app/db.py", "cursor.execute(statement + title)", 12}
		scanned(t, s, "acme/web", "main", first)
		ignore(t, s, 1)
		want(t, "edited", scanned(t, s, "acme/web", "main", edited), "created 0, updated 1, unchanged 0, reopened 0, fixed 0")
		if body := l.explain(t, s, "a"); !strings.Contains(body, `"outcome":"joined"`) || !strings.Contains(body, `"version":4`) {
			t.Errorf("explained: %s", body)
		}
		joined := snapshot(t, s)
		again(t, s, "acme/web", "main", edited)
		if body := l.explain(t, s, "a"); !strings.Contains(body, `"outcome":"seen"`) || !strings.Contains(body, `"earlier":[{"scanId":"2"`) {
			t.Errorf("explained after the next scan: %s", body)
		}

		fresh := otherOf(t, l.split(t, s, http.StatusOK, "a"))
		again(t, s, "acme/web", "main", edited)
		wantRow(t, s, 1, "* fixed ignored fixed app/db.py:12")
		wantRow(t, s, fresh, "* unresolved untriaged open app/db.py:12")
		l.undo(t, s, http.StatusOK, 1)
		if after := snapshot(t, s); after != joined {
			t.Errorf("undoing left\n%s\nnot\n%s", after, joined)
		}
		again(t, s, "acme/web", "main", edited)

		// After a split, the result moves, and then the old code returns.
		fresh = otherOf(t, l.split(t, s, http.StatusOK, "a"))
		moved := edited
		moved.line = 40
		scanned(t, s, "acme/web", "main", moved)
		wantRow(t, s, fresh, "* unresolved untriaged open app/db.py:40")
		l.undo(t, s, http.StatusOK, 2)
		wantRow(t, s, 1, "* unresolved ignored ignored app/db.py:40")
		again(t, s, "acme/web", "main", moved)
		l.findings["a"] = 1
		fresh = otherOf(t, l.split(t, s, http.StatusOK, "a"))
		want(t, "both are in the code", scanned(t, s, "acme/web", "main", first, moved), "created 0, updated 0, unchanged 1, reopened 1, fixed 0")
		wantRow(t, s, 1, "* unresolved ignored ignored app/db.py:12")
		wantRow(t, s, fresh, "* unresolved untriaged open app/db.py:40")
		if text := l.undo(t, s, http.StatusBadRequest, 3); !strings.Contains(text, "the latest scan of refs/heads/main reported both") {
			t.Errorf("undo with both in the code: %s", text)
		}
		again(t, s, "acme/web", "main", first, moved)
	})
}

func TestMergeSurvivesScans(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := &fixture{Tenant: s.Tenant, findings: map[string]int64{"a": 1, "b": 2}}
		first := hit{"app/db.py", "cursor.execute(query + name)", 12}
		rewritten := hit{"lib/store/rows.py", "return session.run(text % arguments)", 300}
		scanned(t, s, "acme/web", "main", first)
		ignore(t, s, 1)
		want(t, "rewritten", scanned(t, s, "acme/web", "main", rewritten), "created 1, updated 0, unchanged 0, reopened 0, fixed 1")
		want(t, "on dev", scanned(t, s, "acme/web", "dev", rewritten), "created 1, updated 0, unchanged 0, reopened 0, fixed 0")
		before := snapshot(t, s)
		l.merge(t, s, http.StatusOK, "b", "a")
		wantRow(t, s, 1, "* unresolved ignored ignored lib/store/rows.py:300")
		wantRow(t, s, 3, rowOf(t, s, 1).Fingerprint+" unresolved ignored ignored lib/store/rows.py:300")
		again(t, s, "acme/web", "main", rewritten)
		again(t, s, "acme/web", "dev", rewritten)
		l.undo(t, s, http.StatusOK, 1)
		if after := snapshot(t, s); after != before {
			t.Errorf("undoing left\n%s\nnot\n%s", after, before)
		}
		again(t, s, "acme/web", "main", rewritten)

		// A finding on a new ref gets the identity with the same evidence.
		l.merge(t, s, http.StatusOK, "b", "a")
		scanned(t, s, "acme/web", "feature", rewritten)
		wantRow(t, s, 4, rowOf(t, s, 1).Fingerprint+" unresolved ignored ignored lib/store/rows.py:300")
		l.undo(t, s, http.StatusOK, 2)
		wantRow(t, s, 4, rowOf(t, s, 2).Fingerprint+" unresolved untriaged open lib/store/rows.py:300")
		again(t, s, "acme/web", "feature", rewritten)
		// Two findings in the code cannot be merged.
		scanned(t, s, "acme/web", "main", first, rewritten)
		if text := l.merge(t, s, http.StatusBadRequest, "b", "a"); !strings.Contains(text, "the latest scan of refs/heads/main reported both") {
			t.Errorf("merge of two results: %s", text)
		}
	})
}

// pool holds results for random reports: some share a shape, some share code, some are distinct.
var pool = []hit{
	{"a.py", "cursor.execute(query + name)", 10}, {"a.py", "cursor.execute(text + title)", 10}, {"a.py", "cursor.execute(query + name)", 50},
	{"b.py", "cursor.execute(query + name)", 10}, {"b.py", "return session.run(text % arguments)", 80}, {"c/d.py", "db.raw(f'select {column}')", 5},
	{"c/d.py", "db.raw(f'select {row}')", 5}, {"e.py", "os.system(command)", 1},
}

// identityModel runs random scans, decisions and identity changes on one project.
type identityModel struct {
	s       *apitest.Server
	l       *fixture
	name    string
	project int64
	latest  map[string][]hit
}

func (m *identityModel) rows(t testing.TB) []*ent.Finding {
	return m.s.Store.Reader.Finding.Query().Where(finding.ProjectID(m.project)).Order(finding.ByID()).AllX(m.s.System(t))
}

func (m *identityModel) scan(rt *rapid.T, t testing.TB) {
	ref := rapid.SampledFrom([]string{"main", "main", "dev"}).Draw(rt, "ref")
	hits := []hit{}
	for _, h := range pool {
		// Each line of a file has at most one result.
		if rapid.IntRange(0, 2).Draw(rt, h.String()) > 0 && !slices.ContainsFunc(hits, func(o hit) bool { return o.String() == h.String() }) {
			hits = append(hits, h)
		}
	}
	before := map[int64]*ent.Finding{}
	if m.project != 0 {
		for _, row := range m.rows(t) {
			before[row.ID] = row
		}
	}
	scanned(t, m.s, m.name, ref, hits...)
	m.latest["refs/heads/"+ref] = hits
	if m.project == 0 {
		m.project = m.s.Store.Reader.Project.Query().Where(project.Name(m.name)).OnlyIDX(m.s.System(t))
	}
	for _, row := range m.rows(t) {
		if old := before[row.ID]; old != nil && (old.TriageState != row.TriageState || old.Fingerprint != row.Fingerprint) {
			rt.Fatalf("a scan changed finding %d from %s %s to %s %s", row.ID, old.Fingerprint, old.TriageState, row.Fingerprint, row.TriageState)
		}
	}
}

// check requires that each result of the latest scans has one open finding, and that findings of one identity share
// decisions.
func (m *identityModel) check(rt *rapid.T, t testing.TB) {
	places, decisions := map[string][]string{}, map[string]string{}
	for _, row := range m.rows(t) {
		if row.MergedInto != nil {
			if row.State != lifecycle.Removed || row.Status != lifecycle.Removed {
				rt.Fatalf("finding %d was merged and is %s, %s", row.ID, row.State, row.Status)
			}
			continue
		}
		if row.Status != lifecycle.Status(row.State, row.TriageState) {
			rt.Fatalf("finding %d: %s, %s and status %s", row.ID, row.State, row.TriageState, row.Status)
		}
		if other, known := decisions[row.Fingerprint]; known && other != row.TriageState {
			rt.Fatalf("findings of the identity %s are %s and %s", row.Fingerprint, other, row.TriageState)
		}
		decisions[row.Fingerprint] = row.TriageState
		if !lifecycle.Seen(row.State) {
			continue
		}
		content, err := blob.Decode(row.Content)
		if err != nil {
			rt.Fatal(err)
		}
		at := content.GetLocation()
		places[row.Ref] = append(places[row.Ref], fmt.Sprintf("%s:%d", at.GetFilePath(), at.GetLine()))
	}
	for ref, hits := range m.latest {
		wanted := []string{}
		for _, h := range hits {
			wanted = append(wanted, h.String())
		}
		slices.Sort(wanted)
		slices.Sort(places[ref])
		if !slices.Equal(places[ref], wanted) {
			rt.Fatalf("open on %s: %q, want %q", ref, places[ref], wanted)
		}
	}
}

// change sends an identity change. A refused change, and a change that is undone at once, must change nothing.
func (m *identityModel) change(rt *rapid.T, t testing.TB, path, body string) {
	before := snapshot(t, m.s)
	answer := m.s.Do(t, m.s.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/%s", m.s.DeploymentID, path), body)
	if answer.Status == http.StatusBadRequest {
		if after := snapshot(t, m.s); after != before {
			rt.Fatalf("%s %s was refused (%s) and changed\n%s\nto\n%s", path, body, answer.Body, before, after)
		}
		return
	}
	if answer.Status != http.StatusOK {
		rt.Fatalf("%s %s: %d %s", path, body, answer.Status, answer.Body)
	}
	m.check(rt, t)
	if strings.HasSuffix(path, "undo") || !rapid.Bool().Draw(rt, "undo at once") {
		return
	}
	last := m.s.Store.Reader.IdentityChange.Query().Order(ent.Desc(identitychange.FieldID)).FirstX(m.s.System(t))
	m.l.undo(t, m.s, http.StatusOK, last.ID)
	// The finding that a split created is removed then, so neither snapshot has it.
	if after := snapshot(t, m.s); after != before {
		rt.Fatalf("%s, undone, left\n%s\nnot\n%s", path, after, before)
	}
}

func (m *identityModel) step(rt *rapid.T, t testing.TB) {
	rows := m.rows(t)
	pick := func(label string) int64 {
		if len(rows) == 0 {
			return 99999
		}
		return rows[rapid.IntRange(0, len(rows)-1).Draw(rt, label)].ID
	}
	switch rapid.SampledFrom([]string{"scan", "scan", "ignore", "split", "split", "merge", "merge", "undo"}).Draw(rt, "step") {
	case "scan":
		m.scan(rt, t)
	case "ignore":
		if len(rows) > 0 {
			ignore(t, m.s, pick("ignored"))
		}
	case "split":
		if joined := m.joined(t); len(joined) > 0 && rapid.Bool().Draw(rt, "a joined one") {
			m.change(rt, t, fmt.Sprintf("findings/%d/split", rapid.SampledFrom(joined).Draw(rt, "split")), `{}`)
		} else if len(rows) > 0 {
			m.change(rt, t, fmt.Sprintf("findings/%d/split", pick("split")), `{}`)
		}
	case "merge":
		if len(rows) > 0 {
			m.change(rt, t, fmt.Sprintf("findings/%d/merge", pick("from")), fmt.Sprintf(`{"into":%d}`, pick("into")))
		}
	case "undo":
		changes := m.s.Store.Reader.IdentityChange.Query().Where(identitychange.ProjectID(m.project)).IDsX(m.s.System(t))
		if len(changes) > 0 {
			m.change(rt, t, fmt.Sprintf("identity-changes/%d/undo", rapid.SampledFrom(changes).Draw(rt, "undo")), `{}`)
		}
	}
	m.check(rt, t)
}

// joined returns the findings that a scan joined by evidence that was not exact.
func (m *identityModel) joined(t testing.TB) (ids []int64) {
	for _, row := range m.s.Store.Reader.FindingMatch.Query().Where(findingmatch.RungNEQ("")).Order(findingmatch.ByID()).AllX(m.s.System(t)) {
		ids = append(ids, row.FindingID)
	}
	return ids
}

func TestIdentitiesUnderRandomChanges(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		run := 0
		rapid.Check(t, func(rt *rapid.T) {
			run++
			m := &identityModel{s: s, l: &fixture{Tenant: s.Tenant}, name: fmt.Sprintf("acme/model-%d", run), latest: map[string][]hit{}}
			m.scan(rt, t)
			m.check(rt, t)
			for range rapid.IntRange(4, 25).Draw(rt, "steps") {
				m.step(rt, t)
			}
			for ref, hits := range m.latest {
				again(t, s, m.name, strings.TrimPrefix(ref, "refs/heads/"), hits...)
			}
		})
	})
}
