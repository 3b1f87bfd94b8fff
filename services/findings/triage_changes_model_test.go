package findings_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apitest"
)

// modelDecision is a decision about a finding in the model. by names the decision that set the time; 0 is none.
type modelDecision struct {
	state, reason, note string
	by                  int64
}

// modelEntry is a finding in a change: before and after it.
type modelEntry struct{ before, after modelDecision }

// modelChange is a change in the model.
type modelChange struct {
	id, undoes int64
	entries    map[string]modelEntry
}

// triageModel says what the API has to do. It keeps every change with what it found and left.
type triageModel struct {
	s        *apitest.Server
	l        *fixture
	prints   map[string]string // identity by label
	states   map[string]string // state from scans by label
	now      map[string]modelDecision
	changes  []*modelChange
	external int64
}

func newTriageModel(rt *rapid.T, t testing.TB, s *apitest.Server) *triageModel {
	m := &triageModel{s: s, prints: map[string]string{}, states: map[string]string{}, now: map[string]modelDecision{}}
	tenant := s.AddTenant(t, fmt.Sprintf("t%d", s.Store.Reader.Deployment.Query().CountX(s.System(t))))
	m.l = seedFixture(t, s, tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
	var facts []fact
	for n := range rapid.IntRange(2, 10).Draw(rt, "findings") {
		f := fact{label: fmt.Sprint("f", n), print: fmt.Sprint(n / 2), ref: []string{mainRef, devRef}[n%2], project: []string{"acme/web", "acme/api"}[n/2%2]}
		f.state = rapid.SampledFrom([]string{lifecycle.Unresolved, lifecycle.Unresolved, lifecycle.Muted, lifecycle.Fixed, lifecycle.Removed}).Draw(rt, "state")
		facts = append(facts, f)
		m.prints[f.label], m.states[f.label] = f.project+f.print, f.state
		m.now[f.label] = modelDecision{state: lifecycle.Untriaged}
	}
	m.l.seed(t, s, facts...)
	return m
}

func (m *triageModel) labels() []string {
	var labels []string
	for label := range m.now {
		labels = append(labels, label)
	}
	slices.Sort(labels)
	return labels
}

// choose draws findings, and returns their ids as JSON.
func (m *triageModel) choose(rt *rapid.T) (labels []string, ids string) {
	var list []string
	for _, label := range m.labels() {
		if rapid.IntRange(0, 2).Draw(rt, label) == 0 {
			list = append(list, fmt.Sprintf(`"%d"`, m.l.findings[label]))
			if m.states[label] != lifecycle.Removed {
				labels = append(labels, label)
			}
		}
	}
	return labels, "[" + cmp.Or(strings.Join(list, ","), "987654") + "]"
}

// update draws a decision, previews it, makes it, and compares both with the model.
func (m *triageModel) update(rt *rapid.T, t testing.TB) {
	chosen, ids := m.choose(rt)
	d := modelDecision{state: rapid.SampledFrom([]string{"", "ignored", "reviewing", "reopened", "provisionally_ignored"}).Draw(rt, "decision")}
	if d.note = rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "note"); d.state == "" && d.note == "" {
		d.note = "x"
	}
	params := `"note":"` + d.note + `"`
	if d.state != "" {
		params += `,"triageState":"FINDING_TRIAGE_STATE_` + strings.ToUpper(d.state) + `"`
	}
	if d.state == "ignored" {
		d.reason = rapid.SampledFrom([]string{"no_time", "duplicate"}).Draw(rt, "reason")
		params += `,"triageReason":"FINDING_TRIAGE_REASON_` + strings.ToUpper(d.reason) + `"`
	}
	request := `"filter":{"ids":` + ids + `},"params":{` + params + `}`
	shown := bulk(t, m.s, m.l.Token, http.MethodPost, bulkPath(m.l.Tenant, "preview"), "{"+request+"}")
	conflict := rapid.IntRange(0, 3).Draw(rt, "meanwhile") == 0 && m.scan(rt, t, chosen)
	answer := m.s.Do(t, m.l.Token, http.MethodPatch, bulkPath(m.l.Tenant), `{"previewToken":"`+shown.PreviewToken+`",`+request+"}")
	if conflict {
		if answer.Status != http.StatusConflict {
			rt.Fatalf("%s after a change since the preview: %d %s", request, answer.Status, answer.Body)
		}
		return
	}
	if answer.Status != http.StatusOK {
		rt.Fatalf("%s: %d %s", request, answer.Status, answer.Body)
	}
	affected := m.affected(chosen, d)
	numbers := fmt.Sprintf(`"issueParentCount":%d,"issueCount":%d,"updatedCount":%d`, m.identities(chosen), len(chosen), m.changed(affected, d))
	if !strings.Contains(answer.Body, numbers) {
		rt.Fatalf("%s: got %s, want %s", request, answer.Body, numbers)
	}
	if previewed := fmt.Sprintf(`"issueParentCount":%d,"issueCount":%d,"updatedCount":%d`, shown.IssueParentCount, shown.IssueCount, shown.UpdatedCount); previewed != numbers {
		rt.Fatalf("%s: previewed %s, changed %s", request, previewed, numbers)
	}
	m.record(rt, answer.Header.Get("X-Change-Id"), affected, d)
}

