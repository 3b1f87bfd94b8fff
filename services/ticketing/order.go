package ticketing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/ticket"
	"github.com/palisade/palisade/ent/ticketlink"
	"github.com/palisade/palisade/services/findings/list"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/ticketing/tracker"
)

const (
	// maxTickets is how many tickets one call creates, and maxGroup how many findings one ticket has (contract facts
	// 2.5).
	maxTickets = 20
	maxGroup   = 75
	// maxChosen is how many findings one call looks at.
	maxChosen = maxTickets * maxGroup
)

// order is a request for tickets.
type order struct {
	// project is the tracker's, for all tickets; empty: the one that the instance maps to the finding's project.
	project string
	group   bool
	limit   int
}

// outcome is what a call did.
type outcome struct {
	succeeded []made
	failed    []reasoned
	skipped   []reasoned
	// left are findings beyond the limit of tickets. again is an error that a repetition may not have; after it the
	// tracker was not called any more.
	left  []int64
	again error
	// pending: some findings have a ticket whose answer is not known.
	pending bool
}

// made is a created ticket.
type made struct {
	id       int64
	key, url string
	findings []int64
}

// reasoned are findings without a new ticket.
type reasoned struct {
	findings []int64
	reason   string
}

// batch is a ticket to create.
type batch struct {
	project string // of the tracker
	rows    []*ent.Finding
	// abandoned is a ticket that an earlier call began; nil for a new one.
	abandoned *ent.Ticket
}

func (b *batch) ids() []int64 { return idsOf(b.rows) }

func idsOf(rows []*ent.Finding) []int64 {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	slices.Sort(ids)
	return ids
}

// filer creates the tickets of one order.
type filer struct {
	*desk
	order
	instance *ent.TicketingInstance
	tracker  tracker.Tracker
	slug     string // of the deployment
	projects map[int64]*ent.Project
	rules    map[int64]string
	out      outcome
}

// create creates tickets for the findings that a request names, or for the newest that a filter selects and that have
// no ticket. ticketed reports the ones with a ticket as skipped, which happens to named ones anyway.
func (d *desk) create(
	ctx context.Context, instance *ent.TicketingInstance, o order, named []int64, ticketed bool, where ...predicate.Finding,
) (outcome, error) {
	at, err := d.open(instance)
	if err != nil {
		return outcome{}, err
	}
	f := &filer{desk: d, order: o, instance: instance, tracker: at}
	f.limit = cmp.Or(f.limit, maxTickets)
	rows, err := d.choose(ctx, named, ticketed, where)
	if err != nil {
		return outcome{}, err
	}
	f.notChosen(named, rows)
	if len(rows) == 0 {
		return f.out, nil
	}
	if err := f.read(ctx, rows); err != nil {
		return outcome{}, err
	}
	batches, err := f.batches(ctx, rows)
	if err != nil {
		return outcome{}, err
	}
	return f.out, f.file(ctx, batches)
}

// notChosen says which findings a request names in vain.
func (f *filer) notChosen(named []int64, rows []*ent.Finding) {
	chosen := idsOf(rows)
	for _, id := range slices.Compact(slices.Sorted(slices.Values(named))) {
		if _, found := slices.BinarySearch(chosen, id); !found {
			f.fail("not found, or the filter leaves it out", id)
		}
	}
}

// choose reads the findings, the newest first.
func (d *desk) choose(ctx context.Context, named []int64, ticketed bool, where []predicate.Finding) ([]*ent.Finding, error) {
	query := d.store.Reader.Finding.Query().Where(where...).Order(list.NewestFirst).Limit(maxChosen)
	switch {
	case len(named) > 0:
		query.Modify(store.FoundByIDs(named))
	case !ticketed:
		deploymentID, _ := tenant.FromContext(ctx)
		query.Where(withoutTicket(deploymentID))
	}
	return query.Select(finding.FieldID, finding.FieldDeploymentID, finding.FieldProjectID, finding.FieldRuleID, finding.FieldRef, finding.FieldSeverity,
		finding.FieldContent).All(ctx)
}

// withoutTicket selects findings that have no ticket, or one that an earlier call did not finish.
func withoutTicket(deploymentID int64) predicate.Finding {
	return func(s *entsql.Selector) {
		links, tickets := entsql.Dialect(s.Dialect()).Table(ticketlink.Table), entsql.Dialect(s.Dialect()).Table(ticket.Table)
		has := entsql.Dialect(s.Dialect()).Select(links.C(ticketlink.FieldID)).From(links).
			Join(tickets).On(tickets.C(ticket.FieldID), links.C(ticketlink.FieldTicketID)).
			Where(entsql.And(entsql.EQ(links.C(ticketlink.FieldDeploymentID), deploymentID),
				entsql.ColumnsEQ(links.C(ticketlink.FieldFindingID), s.C(finding.FieldID)), entsql.IsNull(tickets.C(ticket.FieldClaimedUntil))))
		s.Where(entsql.NotExists(has))
	}
}

// read reads what tickets say of the findings' projects and rules.
func (f *filer) read(ctx context.Context, rows []*ent.Finding) (err error) {
	owner, err := f.store.Reader.Deployment.Query().Only(ctx)
	if err != nil {
		return err
	}
	f.slug, f.projects, f.rules = owner.Slug, map[int64]*ent.Project{}, map[int64]string{}
	projectIDs, ruleIDs := map[int64]bool{}, map[int64]bool{}
	for _, row := range rows {
		projectIDs[row.ProjectID], ruleIDs[row.RuleID] = true, true
	}
	projects, err := f.store.Reader.Project.Query().Where(store.OneOf(project.FieldID, keys(projectIDs))).Select(project.FieldID, project.FieldName).All(ctx)
	if err != nil {
		return err
	}
	for _, p := range projects {
		f.projects[p.ID] = p
	}
	rules, err := f.store.Reader.Rule.Query().Where(store.OneOf(rule.FieldID, keys(ruleIDs))).Select(rule.FieldID, rule.FieldName).All(ctx)
	for _, r := range rules {
		f.rules[r.ID] = r.Name
	}
	return err
}

