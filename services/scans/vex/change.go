package vex

import (
	"context"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/formats"
)

// owner says who decided about a finding, on any ref.
type owner struct {
	person, statement bool
	// notes are the notes of statements.
	notes []string
}

// ownersOf reads who decided about findings, by their fingerprint.
func (a *application) ownersOf(ctx context.Context, rulings []ruling) (map[string]*owner, error) {
	owners := map[string]*owner{}
	var prints []string
	for _, r := range rulings {
		if owners[r.Fingerprint] == nil {
			owners[r.Fingerprint] = &owner{}
			prints = append(prints, r.Fingerprint)
		}
	}
	twins, err := a.tx.Finding.Query().Where(finding.ProjectID(a.ProjectID), store.OneOf(finding.FieldFingerprint, prints)).
		Select(finding.FieldID, finding.FieldFingerprint).All(ctx)
	if err != nil {
		return nil, err
	}
	ids, printOf := make([]int64, len(twins)), make(map[int64]string, len(twins))
	for i, twin := range twins {
		ids[i], printOf[twin.ID] = twin.ID, twin.Fingerprint
	}
	events, err := a.tx.FindingEvent.Query().Where(findingevent.KindIn("triaged", "triage_spread", "noted"),
		func(s *entsql.Selector) { s.Where(store.InIDs(s.C(findingevent.FieldFindingID), ids)) }).
		Select(findingevent.FieldFindingID, findingevent.FieldKind, findingevent.FieldActorKind, findingevent.FieldNote).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		o := owners[printOf[e.FindingID]]
		if e.ActorKind != Actor {
			o.person = o.person || e.Kind != "noted"
			continue
		}
		o.statement = o.statement || e.Kind != "noted"
		o.notes = append(o.notes, e.Note)
	}
	return owners, nil
}

// change is a finding after a decision.
type change struct {
	ruling
	kind, state, reason, comment, status string
	triagedAt                            *int64
}

// change returns what the statement changes, or nil. kept says that a person's decision stays.
func (r ruling) change(of *owner, now int64) (c *change, kept bool) {
	decided := r.TriageState != lifecycle.Untriaged
	switch {
	case r.State == lifecycle.Muted, of.person, decided && !of.statement:
		return nil, true
	case r.TriagedAt != nil && r.by.decidedAt(now) < *r.TriagedAt:
		return nil, false // a newer statement decided
	}
	c = &change{
		ruling: r, kind: "noted", state: r.TriageState, reason: text(r.TriageReason), comment: text(r.TriageComment), status: r.Status, triagedAt: r.TriagedAt,
	}
	free := c.comment == "" || slices.Contains(of.notes, c.comment)
	switch r.by.Status {
	case formats.NotAffected, formats.FalsePositive:
		c.decide(lifecycle.Ignored, r.by.reason(), now)
	case formats.Investigating:
		c.decide(lifecycle.Reviewing, "", now)
	case formats.Affected:
		if !decided {
			return nil, false // it is open already
		}
		c.decide(lifecycle.Reopened, "", now)
	case formats.FixedStatus:
		if !free {
			return nil, true
		}
	}
	if free {
		c.comment = r.by.note()
	}
	newer := r.by.isTimed(now) && c.triagedAt != nil && (r.TriagedAt == nil || *c.triagedAt > *r.TriagedAt)
	if c.state == r.TriageState && c.reason == text(r.TriageReason) && c.comment == text(r.TriageComment) && !newer {
		return nil, false
	}
	return c, false
}

func (c *change) decide(state, reason string, now int64) {
	at := c.by.decidedAt(now)
	c.kind, c.state, c.reason, c.triagedAt = "triaged", state, reason, &at
	c.status = lifecycle.Status(c.State, state)
}

func text(optional *string) string {
	if optional == nil {
		return ""
	}
	return *optional
}
