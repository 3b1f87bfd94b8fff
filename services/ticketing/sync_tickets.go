package ticketing

import (
	"context"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/ticket"
	"github.com/palisade/palisade/ent/ticketinginstance"
	"github.com/palisade/palisade/ent/ticketlink"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/host"
)

const (
	// lateCommit is how long before its commit a finding may have become relevant.
	lateCommit = 10 * time.Minute
	// refusedWait is how long a ticket waits about which the tracker refused a call.
	refusedWait = time.Hour
	// askEvery is how often the tracker is asked for the state of a ticket.
	askEvery = 10 * time.Minute
	// malicious is the product of malicious dependencies in an instance's list.
	malicious = "malicious"
	// actorTracker is the kind of actor of decisions that a closed ticket made.
	actorTracker = "tracker"
)

// createForNew creates tickets for the findings that became relevant since the last run. What the tracker rejected is
// left to people.
func (s *syncing) createForNew(ctx context.Context) error {
	if len(s.instance.Automatic) == 0 {
		return nil
	}
	begun := time.Now()
	where, err := issuefilter.Where(ctx, &findingsv1.IssuesFilter{OnPrimaryBranch: true}, begun)
	if err != nil {
		return err
	}
	where = append(where, finding.Status(lifecycle.Open), finding.RelevantSinceGT(s.instance.AutomaticAfter),
		notRejected(s.instance.DeploymentID, store.Micros(begun.Add(-time.Hour))))
	for _, product := range s.instance.Automatic {
		out, err := s.create(ctx, s.instance, order{group: true, limit: maxTickets}, nil, false, append(slices.Clip(where), automatic(product)...)...)
		switch {
		case err != nil:
			return err
		case out.again != nil:
			return out.again
		case len(out.left) > 0 || out.pending:
			return nil
		}
	}
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		after := max(s.instance.AutomaticAfter, store.Micros(begun.Add(-lateCommit)))
		return tx.TicketingInstance.Update().Where(ticketinginstance.ID(s.instance.ID)).SetAutomaticAfter(after).Exec(ctx)
	})
}

// notRejected selects findings whose ticket was not rejected since a time. One that may exist has a link, and is tried
// again.
func notRejected(deploymentID, since int64) predicate.Finding {
	return func(sel *entsql.Selector) {
		b := entsql.Dialect(sel.Dialect())
		events, links := b.Table(findingevent.Table).As("tries"), b.Table(ticketlink.Table).As("begun")
		tried := b.Select(events.C(findingevent.FieldID)).From(events).Where(entsql.And(
			entsql.EQ(events.C(findingevent.FieldDeploymentID), deploymentID), entsql.ColumnsEQ(events.C(findingevent.FieldFindingID), sel.C(finding.FieldID)),
			entsql.EQ(events.C(findingevent.FieldKind), eventAttempted), entsql.GT(events.C(findingevent.FieldAt), since)))
		begun := b.Select(links.C(ticketlink.FieldID)).From(links).Where(entsql.And(
			entsql.EQ(links.C(ticketlink.FieldDeploymentID), deploymentID), entsql.ColumnsEQ(links.C(ticketlink.FieldFindingID), sel.C(finding.FieldID))))
		sel.Where(entsql.Or(entsql.NotExists(tried), entsql.Exists(begun)))
	}
}

// automatic selects what gets a ticket without a call.
func automatic(product string) []predicate.Finding {
	if product == malicious {
		return []predicate.Finding{finding.IssueType(vocabulary.SCA), finding.Malicious(true)}
	}
	return []predicate.Finding{finding.IssueType(product), finding.SeverityIn(vocabulary.SeverityCritical, vocabulary.SeverityHigh)}
}

