package ticketing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/ticket"
	"github.com/palisade/palisade/ent/ticketlink"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	ticketingv1 "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/ticketing/tracker"
)

// maxLinked is how many findings one ticket may have: each of them stores the ids of the others.
const maxLinked = 300

// linking is what a link changed.
type linking struct {
	ticket           *ent.Ticket
	linked, replaced []int64
}

// link links findings to a ticket. It replaces their earlier links.
func (d *desk) link(ctx context.Context, instance *ent.TicketingInstance, key string, ids []int64) (out linking, err error) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	err = d.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		rows, err := d.lockFindings(ctx, tx, ids)
		if err != nil {
			return err
		}
		earlier, err := finished(ctx, tx, ids)
		if err != nil {
			return err
		}
		if out.ticket, err = ticketAt(ctx, tx, instance, key); err != nil {
			return err
		}
		var links []*ent.TicketLinkCreate
		for _, row := range rows {
			if t := earlier[row.ID]; t != nil && t.ID == out.ticket.ID {
				continue
			} else if t != nil && t.ClaimedUntil == nil {
				out.replaced = append(out.replaced, row.ID)
			}
			links = append(links, tx.TicketLink.Create().SetTicketID(out.ticket.ID).SetProjectID(row.ProjectID).SetFindingID(row.ID))
			out.linked = append(out.linked, row.ID)
		}
		if _, err := tx.TicketLink.Delete().Where(store.OneOf(ticketlink.FieldFindingID, out.linked)).Exec(ctx); err != nil {
			return err
		}
		if err := createLinks(ctx, tx, links); err != nil {
			return err
		}
		n, err := tx.TicketLink.Query().Where(ticketlink.TicketID(out.ticket.ID)).Count(ctx)
		if err != nil {
			return err
		}
		if n > maxLinked {
			return apierr.FailedPrecondition("a ticket has at most %d findings, and %s would have %d", maxLinked, key, n)
		}
		if err := d.changed(ctx, tx, out.linked, earlier, eventLinked, key+" "+out.ticket.URL); err != nil {
			return err
		}
		out.linked = ids
		audit.Change(ctx, auditTicket, out.ticket.ID, nil, &ticketingv1.LinkExternalTicketResponse{
			TicketId: out.ticket.ID, TicketUrl: out.ticket.URL, ExternalSlug: key, LinkedIssueIds: ids, ReplacedIssueIds: out.replaced,
		})
		return nil
	})
	return out, err
}

func createLinks(ctx context.Context, tx *ent.Tx, links []*ent.TicketLinkCreate) error {
	for part := range slices.Chunk(links, store.RowsAtOnce) {
		if err := tx.TicketLink.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// linkedFindingIDs returns the findings of links by id.
func linkedFindingIDs(links []*ent.TicketLink) []int64 {
	ids := make([]int64, len(links))
	for i, l := range links {
		ids[i] = l.FindingID
	}
	slices.Sort(ids)
	return ids
}

// ticketAt returns the row of a ticket of the tracker, and makes it if there is none.
func ticketAt(ctx context.Context, tx *ent.Tx, instance *ent.TicketingInstance, key string) (*ent.Ticket, error) {
	t, err := tx.Ticket.Query().Where(ticket.InstanceID(instance.ID), ticket.Key(key)).Only(ctx)
	if !ent.IsNotFound(err) {
		return t, err
	}
	url := tracker.URL(tracker.Kind(instance.Kind), instance.BaseURL, key)
	return tx.Ticket.Create().SetInstanceID(instance.ID).SetProject("").SetMarker("").SetKey(key).SetURL(url).SetCreatedAt(store.Now()).Save(ctx)
}

// unlink unlinks findings from their tickets in an instance; 0: in all. It returns the ones that had a ticket.
func (d *desk) unlink(ctx context.Context, instanceID int64, ids []int64) (unlinked []int64, err error) {
	err = d.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		earlier, err := finished(ctx, tx, ids)
		if err != nil {
			return err
		}
		for id, t := range earlier {
			if instanceID == 0 || t.InstanceID == instanceID {
				unlinked = append(unlinked, id)
			} else {
				delete(earlier, id)
			}
		}
		slices.Sort(unlinked)
		return d.drop(ctx, tx, unlinked, earlier)
	})
	return unlinked, err
}

// remove unlinks the findings of a ticket in an instance; 0: in any.
func (d *desk) remove(ctx context.Context, instanceID, ticketID int64) (unlinked []int64, err error) {
	err = d.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		links, err := tx.TicketLink.Query().Where(ticketlink.TicketID(ticketID)).All(ctx)
		if err != nil {
			return err
		}
		unlinked = linkedFindingIDs(links)
		earlier, err := finished(ctx, tx, unlinked)
		if err != nil {
			return err
		}
		if len(unlinked) == 0 || instanceID != 0 && earlier[unlinked[0]].InstanceID != instanceID {
			return apierr.NotFound("ticket %d not found", ticketID)
		}
		return d.drop(ctx, tx, unlinked, earlier)
	})
	return unlinked, err
}

