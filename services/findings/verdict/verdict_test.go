package verdict_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// world is a store with a project, and the context of its deployment.
type world struct {
	*store.Store
	ctx       context.Context
	projectID int64
}

func each(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		w := &world{Store: st, ctx: tenant.NewContext(t.Context(), 1)}
		w.write(t, func(ctx context.Context, tx *ent.Tx) error {
			p, err := tx.Project.Create().SetName("acme/web").SetNameKey("acme/web").SetCreatedAt(1).Save(ctx)
			if err == nil {
				w.projectID = p.ID
			}
			return err
		})
		test(t, w)
	})
}

func (w *world) write(t *testing.T, fn func(ctx context.Context, tx *ent.Tx) error) {
	t.Helper()
	if err := w.Write(w.ctx, fn); err != nil {
		t.Fatal(err)
	}
}

// add stores a finding. history has the kinds and actors of events, such as "triaged user".
func (w *world) add(t *testing.T, print, kind, state, triage string, history ...string) (id int64) {
	t.Helper()
	content, err := blob.Encode(&storev1.FindingContent{Message: "about input", ClickToFixPrs: []*findingsv1.ClickToFixPr{{Url: "https://git.acme.test/1"}}})
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Finding.Create().SetProjectID(w.projectID).SetRuleID(1).SetFirstSeenScanID(1).SetRef("refs/heads/main").SetTool("test").
			SetAnalysisCategory("").SetFingerprint(print).SetIssueType(kind).SetSeverity("high").SetState(state).SetTriageState(triage).
			SetStatus(lifecycle.Status(state, triage)).SetCreatedAt(1).SetRelevantSince(1).SetStateUpdatedAt(1).SetContentHash(5).SetContent(content).Save(ctx)
		if err != nil {
			return err
		}
		id = row.ID
		for _, h := range history {
			what, who, _ := strings.Cut(h, " ")
			err := tx.FindingEvent.Create().SetFindingID(id).SetKind(what).SetFromStatus("open").SetToStatus("open").SetActorKind(who).SetActorID(1).SetAt(1).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return id
}

func (w *world) apply(t *testing.T, v verdict.Verdict) (applied bool, after *ent.Finding) {
	t.Helper()
	v.ActorKind, v.ActorID = verdict.ActorWorkflow, 7
	w.write(t, func(ctx context.Context, tx *ent.Tx) (err error) {
		applied, err = verdict.Apply(ctx, w.Store, tx, v)
		return err
	})
	return applied, w.Reader.Finding.Query().Where(finding.ID(v.FindingID)).OnlyX(w.ctx)
}

func TestWhoseDecisionsCount(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			name, kind, state, triage string
			history                   []string
			value                     string
			hash                      int64
			want                      string // status; empty: as before
		}{
			{name: "open", kind: "sast", value: "false_positive", want: "provisionally_ignored"},
			{name: "open and unchanged", kind: "sast", value: "false_positive", hash: 5, want: "provisionally_ignored"},
			{name: "changed since", kind: "sast", value: "false_positive", hash: 6},
			{name: "real", kind: "sast", value: "true_positive"},
			{name: "no verdict", kind: "sast"},
			{name: "by AI detection", kind: "ai_sast", value: "false_positive"},
			{name: "dependency", kind: "sca", value: "false_positive"},
			{name: "secret", kind: "secrets", value: "false_positive"},
			{name: "fixed", kind: "sast", state: "fixed", value: "false_positive"},
			{name: "muted", kind: "sast", state: "muted", value: "false_positive"},
			{name: "reopened", kind: "sast", triage: "reopened", value: "false_positive"},
			{name: "reviewing", kind: "sast", triage: "reviewing", value: "false_positive"},
			{name: "triaged before", kind: "sast", history: []string{"triaged user"}, value: "false_positive"},
			{name: "triaged by token", kind: "sast", history: []string{"triaged token"}, value: "false_positive"},
			{name: "triaged at the host", kind: "sast", history: []string{"triaged host"}, value: "false_positive"},
			{name: "triaged on another ref", kind: "sast", history: []string{"triage_inherited scan"}, value: "false_positive"},
			{name: "seen by automation before", kind: "sast", history: []string{"autotriaged job", "updated scan", "noted user"}, value: "false_positive", want: "provisionally_ignored"},
			{name: "lifted", kind: "sast", triage: "provisionally_ignored", history: []string{"autotriaged workflow"}, value: "true_positive", want: "open"},
			{name: "provisionally ignored by a person", kind: "sast", triage: "provisionally_ignored", history: []string{"triaged user"}, value: "true_positive"},
			{name: "still false", kind: "sast", triage: "provisionally_ignored", history: []string{"autotriaged job"}, value: "false_positive"},
		} {
			if c.state == "" {
				c.state = lifecycle.Unresolved
			}
			if c.triage == "" {
				c.triage = lifecycle.Untriaged
			}
			id := w.add(t, c.name, c.kind, c.state, c.triage, c.history...)
			before := w.Reader.Finding.Query().Where(finding.ID(id)).OnlyX(w.ctx)
			applied, after := w.apply(t, verdict.Verdict{FindingID: id, Value: c.value, Reason: "because", ContentHash: c.hash})
			want := c.want
			if want == "" {
				want = before.Status
			}
			if after.Status != want || applied != (c.want != "") || (after.TriageState != before.TriageState) != applied {
				t.Errorf("%s: %s %s became %s %s, %t", c.name, before.Status, before.TriageState, after.Status, after.TriageState, applied)
			}
			if c.value != "" && *after.AutotriageVerdict != c.value || c.value == "" && after.AutotriageVerdict != nil {
				t.Errorf("%s: verdict %v", c.name, after.AutotriageVerdict)
			}
		}
	})
}

