package ticketing

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/column"
	"github.com/palisade/palisade/ent/ticketinginstance"
	ticketingv1 "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/ticketing/tracker"
)

const (
	// maxInstances is how many trackers a deployment may have.
	maxInstances = 20
	// maxFields is the maximum length of the fields of Jira's issues, in bytes of JSON.
	maxFields = 16 << 10
	// auditInstance is the object kind of instances in the audit trail.
	auditInstance = "ticketing_instance"
	sealedToken   = "token"
)

var byID = ent.Asc(ticketinginstance.FieldID)

// cloudURLs are the addresses of the kinds that have one for everybody.
var cloudURLs = map[tracker.Kind]string{tracker.GitHub: "https://github.com", tracker.GitLab: "https://gitlab.com"}

// GetTicketingTicketingInstances lists the instances.
func (s *ExternalTickets) GetTicketingTicketingInstances(ctx context.Context, _ *ticketingv1.GetTicketingTicketingInstancesRequest) (*ticketingv1.GetTicketingTicketingInstancesResponse, error) {
	rows, err := s.store.Reader.TicketingInstance.Query().Order(byID).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &ticketingv1.GetTicketingTicketingInstancesResponse{}
	manages := mayManage(ctx)
	for _, row := range rows {
		one := convert(row)
		if !manages { // the mappings name projects of all teams
			one.User, one.Mappings = "", nil
		}
		out.Instances = append(out.Instances, one)
	}
	return out, nil
}

