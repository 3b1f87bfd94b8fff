package ticketing

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/ticket"
	"github.com/palisade/palisade/ent/ticketlink"
	ticketingv1 "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/ticketing/tracker"
)

const (
	// claimTime is how long a call has for one ticket. Afterwards another call may look for it, and create it.
	claimTime = 2 * time.Minute
	// indexDelay is how long after a lost answer nobody looks for the ticket: Jira's index is late.
	indexDelay = 30 * time.Second
	// findEarlier is how much earlier than our clock the tracker's may be.
	findEarlier = time.Hour
	// auditTicket is the object kind of tickets in the audit trail.
	auditTicket = "ticket"
)

// errClaimed: another call creates a ticket for the same findings.
var errClaimed = errors.New("another call creates the ticket")

// one creates one ticket.
func (f *filer) one(ctx context.Context, b *batch) error {
	t, err := f.claim(ctx, b)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, claimTime-indexDelay)
	created, err := f.call(limited, t, b)
	cancel()
	// The tracker has answered: what it said is stored also when the caller is gone.
	ctx = context.WithoutCancel(ctx)
	if noted := f.note(ctx, f.instance, err); noted != nil {
		return noted
	}
	if err != nil {
		return errors.Join(err, f.giveUp(ctx, t, b, err))
	}
	done, err := f.finish(ctx, t, created)
	if err == nil {
		f.out.succeeded = append(f.out.succeeded, done)
	}
	return err
}

// claim begins a ticket: no other call creates one for these findings until the claim ends.
func (f *filer) claim(ctx context.Context, b *batch) (*ent.Ticket, error) {
	var t *ent.Ticket
	err := f.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		if b.abandoned != nil {
			t = b.abandoned
			n, err := tx.Ticket.Update().Where(ticket.ID(t.ID), ticket.ClaimedUntilLTE(store.Now())).SetClaimedUntil(lease()).Save(ctx)
			if err == nil && n == 0 {
				return errClaimed
			}
			return err
		}
		t, err = tx.Ticket.Create().SetInstanceID(f.instance.ID).SetProject(b.project).SetMarker(rand.Text()).SetClaimedUntil(lease()).
			SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		links := make([]*ent.TicketLinkCreate, len(b.rows))
		for i, row := range b.rows {
			links[i] = tx.TicketLink.Create().SetTicketID(t.ID).SetProjectID(row.ProjectID).SetFindingID(row.ID)
		}
		err = createLinks(ctx, tx, links)
		if ent.IsConstraintError(err) {
			return errClaimed
		}
		return err
	})
	return t, err
}

// call creates the ticket at the tracker, or finds the one of an abandoned call.
func (f *filer) call(ctx context.Context, t *ent.Ticket, b *batch) (tracker.Ticket, error) {
	if b.abandoned != nil {
		found, err := f.tracker.Find(ctx, t.Project, t.Marker, store.Time(t.CreatedAt).Add(-findEarlier))
		if err != nil {
			return found, unsureError{err}
		}
		if found.Key != "" {
			return found, nil
		}
		if b.rows, err = f.linked(ctx, t); err != nil {
			return tracker.Ticket{}, err
		}
	}
	draft, err := f.draft(b, t.Marker)
	if err != nil {
		return tracker.Ticket{}, err
	}
	created, err := f.tracker.Create(ctx, t.Project, draft)
	if err != nil && (connect.Temporary(err) && !host.Is(err, host.RateLimited) || host.Is(err, host.Malformed)) {
		err = unsureError{err}
	}
	return created, err
}

// linked reads all findings of an abandoned ticket: a request may name a part of them.
func (f *filer) linked(ctx context.Context, t *ent.Ticket) ([]*ent.Finding, error) {
	links, err := f.store.Reader.TicketLink.Query().Where(ticketlink.TicketID(t.ID)).All(ctx)
	if err != nil {
		return nil, err
	}
	return f.choose(ctx, linkedFindingIDs(links), true, nil)
}

// giveUp ends the claim, soon. If the tracker rejected the ticket, the findings have none; if its answer is not known,
// they keep the row, by which a later call finds the ticket.
func (f *filer) giveUp(ctx context.Context, t *ent.Ticket, b *batch, cause error) error {
	return f.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if errors.As(cause, new(unsureError)) {
			if err := tx.Ticket.Update().Where(ticket.ID(t.ID)).SetClaimedUntil(store.Micros(time.Now().Add(indexDelay))).Exec(ctx); err != nil {
				return err
			}
		} else if err := dropTicket(ctx, tx, t.ID); err != nil {
			return err
		}
		return recordEvents(ctx, f.store, tx, b.ids(), eventAttempted, connect.ErrorText(cause))
	})
}