func TestEventsAndContent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		id := w.add(t, "a", "sast", lifecycle.Unresolved, lifecycle.Untriaged)
		long := strings.Repeat("é\u202e", 5000)
		for range 2 { // repeating it changes nothing
			w.apply(t, verdict.Verdict{FindingID: id, Value: verdict.TruePositive, Reason: long, GuidanceSummary: "Use parameters.", GuidanceText: "1. …",
				FixCode: "run(?)", FixExplanation: "no text", ComponentTag: " user\ndata ", ComponentRisk: "extreme"})
		}
		_, row := w.apply(t, verdict.Verdict{FindingID: id}) // an empty verdict changes nothing
		events := w.Reader.FindingEvent.Query().Where(findingevent.FindingID(id)).AllX(w.ctx)
		if len(events) != 1 || events[0].Kind != verdict.EventKind || events[0].Reason != "true_positive" || events[0].ActorKind != "workflow" || events[0].ActorID != 7 ||
			events[0].FromStatus != "open" || events[0].ToStatus != "open" {
			t.Errorf("%v", events)
		}
		content, err := blob.Decode(row.Content)
		if err != nil {
			t.Fatal(err)
		}
		said := content.GetAssistant()
		reason := said.GetAutotriage().GetReason()
		if utf8.RuneCountInString(reason) != verdict.MaxReason || strings.Contains(reason, "\u202e") || said.GetAutofix().GetFixCode() != "run(?)" ||
			said.GetGuidance().GetInstructions() != "1. …" || said.GetComponent().GetRisk() != "neutral" || *row.ComponentTag != "user data" {
			t.Errorf("%v", said)
		}
		if content.GetMessage() != "about input" || len(content.GetClickToFixPrs()) != 1 {
			t.Errorf("%v", content)
		}
		fresh := &storev1.FindingContent{Message: "new text"}
		verdict.Keep(content, fresh)
		if !proto.Equal(fresh.GetAssistant(), said) || len(fresh.GetClickToFixPrs()) != 1 || fresh.GetMessage() != "new text" {
			t.Errorf("%v", fresh)
		}
	})
}

func TestRefusedVerdicts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		id := w.add(t, "a", "sast", lifecycle.Unresolved, lifecycle.Untriaged)
		try := func(ctx context.Context, v verdict.Verdict) error {
			return w.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
				_, err := verdict.Apply(ctx, w.Store, tx, v)
				return err
			})
		}
		for _, bad := range []string{"ignored", "FALSE_POSITIVE", "fixed"} {
			if err := try(w.ctx, verdict.Verdict{FindingID: id, Value: bad}); !errors.Is(err, verdict.ErrUnknownVerdict) {
				t.Errorf("%s: %v", bad, err)
			}
		}
		if err := try(w.ctx, verdict.Verdict{FindingID: id + 1, Value: verdict.TruePositive}); !ent.IsNotFound(err) {
			t.Errorf("no such finding: %v", err)
		}
		other := tenant.NewContext(t.Context(), 2)
		if err := try(other, verdict.Verdict{FindingID: id, Value: verdict.TruePositive}); !ent.IsNotFound(err) {
			t.Errorf("another tenant's finding: %v", err)
		}
	})
}
