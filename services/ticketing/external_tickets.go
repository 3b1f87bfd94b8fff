package ticketing

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/palisade/palisade/ent/finding"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	ticketingv1 "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// ExternalTickets is the service group "external ticketing".
type ExternalTickets struct {
	ticketingv1.UnimplementedExternalTicketingServiceServer
	*desk
}

// TicketingCreateTickets creates tickets for findings by id or by filter. A filter without a state selects open
// findings.
func (s *ExternalTickets) TicketingCreateTickets(ctx context.Context, r *ticketingv1.TicketingCreateTicketsRequest) (*ticketingv1.TicketingCreateTicketsResponse, error) {
	if len(r.GetIssueIds()) == 0 && r.GetIssueFilters() == nil {
		return nil, apierr.InvalidArgument("issueIds", "one of issueIds and issueFilters is required; an empty object in issueFilters selects all open findings")
	}
	instance, err := find(ctx, s.store.Reader, r.GetTicketingInstanceId())
	if err != nil {
		return nil, err
	}
	if err := mayName(ctx, "projectId", instance, r.GetProjectId()); err != nil {
		return nil, err
	}
	where, err := issuefilter.Where(ctx, r.GetIssueFilters(), time.Now())
	if err != nil {
		return nil, err
	}
	where = append(where, store.OneOf(finding.FieldIssueType, types(r)))
	if f := r.GetIssueFilters(); len(r.GetIssueIds()) == 0 && len(f.GetIds()) == 0 && len(f.GetStatus()) == 0 && f.GetTab() == 0 && len(f.GetAggregateIssueStates()) == 0 {
		where = append(where, finding.Status(lifecycle.Open))
	}
	done, err := s.create(ctx, instance, order{
		project: r.GetProjectId(), group: r.GroupIssues == nil || r.GetGroupIssues(), limit: maxTickets,
	}, r.GetIssueIds(), r.GetIssueFilters().GetIncludeTicketed(), where...)
	if err != nil {
		return nil, err
	}
	out := &ticketingv1.TicketingCreateTicketsResponse{}
	for _, t := range done.succeeded {
		out.Succeeded = append(out.Succeeded, &ticketingv1.TicketSucceededResult{ExternalSlug: t.key, IssueIds: t.findings, TicketId: t.id, TicketUrl: t.url})
	}
	for _, f := range done.failed {
		out.Failed = append(out.Failed, &ticketingv1.TicketFailedResult{Error: f.reason, IssueIds: f.findings})
	}
	for _, f := range done.skipped {
		out.Skipped = append(out.Skipped, &ticketingv1.TicketSkippedResult{Reason: f.reason, IssueIds: f.findings})
	}
	return out, nil
}

// types are the products of a request; all when it names none.
func types(r *ticketingv1.TicketingCreateTicketsRequest) (words []string) {
	for _, t := range append(slices.Clone(r.GetIssueTypes()), r.GetIssueType()) {
		if t != findingsv1.IssueType_ISSUE_TYPE_UNSPECIFIED {
			words = append(words, strings.ToLower(strings.TrimPrefix(t.String(), "ISSUE_TYPE_")))
		}
	}
	if len(words) == 0 {
		return vocabulary.Products
	}
	return words
}

// LinkExternalTicket links findings to a ticket of an instance.
func (s *ExternalTickets) LinkExternalTicket(ctx context.Context, r *ticketingv1.LinkExternalTicketRequest) (*ticketingv1.LinkExternalTicketResponse, error) {
	instance, err := find(ctx, s.store.Reader, r.GetTicketingInstanceId())
	if err != nil {
		return nil, err
	}
	key, ok := keyOf(instance, r.GetTicketUrl())
	if !ok {
		return nil, apierr.InvalidArgument("ticketUrl", "ticketUrl must be the web page of a ticket of %s", instance.BaseURL)
	}
	done, err := s.link(ctx, instance, key, r.GetIssueIds())
	if err != nil {
		return nil, err
	}
	return &ticketingv1.LinkExternalTicketResponse{
		ExternalSlug: key, LinkedIssueIds: done.linked, ReplacedIssueIds: done.replaced, TicketId: done.ticket.ID, TicketUrl: done.ticket.URL,
	}, nil
}

// UnlinkExternalTicket unlinks findings from tickets of an instance.
func (s *ExternalTickets) UnlinkExternalTicket(ctx context.Context, r *ticketingv1.UnlinkExternalTicketRequest) (*ticketingv1.UnlinkExternalTicketResponse, error) {
	if _, err := find(ctx, s.store.Reader, r.GetTicketingInstanceId()); err != nil {
		return nil, err
	}
	ids, err := s.unlink(ctx, r.GetTicketingInstanceId(), r.GetIssueIds())
	if err != nil {
		return nil, err
	}
	return &ticketingv1.UnlinkExternalTicketResponse{UnlinkedIssueIds: ids}, nil
}

// DeleteTicketingTicket unlinks the findings of a ticket of an instance.
func (s *ExternalTickets) DeleteTicketingTicket(ctx context.Context, r *ticketingv1.DeleteTicketingTicketRequest) (*ticketingv1.DeleteTicketingTicketResponse, error) {
	ids, err := s.remove(ctx, r.GetTicketingInstanceId(), r.GetTicketingExternalTicketId())
	if err != nil {
		return nil, err
	}
	return &ticketingv1.DeleteTicketingTicketResponse{IssueIds: ids}, nil
}