// closeDone closes the tickets that we created and whose findings are all done. One that a person has opened again
// stays open until a finding of it was open.
func (s *syncing) closeDone(ctx context.Context) error {
	if s.instance.CloseAt == "" {
		return nil
	}
	undone := []*entsql.Predicate{entsql.NEQ(finding.FieldStatus, lifecycle.Fixed), entsql.NEQ(finding.FieldStatus, lifecycle.Removed)}
	if s.instance.CloseAt == lifecycle.Ignored {
		undone = append(undone, entsql.NEQ(finding.FieldStatus, lifecycle.Ignored))
	}
	rows, err := s.tickets(ctx, ticket.MarkerNEQ(""), ticket.Open(true), ticket.ClosedHere(false), linked(nil), without(entsql.And(undone...)))
	if err != nil {
		return err
	}
	return s.each(ctx, rows, func(t *ent.Ticket) error {
		return s.set(ctx, t, false, "All findings of this ticket are "+s.instance.CloseAt+".")
	})
}

// openAgain opens the tickets that we closed and that have an open finding again.
func (s *syncing) openAgain(ctx context.Context) error {
	if s.instance.CloseAt == "" {
		return nil
	}
	again := linked(entsql.EQ(finding.FieldStatus, lifecycle.Open))
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Ticket.Update().Where(ticket.InstanceID(s.instance.ID), ticket.Open(true), ticket.ClosedHere(true), again).SetClosedHere(false).Exec(ctx)
	})
	if err != nil {
		return err
	}
	rows, err := s.tickets(ctx, ticket.Open(false), ticket.ClosedHere(true), again)
	if err != nil {
		return err
	}
	return s.each(ctx, rows, func(t *ent.Ticket) error { return s.set(ctx, t, true, "A finding of this ticket is open again.") })
}