func keys(set map[int64]bool) []int64 { return slices.Sorted(maps.Keys(set)) }

// severities orders what gets a ticket first.
var severities = map[string]int{vocabulary.SeverityCritical: 4, vocabulary.SeverityHigh: 3, vocabulary.SeverityMedium: 2, vocabulary.SeverityLow: 1}

// batches sorts the findings into tickets, the severest first. Findings with a ticket are skipped.
func (f *filer) batches(ctx context.Context, rows []*ent.Finding) ([]*batch, error) {
	tickets, err := ticketsOf(ctx, f.store.Reader, idsOf(rows))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b *ent.Finding) int { return cmp.Compare(severities[b.Severity], severities[a.Severity]) })
	var out []*batch
	groups, skipped, now := map[string]*batch{}, map[string][]int64{}, store.Now()
	add := func(group string, row *ent.Finding, b batch) {
		last := groups[group]
		if last == nil || len(last.rows) >= maxGroup || !f.group && b.abandoned == nil {
			last = &b
			groups[group] = last
			out = append(out, last)
		}
		last.rows = append(last.rows, row)
	}
	for _, row := range rows {
		t, project := tickets[row.ID], cmp.Or(f.project, projectFor(f.instance, f.projects[row.ProjectID].Name))
		switch {
		case t != nil && t.ClaimedUntil == nil:
			skipped["has the ticket "+t.Key] = append(skipped["has the ticket "+t.Key], row.ID)
		case t != nil && *t.ClaimedUntil > now:
			skipped[beingCreated] = append(skipped[beingCreated], row.ID)
			f.out.pending = true
		case t != nil && t.InstanceID != f.instance.ID:
			reason := "another ticketing instance may have its ticket: repeat the call there, or unlink the finding"
			skipped[reason] = append(skipped[reason], row.ID)
		case t != nil:
			add(fmt.Sprint("abandoned ", t.ID), row, batch{project: t.Project, abandoned: t})
		case project == "":
			reason := "the ticketing instance has no project for " + f.projects[row.ProjectID].Name + ": name one, or set projectId or mappings of the instance"
			f.fail(reason, row.ID)
		default:
			add(fmt.Sprint(row.ProjectID, " ", row.RuleID, " ", project), row, batch{project: project})
		}
	}
	for reason, ids := range skipped {
		slices.Sort(ids)
		f.out.skipped = append(f.out.skipped, reasoned{ids, reason})
	}
	slices.SortFunc(f.out.skipped, func(a, b reasoned) int { return strings.Compare(a.reason, b.reason) })
	return out, nil
}

const beingCreated = "its ticket is being created, or may exist already: repeat the call in half a minute"

// fail adds findings to the ones that failed for a reason.
func (f *filer) fail(reason string, ids ...int64) {
	at := slices.IndexFunc(f.out.failed, func(r reasoned) bool { return r.reason == reason })
	if at < 0 {
		f.out.failed = append(f.out.failed, reasoned{ids, reason})
		return
	}
	f.out.failed[at].findings = append(f.out.failed[at].findings, ids...)
}

// file creates the tickets. When the tracker does not answer or rejects the credential, it is not called for the rest.
func (f *filer) file(ctx context.Context, batches []*batch) error {
	tried := 0
	for _, b := range batches {
		switch {
		case f.out.again != nil:
			f.fail(b.project+": "+connect.ErrorText(f.out.again), b.ids()...)
			continue
		case tried >= f.limit:
			f.out.left = append(f.out.left, b.ids()...)
			f.fail(fmt.Sprintf("over the limit of %d tickets: repeat the call for the rest", f.limit), b.ids()...)
			continue
		}
		err := f.one(ctx, b)
		if errors.Is(err, errClaimed) {
			f.out.skipped = append(f.out.skipped, reasoned{b.ids(), beingCreated})
			f.out.pending = true
			continue
		}
		tried++
		text := connect.ErrorText(err)
		switch {
		case err != nil && text == "":
			return err
		case errors.As(err, new(unsureError)):
			f.out.pending = true
			f.fail(b.project+": "+text+". The ticket may exist: repeat the call in half a minute; it looks for the ticket and creates no second one", b.ids()...)
		case err != nil:
			f.fail(b.project+": "+text, b.ids()...)
		}
		if endsAll(err) {
			f.out.again = err
		}
	}
	return nil
}

// ticketsOf returns the tickets of findings by finding.
func ticketsOf(ctx context.Context, db *ent.Client, findings []int64) (map[int64]*ent.Ticket, error) {
	links, err := db.TicketLink.Query().Where(store.OneOf(ticketlink.FieldFindingID, findings)).All(ctx)
	if err != nil || len(links) == 0 {
		return nil, err
	}
	ids := map[int64]bool{}
	for _, l := range links {
		ids[l.TicketID] = true
	}
	found, err := db.Ticket.Query().Where(store.OneOf(ticket.FieldID, keys(ids))).All(ctx)
	if err != nil {
		return nil, err
	}
	byTicket := map[int64]*ent.Ticket{}
	for _, t := range found {
		byTicket[t.ID] = t
	}
	out := map[int64]*ent.Ticket{}
	for _, l := range links {
		if t := byTicket[l.TicketID]; t != nil {
			out[l.FindingID] = t
		}
	}
	return out, nil
}

// lease is the end of a claim that begins now.
func lease() int64 { return store.Micros(time.Now().Add(claimTime)) }