// affected are the chosen findings and, if the decision spreads, the ones of the same identities.
func (m *triageModel) affected(chosen []string, d modelDecision) []string {
	if d.state == lifecycle.ProvisionallyIgnored {
		return chosen
	}
	return slices.DeleteFunc(m.labels(), func(label string) bool {
		return !slices.ContainsFunc(chosen, func(one string) bool { return m.prints[one] == m.prints[label] })
	})
}

func (m *triageModel) identities(labels []string) int {
	seen := map[string]bool{}
	for _, label := range labels {
		seen[m.prints[label]] = true
	}
	return len(seen)
}

func (m *triageModel) changed(labels []string, d modelDecision) (n int) {
	for _, label := range labels {
		now := m.now[label]
		if d.state != "" && (now.state != d.state || now.reason != d.reason) || d.note != "" && now.note != d.note {
			n++
		}
	}
	return n
}

// record keeps the findings that a decision changes. The others still have their earlier decision, which can be undone.
func (m *triageModel) record(rt *rapid.T, id string, labels []string, d modelDecision) {
	change := &modelChange{entries: map[string]modelEntry{}}
	_, _ = fmt.Sscan(id, &change.id)
	for _, label := range labels {
		before := m.now[label]
		if m.changed([]string{label}, d) == 0 && (d.state == "" || before.by != 0) {
			continue
		}
		after := before
		if d.state != "" {
			after.state, after.reason, after.by = d.state, d.reason, change.id
		}
		after.note = cmp.Or(d.note, before.note)
		change.entries[label] = modelEntry{before, after}
		m.now[label] = after
	}
	if (len(change.entries) == 0) != (change.id == 0) {
		rt.Fatalf("a decision that changes %d findings is change %q", len(change.entries), id)
	}
	if change.id != 0 {
		m.changes = append(m.changes, change)
	}
}

