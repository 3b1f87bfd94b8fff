package ticketing

import (
	"context"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	ticketingv1 "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/list"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/ticketing/tracker"
)

// Tickets is the service group "external ticketing", v1.
type Tickets struct {
	ticketingv1.UnimplementedTicketingServiceServer
	*desk
}

// CreateTicket creates tickets for findings by id or by filter. A filter without a status selects open findings.
func (s *Tickets) CreateTicket(ctx context.Context, r *ticketingv1.CreateTicketRequest) (*ticketingv1.CreateTicketResponse, error) {
	instance, err := s.instanceFor(ctx, r.GetJiraProjectId())
	if err != nil {
		return nil, err
	}
	if err := mayName(ctx, "jira_project_id", instance, r.GetJiraProjectId()); err != nil {
		return nil, err
	}
	deploymentID, _ := tenant.FromContext(ctx)
	filter := list.FilterOf(deploymentID, r)
	if len(r.GetIssueIds()) == 0 && len(filter.Statuses) == 0 {
		filter.Statuses = []string{lifecycle.Open}
	}
	where, err := filter.Predicates(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	done, err := s.create(ctx, instance, order{
		project: r.GetJiraProjectId(), group: r.GroupIssues == nil || r.GetGroupIssues(), limit: int(r.GetLimit()),
	}, r.GetIssueIds(), false, where...)
	if err != nil {
		return nil, err
	}
	out := &ticketingv1.CreateTicketResponse{}
	for _, t := range done.succeeded {
		out.Succeeded = append(out.Succeeded, &ticketingv1.TicketCreationSuccess{ExternalSlug: t.key, IssueIds: t.findings, TicketId: t.id, TicketUrl: t.url})
	}
	for _, f := range done.failed {
		out.Failed = append(out.Failed, &ticketingv1.TicketCreationFailed{Error: f.reason, IssueIds: f.findings})
	}
	for _, f := range done.skipped {
		out.Skipped = append(out.Skipped, &ticketingv1.TicketCreationSkipped{Reason: f.reason, IssueIds: f.findings})
	}
	return out, nil
}

// LinkTicket links findings to a ticket of any instance.
func (s *Tickets) LinkTicket(ctx context.Context, r *ticketingv1.LinkTicketRequest) (*ticketingv1.LinkTicketResponse, error) {
	instances, err := s.store.Reader.TicketingInstance.Query().Order(byID).All(ctx)
	if err != nil {
		return nil, err
	}
	if len(instances) == 0 {
		return nil, errNoInstance()
	}
	instance, key := instanceOf(instances, r.GetTicketUrl())
	if instance == nil {
		return nil, apierr.InvalidArgument("ticket_url", "ticket_url must be the web page of a ticket of a connected tracker: %s", strings.Join(addresses(instances), ", "))
	}
	done, err := s.link(ctx, instance, key, r.GetIssueIds())
	if err != nil {
		return nil, err
	}
	return &ticketingv1.LinkTicketResponse{
		ExternalSlug: key, LinkedIssueIds: done.linked, ReplacedIssueIds: done.replaced, TicketId: done.ticket.ID, TicketUrl: done.ticket.URL,
	}, nil
}

// instanceOf returns the instance of a ticket by its web page: of several with the same address, the one that names the
// ticket's project.
func instanceOf(instances []*ent.TicketingInstance, ticketURL string) (found *ent.TicketingInstance, key string) {
	for _, instance := range instances {
		one, ok := keyOf(instance, ticketURL)
		if ok && (found == nil || slices.Contains(projectsOf(instance), tracker.Project(one)) && !slices.Contains(projectsOf(found), tracker.Project(key))) {
			found, key = instance, one
		}
	}
	return found, key
}

// UnlinkTicket unlinks findings from tickets of all instances.
func (s *Tickets) UnlinkTicket(ctx context.Context, r *ticketingv1.UnlinkTicketRequest) (*ticketingv1.UnlinkTicketResponse, error) {
	ids, err := s.unlink(ctx, 0, r.GetIssueIds())
	if err != nil {
		return nil, err
	}
	return &ticketingv1.UnlinkTicketResponse{UnlinkedIssueIds: ids}, nil
}

// DeleteTicket unlinks the findings of a ticket of any instance.
func (s *Tickets) DeleteTicket(ctx context.Context, r *ticketingv1.DeleteTicketRequest) (*ticketingv1.DeleteTicketResponse, error) {
	ids, err := s.remove(ctx, 0, r.GetExternalTicketId())
	if err != nil {
		return nil, err
	}
	return &ticketingv1.DeleteTicketResponse{IssueIds: ids}, nil
}

// instanceFor returns the instance for new tickets: the only one or, of several, the first that names the project.
func (s *Tickets) instanceFor(ctx context.Context, project string) (*ent.TicketingInstance, error) {
	instances, err := s.store.Reader.TicketingInstance.Query().Order(byID).All(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(instances) == 0:
		return nil, errNoInstance()
	case len(instances) == 1:
		return instances[0], nil
	}
	at := slices.IndexFunc(instances, func(i *ent.TicketingInstance) bool { return project != "" && slices.Contains(projectsOf(i), project) })
	if at < 0 {
		return nil, apierr.InvalidArgument("jira_project_id", "jira_project_id must be a project of a ticketing instance, because there are several: %s",
			strings.Join(addresses(instances), ", "))
	}
	return instances[at], nil
}

func errNoInstance() error {
	return apierr.FailedPrecondition("no issue tracker is connected: an administrator connects one with palisade tickets trackers add")
}

func addresses(instances []*ent.TicketingInstance) (list []string) {
	for _, i := range instances {
		list = append(list, i.BaseURL)
	}
	return list
}
