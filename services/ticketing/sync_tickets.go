package ticketing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
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
	// askEvery is how often the tracker is asked for the state of a ticket.
	askEvery = 10 * time.Minute
	// malicious is the product of malicious dependencies in an instance's list.
	malicious = "malicious"
	// actorTracker is the kind of actor of decisions that a closed ticket made.
	actorTracker = "tracker"
)

// errRejected: the tracker rejected tickets, or the instance has no project for their findings.
var errRejected = errors.New("the tracker rejected tickets")

// createForNew creates tickets for the findings that became relevant since the last run.
func (s *syncing) createForNew(ctx context.Context) error {
	if len(s.instance.Automatic) == 0 {
		return nil
	}
	begun := time.Now()
	where, err := issuefilter.Where(ctx, &findingsv1.IssuesFilter{OnPrimaryBranch: true}, begun)
	if err != nil {
		return err
	}
	where = append(where, finding.Status(lifecycle.Open), finding.RelevantSinceGT(s.instance.AutomaticAfter))
	failed := 0
	for _, product := range s.instance.Automatic {
		out, err := s.create(ctx, s.instance, order{group: true, limit: maxTickets}, nil, false, append(slices.Clip(where), automatic(product)...)...)
		switch {
		case err != nil:
			return err
		case out.again != nil:
			return out.again
		case out.over:
			return nil
		}
		failed += len(out.failed)
	}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		after := max(s.instance.AutomaticAfter, store.Micros(begun.Add(-lateCommit)))
		return tx.TicketingInstance.Update().Where(ticketinginstance.ID(s.instance.ID)).SetAutomaticAfter(after).Exec(ctx)
	})
	if err == nil && failed > 0 {
		err = errRejected
	}
	return err
}

// automatic selects what gets a ticket without a call.
func automatic(product string) []predicate.Finding {
	if product == malicious {
		return []predicate.Finding{finding.IssueType(vocabulary.SCA), finding.Malicious(true)}
	}
	return []predicate.Finding{finding.IssueType(product), finding.SeverityIn(vocabulary.SeverityCritical, vocabulary.SeverityHigh)}
}

// closeDone closes the tickets whose findings are all done.
func (s *syncing) closeDone(ctx context.Context) error {
	if s.instance.CloseAt == "" {
		return nil
	}
	undone := []*entsql.Predicate{entsql.NEQ(finding.FieldStatus, lifecycle.Fixed), entsql.NEQ(finding.FieldStatus, lifecycle.Removed)}
	if s.instance.CloseAt == lifecycle.Ignored {
		undone = append(undone, entsql.NEQ(finding.FieldStatus, lifecycle.Ignored))
	}
	rows, err := s.tickets(ctx, ticket.Open(true), linked(nil), without(entsql.And(undone...)))
	for _, t := range rows {
		if err := s.set(ctx, t, false, "All findings of this ticket are "+s.instance.CloseAt+"."); err != nil {
			return err
		}
	}
	return err
}

// openAgain opens the tickets that we closed and that have an open finding again.
func (s *syncing) openAgain(ctx context.Context) error {
	if s.instance.CloseAt == "" {
		return nil
	}
	rows, err := s.tickets(ctx, ticket.Open(false), ticket.ClosedHere(true), linked(entsql.EQ(finding.FieldStatus, lifecycle.Open)))
	for _, t := range rows {
		if err := s.set(ctx, t, true, "A finding of this ticket is open again."); err != nil {
			return err
		}
	}
	return err
}

// tickets reads the next tickets of the instance that satisfy the conditions.
func (s *syncing) tickets(ctx context.Context, where ...predicate.Ticket) ([]*ent.Ticket, error) {
	return s.store.Reader.Ticket.Query().Where(ticket.InstanceID(s.instance.ID), ticket.ClaimedUntilIsNil()).Where(where...).
		Order(ent.Asc(ticket.FieldID)).Limit(syncBatch).All(ctx)
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

// set closes a ticket in the tracker, or opens it again, and says why. A ticket that is gone counts as closed by
// somebody else.
func (s *syncing) set(ctx context.Context, t *ent.Ticket, open bool, why string) error {
	err := s.tracker.SetOpen(ctx, t.Key, open, s.transition(open))
	if err == nil {
		err = s.tracker.Comment(ctx, t.Key, why)
	}
	gone := host.Is(err, host.NotFound)
	if err != nil && !gone {
		return err
	}
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Ticket.Update().Where(ticket.ID(t.ID)).SetOpen(open && !gone).SetClosedHere(!open && !gone).SetCheckedAt(store.Now()).Exec(ctx)
	})
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
	for _, t := range rows {
		got, err := s.tracker.Get(ctx, t.Key)
		gone := host.Is(err, host.NotFound)
		if err != nil && !gone {
			return err
		}
		if err := s.take(ctx, t, got.Key, got.URL, got.Open && !gone); err != nil {
			return err
		}
	}
	return err
}

// take stores what the tracker says of a ticket. If somebody closed it there, the decision of the instance applies to
// its open findings. A ticket that was moved has a new key.
func (s *syncing) take(ctx context.Context, t *ent.Ticket, key, url string, open bool) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		links, err := tx.TicketLink.Query().Where(ticketlink.TicketID(t.ID)).All(ctx)
		if err != nil {
			return err
		}
		ids := make([]int64, len(links))
		for i, l := range links {
			ids[i] = l.FindingID
		}
		slices.Sort(ids)
		update := tx.Ticket.Update().Where(ticket.ID(t.ID)).SetOpen(open).SetCheckedAt(store.Now())
		if open {
			update.SetClosedHere(false)
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