// each does something with tickets. One that the tracker refuses is tried again in an hour; the others go on.
func (s *syncing) each(ctx context.Context, rows []*ent.Ticket, do func(*ent.Ticket) error) error {
	for _, t := range rows {
		err := do(t)
		if err == nil {
			continue
		}
		if endsAll(err) {
			return err
		}
		s.log.InfoContext(ctx, "an issue tracker refused a call about a ticket", "ticket_id", t.ID, "key", t.Key, "error", err)
		err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			return tx.Ticket.Update().Where(ticket.ID(t.ID)).SetCheckedAt(store.Micros(time.Now().Add(refusedWait))).Exec(ctx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tickets reads the next tickets of the instance that satisfy the conditions.
func (s *syncing) tickets(ctx context.Context, where ...predicate.Ticket) ([]*ent.Ticket, error) {
	return s.store.Reader.Ticket.Query().Where(ticket.InstanceID(s.instance.ID), ticket.ClaimedUntilIsNil(), ticket.CheckedAtLTE(store.Now())).
		Where(where...).Order(ent.Asc(ticket.FieldID)).Limit(syncBatch).All(ctx)
}

// linked selects tickets with a finding that satisfies a condition; nil: with any.
func linked(condition *entsql.Predicate) predicate.Ticket {
	return func(sel *entsql.Selector) { sel.Where(entsql.Exists(linkedFindings(sel, condition))) }
}

// without selects tickets that have no finding which satisfies a condition; nil: that have none.
func without(condition *entsql.Predicate) predicate.Ticket {
	return func(sel *entsql.Selector) { sel.Where(entsql.NotExists(linkedFindings(sel, condition))) }
}

// linkedFindings are the findings of the outer query's ticket that satisfy a condition.
func linkedFindings(outer *entsql.Selector, condition *entsql.Predicate) *entsql.Selector {
	b := entsql.Dialect(outer.Dialect())
	links, found := b.Table(ticketlink.Table).As("linked"), b.Table(finding.Table).As("found")
	inner := b.Select(links.C(ticketlink.FieldID)).From(links).Join(found).On(found.C(finding.FieldID), links.C(ticketlink.FieldFindingID)).
		Where(entsql.And(entsql.ColumnsEQ(links.C(ticketlink.FieldDeploymentID), outer.C(ticket.FieldDeploymentID)),
			entsql.ColumnsEQ(links.C(ticketlink.FieldTicketID), outer.C(ticket.FieldID))))
	if condition != nil {
		inner.Where(condition)
	}
	return inner
}

// set closes a ticket in the tracker, or opens it again, and says why. If somebody did so before, or the ticket is
// gone, it is not ours to open again.
func (s *syncing) set(ctx context.Context, t *ent.Ticket, open bool, why string) error {
	now, err := s.tracker.Get(ctx, t.Key)
	if err == nil && now.Open != open {
		err = s.tracker.SetOpen(ctx, t.Key, open, s.transition(open))
	}
	ours := err == nil && now.Open != open
	if err != nil && !host.Is(err, host.NotFound) {
		return err
	}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Ticket.Update().Where(ticket.ID(t.ID)).SetOpen(open && err == nil).SetClosedHere(ours && !open).SetCheckedAt(store.Now()).Exec(ctx)
	})
	if err != nil || !ours {
		return err
	}
	// Written once: a tracker that fails afterwards must not get it every minute.
	if err := s.tracker.Comment(ctx, t.Key, why); err != nil {
		s.log.InfoContext(ctx, "a ticket has no comment", "ticket_id", t.ID, "key", t.Key, "error", err)
	}
	return nil
}

func (s *syncing) transition(open bool) string {
	if open {
		return ""
	}
	return s.instance.Transition
}

// ask asks the tracker for the state of tickets that it was not asked for lately.
func (s *syncing) ask(ctx context.Context) error {
	rows, err := s.store.Reader.Ticket.Query().Where(ticket.InstanceID(s.instance.ID), ticket.ClaimedUntilIsNil(),
		ticket.CheckedAtLTE(store.Micros(time.Now().Add(-askEvery)))).Order(ent.Asc(ticket.FieldCheckedAt, ticket.FieldID)).Limit(syncBatch).All(ctx)
	if err != nil {
		return err
	}
	return s.each(ctx, rows, func(t *ent.Ticket) error {
		got, err := s.tracker.Get(ctx, t.Key)
		if err != nil {
			return err // also of a ticket that is deleted or hidden: that is no decision
		}
		return s.take(ctx, t, got.Key, got.URL, got.Open)
	})
}

// take stores what the tracker says of a ticket. If somebody closed it there, the decision of the instance applies to
// its open findings. A ticket that was moved has a new key.
func (s *syncing) take(ctx context.Context, t *ent.Ticket, key, url string, open bool) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		links, err := tx.TicketLink.Query().Where(ticketlink.TicketID(t.ID)).All(ctx)
		if err != nil {
			return err
		}
		ids := linkedFindingIDs(links)
		update := tx.Ticket.Update().Where(ticket.ID(t.ID)).SetOpen(open).SetCheckedAt(store.Now())
		if !open && t.Open {
			update.SetClosedHere(false) // a person did it
		}
		moved := key != "" && key != t.Key
		if moved {
			taken, err := tx.Ticket.Query().Where(ticket.InstanceID(t.InstanceID), ticket.Key(key)).Exist(ctx)
			if err != nil {
				return err
			}
			if moved = !taken; moved {
				update.SetKey(key).SetURL(url)
			}
		}
		if err := update.Exec(ctx); err != nil {
			return err
		}
		if moved {
			if err := s.show(ctx, tx, ids); err != nil {
				return err
			}
		}
		// The state of a ticket that a person linked is news to us, not to that person.
		if t.CheckedAt > 0 && t.Open && !open && s.instance.ClosedState != "" {
			return s.decide(ctx, tx, t, ids)
		}
		return nil
	})
}

// decide triages the open findings of a ticket that was closed in the tracker.
func (s *syncing) decide(ctx context.Context, tx *ent.Tx, t *ent.Ticket, ids []int64) error {
	if _, err := triage.LockProjects(ctx, s.store, tx, store.WithIDs[predicate.Finding](ids)); err != nil {
		return err
	}
	query := tx.Finding.Query().Where(finding.Status(lifecycle.Open))
	query.Modify(store.FoundByIDs(ids))
	chosen, err := query.IDs(ctx)
	if err != nil || len(chosen) == 0 {
		return err
	}
	d := triage.New(s.instance.DeploymentID, triage.KindAutomation, s.instance.ClosedState, s.instance.ClosedReason, fmt.Sprintf("The ticket %s was closed.", t.Key))
	d.ActorKind, d.ActorID, d.ActorName, d.Queue = actorTracker, s.instance.ID, t.Key, jobs.FromContext(ctx)
	_, _, err = d.Apply(ctx, s.store, tx, chosen)
	return err
}