// unsureError is an error after which the ticket may exist.
type unsureError struct{ error }

// Unwrap returns the tracker's error.
func (e unsureError) Unwrap() error { return e.error }

// dropTicket deletes a ticket with its links.
func dropTicket(ctx context.Context, tx *ent.Tx, id int64) error {
	if _, err := tx.TicketLink.Delete().Where(ticketlink.TicketID(id)).Exec(ctx); err != nil {
		return err
	}
	_, err := tx.Ticket.Delete().Where(ticket.ID(id)).Exec(ctx)
	return err
}

// finish stores the tracker's answer and shows the ticket in its findings.
func (f *filer) finish(ctx context.Context, t *ent.Ticket, created tracker.Ticket) (done made, err error) {
	err = f.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		into, err := f.adopt(ctx, tx, t, created)
		if err != nil {
			return err
		}
		links, err := tx.TicketLink.Query().Where(ticketlink.TicketID(into.ID)).All(ctx)
		if err != nil {
			return err
		}
		done = made{id: into.ID, key: into.Key, url: into.URL, findings: linkedFindingIDs(links)}
		if err := f.show(ctx, tx, done.findings); err != nil {
			return err
		}
		if err := recordEvents(ctx, f.store, tx, done.findings, eventCreated, into.Key+" "+into.URL); err != nil {
			return err
		}
		audit.Change(ctx, auditTicket, into.ID, nil, &ticketingv1.TicketSucceededResult{
			TicketId: into.ID, TicketUrl: into.URL, ExternalSlug: into.Key, IssueIds: done.findings,
		})
		return nil
	})
	return done, err
}

// adopt gives the row its key. If a person has linked the same ticket in the meantime, its row gets the findings.
func (f *filer) adopt(ctx context.Context, tx *ent.Tx, t *ent.Ticket, created tracker.Ticket) (*ent.Ticket, error) {
	linked, err := tx.Ticket.Query().Where(ticket.InstanceID(t.InstanceID), ticket.Key(created.Key)).Only(ctx)
	if ent.IsNotFound(err) {
		err := tx.Ticket.Update().Where(ticket.ID(t.ID)).SetKey(created.Key).SetURL(created.URL).SetOpen(created.Open).SetCheckedAt(store.Now()).ClearClaimedUntil().Exec(ctx)
		t.Key, t.URL = created.Key, created.URL
		return t, err
	}
	if err != nil {
		return nil, err
	}
	if err := tx.TicketLink.Update().Where(ticketlink.TicketID(t.ID)).SetTicketID(linked.ID).Exec(ctx); err != nil {
		return nil, err
	}
	return linked, tx.Ticket.DeleteOneID(t.ID).Exec(ctx)
}

// maxTicketText is the maximum length of a finding's message in a ticket, in bytes.
const maxTicketText = 4000

// draft is the content of the ticket of a batch: what the rule found, and a line with a link for each finding.
func (f *filer) draft(b *batch, marker string) (tracker.Draft, error) {
	first := b.rows[0]
	name, ruleName := f.projects[first.ProjectID].Name, f.rules[first.RuleID]
	draft := tracker.Draft{Title: ruleName + " in " + name, Marker: marker, Labels: f.instance.Labels, IssueType: f.instance.IssueType}
	if len(f.instance.Fields) > 0 {
		if err := json.Unmarshal(f.instance.Fields, &draft.Fields); err != nil {
			return draft, fmt.Errorf("fields of ticketing instance %d: %w", f.instance.ID, err)
		}
	}
	if len(b.rows) > 1 {
		draft.Title = fmt.Sprintf("%s in %s (%d findings)", ruleName, name, len(b.rows))
	}
	for _, row := range b.rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return draft, fmt.Errorf("content of finding %d: %w", row.ID, err)
		}
		if draft.Text == "" {
			draft.Text = clip(content.GetMessage(), maxTicketText)
		}
		place := content.GetLocation().GetFilePath()
		if line := content.GetLocation().GetLine(); line > 0 {
			place = fmt.Sprintf("%s:%d", place, line)
		}
		draft.Items = append(draft.Items, tracker.Item{
			Text: fmt.Sprintf("%s: %s (%s)", row.Severity, place, row.Ref),
			URL:  fmt.Sprintf("%s/console/%s/findings/%d", f.publicURL, f.slug, row.ID),
		})
	}
	return draft, nil
}
