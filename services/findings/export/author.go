package export

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/store"
)

// identitiesAtOnce bounds how many identities are read at once: each has a finding on every ref.
const identitiesAtOnce = 100

// decisionKinds are the kinds of events of decisions. An event of a scan that took a decision over has no author, so
// triage_inherited is missing.
var decisionKinds = []string{"triaged", "triage_spread"}

// deciders finds the events of the decisions in effect. The time of a decision names its event, whichever finding has
// it: a scan, a merge or an undo copies the time.
type deciders struct {
	db     *ent.Client
	byTime map[int64]*ent.FindingEvent // nil: no decision was stored at that time
}

// of returns the events of the decisions about findings of one project, by the id of the finding.
func (d *deciders) of(ctx context.Context, rows []*exported) (map[int64]*ent.FindingEvent, error) {
	found := map[int64]*ent.FindingEvent{}
	var missing []*exported
	for _, e := range rows {
		if e.TriageState != lifecycle.Ignored && e.TriageState != lifecycle.ProvisionallyIgnored {
			continue
		}
		if event := ownDecision(e); event != nil {
			found[e.ID] = event
		} else {
			missing = append(missing, e)
		}
	}
	if err := d.readTimes(ctx, missing); err != nil {
		return nil, err
	}
	missing = slices.DeleteFunc(missing, func(e *exported) bool {
		event := d.byTime[number64(e.TriagedAt)]
		if event != nil {
			found[e.ID] = event
		}
		return event != nil
	})
	for part := range slices.Chunk(missing, identitiesAtOnce) {
		if err := d.late(ctx, part, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// ownDecision is the event of the finding itself that has the time of its decision.
func ownDecision(e *exported) *ent.FindingEvent {
	for _, event := range e.events {
		if event.At == number64(e.TriagedAt) && (slices.Contains(decisionKinds, event.Kind) || event.Kind == verdict.EventKind) {
			return event
		}
	}
	return nil
}

// readTimes reads an event for each time of a decision.
func (d *deciders) readTimes(ctx context.Context, rows []*exported) error {
	if len(d.byTime) > keptEntries {
		clear(d.byTime)
	}
	var times []int64
	for _, e := range rows {
		if _, known := d.byTime[number64(e.TriagedAt)]; !known && e.TriagedAt != nil {
			d.byTime[*e.TriagedAt] = nil
			times = append(times, *e.TriagedAt)
		}
	}
	if len(times) == 0 {
		return nil
	}
	var first []struct {
		At int64 `sql:"at"`
		ID int64 `sql:"min"`
	}
	// A bulk decision has an event for each of its findings at the same time.
	err := d.db.FindingEvent.Query().Where(store.OneOf(findingevent.FieldAt, times), findingevent.KindIn(decisionKinds...)).
		GroupBy(findingevent.FieldAt).Aggregate(ent.Min(findingevent.FieldID)).Scan(ctx, &first)
	if err != nil {
		return fmt.Errorf("read the times of decisions: %w", err)
	}
	ids := make([]int64, len(first))
	for n, row := range first {
		ids[n] = row.ID
	}
	events, err := d.db.FindingEvent.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(findingevent.FieldID), ids)) }).All(ctx)
	if err != nil {
		return fmt.Errorf("read decisions: %w", err)
	}
	for _, event := range events {
		d.byTime[event.At] = event
	}
	return nil
}

// late finds decisions that were stored later than they were made, such as comments and VEX documents: the latest event
// on any ref since then with the reason of the decision, unless it was undone.
func (d *deciders) late(ctx context.Context, rows []*exported, found map[int64]*ent.FindingEvent) error {
	prints := make([]string, len(rows))
	for n, e := range rows {
		prints[n] = e.Fingerprint
	}
	type twin struct {
		ID          int64  `sql:"id"`
		Fingerprint string `sql:"fingerprint"`
	}
	var twins []twin
	err := d.db.Finding.Query().Where(finding.ProjectID(rows[0].ProjectID), store.OneOf(finding.FieldFingerprint, prints)).
		Select(finding.FieldID, finding.FieldFingerprint).Scan(ctx, &twins)
	if err != nil {
		return fmt.Errorf("read findings on other refs: %w", err)
	}
	ids := make([]int64, len(twins))
	for n, t := range twins {
		ids[n] = t.ID
	}
	events, err := d.db.FindingEvent.Query().Where(findingevent.KindIn(append(decisionKinds, "triage_undone")...),
		func(s *entsql.Selector) { s.Where(store.InIDs(s.C(findingevent.FieldFindingID), ids)) }).Order(ent.Asc(findingevent.FieldID)).All(ctx)
	if err != nil {
		return fmt.Errorf("read decisions on other refs: %w", err)
	}
	standing := map[int64][]*ent.FindingEvent{} // by finding
	for _, event := range events {
		list := standing[event.FindingID]
		if event.Kind != "triage_undone" {
			list = append(list, event)
		} else if len(list) > 0 {
			list = list[:len(list)-1]
		}
		standing[event.FindingID] = list
	}
	byPrint := map[string][]*ent.FindingEvent{}
	for _, t := range twins {
		byPrint[t.Fingerprint] = append(byPrint[t.Fingerprint], standing[t.ID]...)
	}
	for _, e := range rows {
		for _, event := range byPrint[e.Fingerprint] {
			since := event.At >= number64(e.TriagedAt) && event.Reason == text(e.TriageReason)
			if since && (found[e.ID] == nil || found[e.ID].ID < event.ID) {
				found[e.ID] = event
			}
		}
	}
	return nil
}

// authorOf is who made the decision about a finding; empty if unknown. A scan takes over what users of a tool decided.
func authorOf(e *exported, event *ent.FindingEvent, names map[actor]string) string {
	told := e.content.GetSuppression()
	switch {
	case event == nil:
		return ""
	case event.ActorKind == "scan" && told.GetKind() == "external":
		return told.GetAuthor()
	}
	return firstOf(event.ActorName, names[actor{event.ActorKind, event.ActorID}])
}