// CreateTicketingInstance connects a tracker. It does not call the tracker: see CheckTicketingInstance.
func (s *ExternalTickets) CreateTicketingInstance(ctx context.Context, r *ticketingv1.CreateTicketingInstanceRequest) (*ticketingv1.CreateTicketingInstanceResponse, error) {
	in := r.GetInstance()
	if in.GetInstanceType() == "" {
		return nil, apierr.InvalidArgument("instance.instanceType", "instance.instanceType is required: one of github, gitlab, jira, jira-data-center")
	}
	kind := tracker.Kind(in.GetInstanceType())
	address, err := s.address(kind, in.GetBaseUrl())
	if err != nil {
		return nil, err
	}
	if kind == tracker.Jira && in.GetUser() == "" {
		return nil, apierr.InvalidArgument("instance.user", "instance.user is required for jira: the e-mail address of the API token's account")
	}
	fields, err := fieldsJSON("instance.fields", in.GetFields())
	if err != nil {
		return nil, err
	}
	if err := checkClosed("instance.closedReason", in.GetClosedState(), in.GetClosedReason()); err != nil {
		return nil, err
	}
	projects, err := mappings("instance.mappings", in.GetMappings())
	if err != nil {
		return nil, err
	}
	out := &ticketingv1.CreateTicketingInstanceResponse{}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := tx.TicketingInstance.Query().Count(ctx)
		if err != nil {
			return err
		}
		if n >= maxInstances {
			return apierr.FailedPrecondition("a deployment has at most %d ticketing instances: delete one first", maxInstances)
		}
		now := store.Now()
		row, err := tx.TicketingInstance.Create().SetKind(string(kind)).SetBaseURL(address).SetAccount(in.GetUser()).SetProject(in.GetProjectId()).
			SetIssueType(in.GetIssueTypeId()).SetFields(fields).SetLabels(in.GetLabels()).SetMappings(projects).
			SetCloseAt(in.GetFixedTransitionState().GetSemgrepAggregateState()).SetTransition(in.GetFixedTransitionState().GetJiraTransitionId()).
			SetClosedState(in.GetClosedState()).SetClosedReason(in.GetClosedReason()).
			SetAutomatic(automaticProducts(in.GetAutomationStates())).SetAutomaticAfter(automaticAfter(nil, in.GetAutomationStates())).
			SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		sealed, err := s.seals.Seal(ticketinginstance.Table, sealedToken, row.DeploymentID, row.ID, r.GetToken())
		if err != nil {
			return err
		}
		if row, err = row.Update().SetToken(sealed).Save(ctx); err != nil {
			return err
		}
		out.Instance = convert(row)
		audit.Change(ctx, auditInstance, row.ID, nil, out.GetInstance())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// UpdateTicketingInstance changes the fields that the request has.
func (s *ExternalTickets) UpdateTicketingInstance(ctx context.Context, r *ticketingv1.UpdateTicketingInstanceRequest) (*ticketingv1.UpdateTicketingInstanceResponse, error) {
	out := &ticketingv1.UpdateTicketingInstanceResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.lock(ctx, tx, r.GetTicketingInstanceId())
		if err != nil {
			return err
		}
		if r.User != nil && r.GetUser() == "" && row.Kind == string(tracker.Jira) {
			return apierr.InvalidArgument("user", "user must not be empty for jira: the e-mail address of the API token's account")
		}
		update := row.Update().SetNillableProject(r.ProjectId).SetNillableIssueType(r.IssueTypeId).SetNillableAccount(r.User).SetUpdatedAt(store.Now())
		if r.GetFields() != nil {
			fields, err := fieldsJSON("fields", r.GetFields())
			if err != nil {
				return err
			}
			update.SetFields(fields)
		}
		if r.GetLists() != nil {
			projects, err := mappings("lists.mappings", r.GetLists().GetMappings())
			if err != nil {
				return err
			}
			update.SetLabels(r.GetLists().GetLabels()).SetMappings(projects)
		}
		if c := r.GetClosing(); c != nil {
			if err := checkClosed("closing.closedReason", c.GetClosedState(), c.GetClosedReason()); err != nil {
				return err
			}
			update.SetCloseAt(c.GetFixedTransitionState().GetSemgrepAggregateState()).SetTransition(c.GetFixedTransitionState().GetJiraTransitionId()).
				SetClosedState(c.GetClosedState()).SetClosedReason(c.GetClosedReason())
		}
		if a := r.GetAutomationStates(); a != nil {
			update.SetAutomatic(automaticProducts(a)).SetAutomaticAfter(automaticAfter(row, a))
		}
		if r.Token != nil {
			sealed, err := s.seals.Seal(ticketinginstance.Table, sealedToken, row.DeploymentID, row.ID, r.GetToken())
			if err != nil {
				return err
			}
			update.SetToken(sealed).SetRefused(false)
		}
		after, err := update.Save(ctx)
		if err != nil {
			return err
		}
		out.Instance = convert(after)
		audit.Change(ctx, auditInstance, row.ID, convert(row), out.GetInstance())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteTicketingInstance deletes an instance. Its tickets stay linked.
func (s *ExternalTickets) DeleteTicketingInstance(ctx context.Context, r *ticketingv1.DeleteTicketingInstanceRequest) (*ticketingv1.DeleteTicketingInstanceResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.lock(ctx, tx, r.GetTicketingInstanceId())
		if err != nil {
			return err
		}
		audit.Change(ctx, auditInstance, row.ID, convert(row), nil)
		return tx.TicketingInstance.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &ticketingv1.DeleteTicketingInstanceResponse{}, nil
}

// CheckTicketingInstance tries the credential and each project at the tracker.
func (s *ExternalTickets) CheckTicketingInstance(ctx context.Context, r *ticketingv1.CheckTicketingInstanceRequest) (*ticketingv1.CheckTicketingInstanceResponse, error) {
	instance, err := find(ctx, s.store.Reader, r.GetTicketingInstanceId())
	if err != nil {
		return nil, err
	}
	at, err := s.open(instance)
	if err != nil {
		return nil, err
	}
	out := &ticketingv1.CheckTicketingInstanceResponse{}
	projects := projectsOf(instance)
	if len(projects) == 0 {
		out.Problems = append(out.Problems, "the instance has no project: set projectId or mappings")
	}
	for _, project := range projects {
		err := at.Check(ctx, project, instance.IssueType)
		if err := s.note(ctx, instance, err); err != nil {
			return nil, err
		}
		text := connect.ErrorText(err)
		if err != nil && text == "" {
			return nil, err
		}
		if err != nil {
			out.Problems = append(out.Problems, project+": "+text)
		}
		if endsAll(err) {
			break
		}
	}
	out.Ok = len(out.GetProblems()) == 0
	return out, nil
}

func find(ctx context.Context, db *ent.Client, id int64) (*ent.TicketingInstance, error) {
	return orNotFound(id)(db.TicketingInstance.Query().Where(ticketinginstance.ID(id)).Only(ctx))
}

// lock finds an instance and locks it until the end of the transaction.
func (d *desk) lock(ctx context.Context, tx *ent.Tx, id int64) (*ent.TicketingInstance, error) {
	query := tx.TicketingInstance.Query().Where(ticketinginstance.ID(id))
	if d.store.Postgres() {
		query.ForUpdate()
	}
	return orNotFound(id)(query.Only(ctx))
}

func orNotFound(id int64) func(*ent.TicketingInstance, error) (*ent.TicketingInstance, error) {
	return func(row *ent.TicketingInstance, err error) (*ent.TicketingInstance, error) {
		if ent.IsNotFound(err) {
			return nil, apierr.NotFound("ticketing instance %d not found", id)
		}
		return row, err
	}
}

// address normalises the web address of a tracker: lower case, no trailing slash.
func (d *desk) address(kind tracker.Kind, raw string) (string, error) {
	if raw == "" {
		if cloudURLs[kind] == "" {
			return "", apierr.InvalidArgument("instance.baseUrl", "instance.baseUrl is required for %s, for example https://acme.atlassian.net", kind)
		}
		return cloudURLs[kind], nil
	}
	if err := d.egress.CheckURL(raw); err != nil {
		return "", apierr.InvalidArgument("instance.baseUrl", "instance.baseUrl %s", err)
	}
	u, err := url.Parse(raw)
	if err != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return "", apierr.InvalidArgument("instance.baseUrl", "instance.baseUrl must be the web address of a tracker, without a query and a fragment")
	}
	u.Host, u.RawPath, u.Path = strings.ToLower(u.Host), "", strings.TrimRight(u.Path, "/")
	return u.String(), nil
}

func fieldsJSON(name string, fields *structpb.Struct) ([]byte, error) {
	if len(fields.GetFields()) == 0 {
		return nil, nil
	}
	encoded, err := json.Marshal(fields.AsMap())
	if err != nil {
		return nil, err
	}
	if len(encoded) > maxFields {
		return nil, apierr.InvalidArgument(name, "%s must have at most %d bytes as JSON, got %d", name, maxFields, len(encoded))
	}
	return encoded, nil
}

func mappings(name string, list []*ticketingv1.ProjectMapping) ([]column.TicketProject, error) {
	out := make([]column.TicketProject, len(list))
	for i, m := range list {
		if !doublestar.ValidatePattern(m.GetRepository()) {
			field := fmt.Sprintf("%s[%d].repository", name, i)
			return nil, apierr.InvalidArgument(field, "%s must be the name of a project, or a pattern such as acme/*, got %s", field, apierr.Quote(m.GetRepository()))
		}
		out[i] = column.TicketProject{Repository: m.GetRepository(), Project: m.GetProjectId()}
	}
	return out, nil
}

func checkClosed(field, state, reason string) error {
	if reason != "" && state != lifecycle.Ignored {
		return apierr.InvalidArgument(field, "%s is allowed only together with closedState ignored", field)
	}
	return nil
}

// automaticProducts are the products that are switched on, in the words of the table.
func automaticProducts(a *ticketingv1.AutomationStates) (list []string) {
	for _, one := range []struct {
		on      bool
		product string
	}{
		{a.GetSast(), vocabulary.SAST}, {a.GetSca(), vocabulary.SCA}, {a.GetSecrets(), vocabulary.Secrets}, {a.GetAiSast(), vocabulary.AISAST},
		{a.GetScaMaliciousDeps(), malicious},
	} {
		if one.on {
			list = append(list, one.product)
		}
	}
	return list
}

// automaticAfter is the time after which findings count: now when a product is switched on, 0 when none is.
func automaticAfter(before *ent.TicketingInstance, a *ticketingv1.AutomationStates) int64 {
	products := automaticProducts(a)
	if len(products) == 0 {
		return 0
	}
	isNew := func(product string) bool { return before == nil || !slices.Contains(before.Automatic, product) }
	if slices.ContainsFunc(products, isNew) {
		return store.Now()
	}
	return before.AutomaticAfter
}

// convert is the form of the API. It has no credential.
func convert(row *ent.TicketingInstance) *ticketingv1.TicketingInstance {
	out := &ticketingv1.TicketingInstance{
		Id: row.ID, IsConfigured: row.Project != "", IsAuthRevoked: row.Refused, InstanceType: row.Kind, ProjectId: row.Project,
		IssueTypeId: row.IssueType, BaseUrl: row.BaseURL, User: row.Account, Labels: row.Labels,
	}
	if u, err := url.Parse(row.BaseURL); err == nil {
		out.Subdomain = u.Host
	}
	on := func(product string) bool { return slices.Contains(row.Automatic, product) }
	out.AutomationStates = &ticketingv1.AutomationStates{
		Sast: on(vocabulary.SAST), Sca: on(vocabulary.SCA), Secrets: on(vocabulary.Secrets), AiSast: on(vocabulary.AISAST), ScaMaliciousDeps: on(malicious),
	}
	if row.CloseAt != "" {
		out.FixedTransitionState = &ticketingv1.JiraTransition{JiraTransitionId: row.Transition, SemgrepAggregateState: row.CloseAt}
	}
	out.ClosedState, out.ClosedReason = row.ClosedState, row.ClosedReason
	out.Fields = &structpb.Struct{}
	if len(row.Fields) > 0 {
		_ = out.Fields.UnmarshalJSON(row.Fields) // fieldsJSON wrote it
	}
	for _, m := range row.Mappings {
		out.Mappings = append(out.Mappings, &ticketingv1.ProjectMapping{Repository: m.Repository, ProjectId: m.Project})
	}
	return out
}