// scan decides about a finding as scans do: without a change. It reports whether it did.
func (m *triageModel) scan(rt *rapid.T, t testing.TB, among []string) bool {
	if len(among) == 0 {
		return false
	}
	label := rapid.SampledFrom(among).Draw(rt, "scanned")
	m.external--
	d := modelDecision{state: lifecycle.Ignored, reason: lifecycle.NoTriageReason, by: m.external}
	err := m.s.Store.Write(m.s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Finding.UpdateOneID(m.l.findings[label]).SetTriageState(d.state).SetTriageReason(d.reason).ClearTriageComment().
			SetTriagedAt(base - m.external).SetStatus(lifecycle.Status(m.states[label], d.state)).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	m.now[label] = d
	return true
}

// undo draws a change and undoes it.
func (m *triageModel) undo(rt *rapid.T, t testing.TB) {
	if len(m.changes) == 0 {
		return
	}
	of := rapid.SampledFrom(m.changes).Draw(rt, "change")
	answer := m.s.Do(t, m.l.Token, http.MethodPost, bulkPath(m.l.Tenant, "undo", fmt.Sprint(of.id)), "{}")
	if m.undone(of) {
		if answer.Status != http.StatusBadRequest {
			rt.Fatalf("a second undo of %d: %d %s", of.id, answer.Status, answer.Body)
		}
		return
	}
	change := &modelChange{undoes: of.id, entries: map[string]modelEntry{}}
	kept := 0
	for label, entry := range of.entries {
		switch {
		case !m.inEffect(of, label):
		case m.now[label] == entry.after && !m.decidedSince(label, of):
			change.entries[label] = modelEntry{m.now[label], entry.before}
		default:
			kept++
		}
	}
	numbers := fmt.Sprintf(`"restoredCount":%d,"keptCount":%d`, len(change.entries), kept)
	if answer.Status != http.StatusOK || !strings.Contains(answer.Body, numbers) {
		rt.Fatalf("undo of %d: got %d %s, want %s", of.id, answer.Status, answer.Body, numbers)
	}
	if len(change.entries) == 0 {
		return
	}
	for label, entry := range change.entries {
		m.now[label] = entry.after
	}
	_, _ = fmt.Sscan(answer.Header.Get("X-Change-Id"), &change.id)
	m.changes = append(m.changes, change)
}

// undone reports whether no finding of a change is left to undo.
func (m *triageModel) undone(c *modelChange) bool {
	for label := range c.entries {
		if m.inEffect(c, label) {
			return false
		}
	}
	return true
}

// inEffect reports whether a change is in effect for a finding. The last of the undos that concern it decides.
func (m *triageModel) inEffect(of *modelChange, label string) bool {
	redoes := map[int64]bool{of.id: true} // the change and its undos, directly or not
	effect := true
	for _, c := range m.changes {
		redo, about := redoes[c.undoes]
		if !about || c.undoes == 0 {
			continue
		}
		redoes[c.id] = !redo
		if _, concerns := c.entries[label]; concerns {
			effect = !redo
		}
	}
	return effect
}

// decidedSince reports whether a later decision about the finding is in effect.
func (m *triageModel) decidedSince(label string, than *modelChange) bool {
	return slices.ContainsFunc(m.changes, func(c *modelChange) bool {
		_, about := c.entries[label]
		return about && c.id > than.id && c.undoes == 0 && m.inEffect(c, label)
	})
}

// check compares the stored findings with the model.
func (m *triageModel) check(rt *rapid.T, t testing.TB) {
	times := map[int64]int64{} // time of each decision
	for _, row := range m.s.Store.Reader.Finding.Query().Where(finding.DeploymentID(m.l.DeploymentID)).AllX(m.s.System(t)) {
		for label, id := range m.l.findings {
			if id != row.ID {
				continue
			}
			want := m.now[label]
			at := int64(0)
			if row.TriagedAt != nil {
				at = *row.TriagedAt
			}
			got := decisionText(row.TriageState, row.TriageReason, row.TriageComment, nil)
			if got != fmt.Sprintf("%s/%s/%s/0", want.state, want.reason, want.note) || row.Status != lifecycle.Status(m.states[label], want.state) {
				rt.Fatalf("%s is %s (%s), want %+v", label, got, row.Status, want)
			}
			if known, ok := times[want.by]; ok && known != at || (want.by == 0) != (at == 0) {
				rt.Fatalf("%s was triaged at %d, want the time of %d", label, at, want.by)
			}
			times[want.by] = at
		}
	}
}

// TestUndoModel: whatever is decided and undone, a preview says what an update changes, and an undo restores what the
// model says.
func TestUndoModel(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		rapid.Check(t, func(rt *rapid.T) {
			m := newTriageModel(rt, t, s)
			for range rapid.IntRange(3, 14).Draw(rt, "steps") {
				switch rapid.IntRange(0, 6).Draw(rt, "step") {
				case 0:
					m.scan(rt, t, m.labels())
				case 1, 2, 3:
					m.undo(rt, t)
				default:
					m.update(rt, t)
				}
				m.check(rt, t)
			}
		})
	})
}