// drop deletes the links of findings.
func (d *desk) drop(ctx context.Context, tx *ent.Tx, ids []int64, earlier map[int64]*ent.Ticket) error {
	if len(ids) == 0 {
		return nil
	}
	if _, err := d.lockFindings(ctx, tx, ids); err != nil {
		return err
	}
	if _, err := tx.TicketLink.Delete().Where(store.OneOf(ticketlink.FieldFindingID, ids)).Exec(ctx); err != nil {
		return err
	}
	audit.Change(ctx, auditTicket, earlier[ids[0]].ID, &ticketingv1.UnlinkExternalTicketResponse{UnlinkedIssueIds: ids}, nil)
	return d.changed(ctx, tx, ids, earlier, eventUnlinked, "")
}

// changed updates what findings show after the links of some of them changed, and records it. A ticket without
// findings is forgotten.
func (d *desk) changed(ctx context.Context, tx *ent.Tx, ids []int64, earlier map[int64]*ent.Ticket, event, note string) error {
	tickets := map[int64]bool{}
	for _, t := range earlier {
		tickets[t.ID] = true
	}
	if _, err := tx.Ticket.Delete().Where(store.OneOf(ticket.FieldID, keys(tickets)), without(nil)).Exec(ctx); err != nil {
		return err
	}
	others, err := tx.TicketLink.Query().Where(store.OneOf(ticketlink.FieldTicketID, keys(tickets))).All(ctx)
	if err != nil {
		return err
	}
	if err := d.show(ctx, tx, slices.Concat(ids, linkedFindingIDs(others))); err != nil {
		return err
	}
	return recordEvents(ctx, d.store, tx, ids, event, note)
}

// finished returns the tickets of findings. It is an error if a call is creating one of them.
func finished(ctx context.Context, tx *ent.Tx, ids []int64) (map[int64]*ent.Ticket, error) {
	found, err := ticketsOf(ctx, tx.Client(), ids)
	for id, t := range found {
		if t.ClaimedUntil != nil && *t.ClaimedUntil > store.Now() {
			return nil, apierr.Conflict("the ticket of finding %d is being created: repeat the call in a moment", id)
		}
	}
	return found, err
}

// lockFindings locks the projects of findings, so that imports and triage wait. All findings must exist.
func (d *desk) lockFindings(ctx context.Context, tx *ent.Tx, ids []int64) ([]*ent.Finding, error) {
	if _, err := triage.LockProjects(ctx, d.store, tx, store.WithIDs[predicate.Finding](ids)); err != nil {
		return nil, err
	}
	query := tx.Finding.Query()
	query.Modify(store.FoundByIDs(ids))
	rows, err := query.Select(finding.FieldID, finding.FieldProjectID).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(rows, func(row *ent.Finding) bool { return row.ID == id }) {
			return nil, apierr.NotFound("finding %d not found", id)
		}
	}
	return rows, nil
}

// show writes into findings what lists show of their tickets: also the other findings of the same project.
func (d *desk) show(ctx context.Context, tx *ent.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	if _, err := triage.LockProjects(ctx, d.store, tx, store.WithIDs[predicate.Finding](ids)); err != nil {
		return err
	}
	tickets, err := ticketsOf(ctx, tx.Client(), ids)
	if err != nil {
		return err
	}
	ticketIDs := map[int64]bool{}
	for _, t := range tickets {
		ticketIDs[t.ID] = true
	}
	links, err := tx.TicketLink.Query().Where(store.OneOf(ticketlink.FieldTicketID, keys(ticketIDs))).Order(ent.Asc(ticketlink.FieldFindingID)).All(ctx)
	if err != nil {
		return err
	}
	type member struct{ ticket, project int64 }
	linked := map[member][]int64{}
	for _, l := range links {
		linked[member{l.TicketID, l.ProjectID}] = append(linked[member{l.TicketID, l.ProjectID}], l.FindingID)
	}
	query := tx.Finding.Query()
	query.Modify(store.FoundByIDs(ids))
	rows, err := query.Select(finding.FieldID, finding.FieldProjectID, finding.FieldContent).All(ctx)
	if err != nil || len(rows) == 0 {
		return err
	}
	contents := map[int64][]byte{}
	for _, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return fmt.Errorf("content of finding %d: %w", row.ID, err)
		}
		content.ExternalTicket = nil
		if t := tickets[row.ID]; t != nil && t.ClaimedUntil == nil {
			content.ExternalTicket = &findingsv1.ExternalTicket{
				ExternalSlug: t.Key, Id: t.ID, LinkedIssueIds: linked[member{t.ID, row.ProjectID}], Url: t.URL,
			}
		}
		if contents[row.ID], err = blob.Encode(content); err != nil {
			return err
		}
	}
	return d.writeContents(ctx, tx, contents)
}

// writeContents writes the contents of findings with one statement.
func (d *desk) writeContents(ctx context.Context, tx *ent.Tx, contents map[int64][]byte) error {
	deploymentID, _ := tenant.FromContext(ctx)
	rows, args := make([]string, 0, len(contents)), make([]any, 0, 2*len(contents)+1)
	for id, content := range contents {
		row := "(?, ?)"
		if len(rows) == 0 && d.store.Postgres() { // the types of all rows
			row = "(CAST(? AS bigint), CAST(? AS bytea))"
		}
		rows, args = append(rows, row), append(args, id, content)
	}
	return d.store.Exec(ctx, tx, `UPDATE findings SET content = v.column2 FROM (VALUES `+strings.Join(rows, ", ")+`) AS v
		WHERE findings.id = v.column1 AND +findings.deployment_id = ?`, append(args, deploymentID)...)
}
