package platform

import (
	"context"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/supportcase"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// userCases and deploymentCases limit the new cases in caseWindow, because each may become an e-mail.
	userCases       = 50
	deploymentCases = 500
	caseWindow      = 24 * time.Hour
	// maxCases is the largest page of the list.
	maxCases = 500

	caseOpen  = "open"
	auditCase = "support_case"
)

// Support is the service group "support".
type Support struct {
	platformv1.UnimplementedSupportServiceServer
	store     *store.Store
	jobs      *jobs.Jobs
	receivers []string
}

// NewSupport stores cases. receivers are where each new case is forwarded to: supportEmail, supportWebhook.
func NewSupport(st *store.Store, queue *jobs.Jobs, receivers []string) *Support {
	return &Support{store: st, jobs: queue, receivers: receivers}
}

// CreateSupportCase opens a case.
func (s *Support) CreateSupportCase(ctx context.Context, r *platformv1.CreateSupportCaseRequest) (*platformv1.CreateSupportCaseResponse, error) {
	if org := r.GetOrganizationId(); org != 0 && org != r.GetDeploymentId() {
		return nil, access.NoDeployment()
	}
	subject := strings.Join(strings.Fields(r.GetSubject()), " ")
	if subject == "" {
		return nil, apierr.InvalidArgument("subject", "subject must not be blank")
	}
	caller, _ := access.FromContext(ctx)
	email := r.GetEmail()
	if email == "" {
		email = caller.Name
	}
	kind, priority := r.GetType(), r.GetPriority()
	if kind == platformv1.CreateSupportCaseRequest_TYPE_UNSPECIFIED {
		kind = platformv1.CreateSupportCaseRequest_TYPE_QUESTION
	}
	if priority == platformv1.CreateSupportCaseRequest_PRIORITY_UNSPECIFIED {
		priority = platformv1.CreateSupportCaseRequest_PRIORITY_MEDIUM
	}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		number, err := s.nextCase(ctx, tx, caller.UserID)
		if err != nil {
			return err
		}
		now := store.Now()
		row, err := tx.SupportCase.Create().SetNumber(number).SetUserID(caller.UserID).SetSubject(subject).SetDescription(r.GetDescription()).
			SetKind(caseWord("TYPE_", kind.String())).SetPriority(caseWord("PRIORITY_", priority.String())).SetEmail(email).
			SetStatus(caseOpen).SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		audit.Change(ctx, auditCase, row.Number, nil, showCase(row))
		for _, receiver := range s.receivers {
			if err := s.jobs.Enqueue(ctx, forwardArgs{DeploymentID: row.DeploymentID, CaseID: row.ID, Receiver: receiver}, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &platformv1.CreateSupportCaseResponse{}, nil
}

// caseWord is the name of an enum's value as the list shows it.
func caseWord(prefix, name string) string {
	return strings.ToLower(strings.TrimPrefix(name, prefix))
}

// nextCase returns the number of the next case, unless there are too many new ones.
func (s *Support) nextCase(ctx context.Context, tx *ent.Tx, userID int64) (int64, error) {
	if _, err := s.store.LockDeployment(ctx, tx); err != nil {
		return 0, err
	}
	for _, limit := range []struct {
		cases *ent.SupportCaseQuery
		most  int
	}{
		{tx.SupportCase.Query().Where(supportcase.UserID(userID)), userCases},
		{tx.SupportCase.Query(), deploymentCases},
	} {
		oldest, err := limit.cases.Order(ent.Desc(supportcase.FieldNumber)).Offset(limit.most - 1).First(ctx)
		if err != nil && !ent.IsNotFound(err) {
			return 0, err
		}
		if err == nil {
			if wait := time.Until(store.Time(oldest.CreatedAt).Add(caseWindow)); wait > 0 {
				return 0, apierr.RateLimited(wait)
			}
		}
	}
	last, err := tx.SupportCase.Query().Order(ent.Desc(supportcase.FieldNumber)).First(ctx)
	if ent.IsNotFound(err) {
		return 1, nil
	}
	if err != nil {
		return 0, err
	}
	return last.Number + 1, nil
}

// ListSupportCases lists the cases that the caller may see, newest first.
func (s *Support) ListSupportCases(ctx context.Context, r *platformv1.ListSupportCasesRequest) (*platformv1.ListSupportCasesResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("support_cases", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.SupportCase.Query()
	if grant, ok := access.GrantFromContext(ctx); !ok || grant.Role != access.RoleAdmin {
		caller, _ := access.FromContext(ctx)
		query.Where(supportcase.UserID(caller.UserID))
	}
	if continued {
		query.Where(supportcase.NumberLT(key.Order))
	}
	limit := int(r.GetLimit())
	if limit == 0 {
		limit = maxCases
	}
	rows, err := query.Order(ent.Desc(supportcase.FieldNumber)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &platformv1.ListSupportCasesResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		out.Cursor = page.Encode(digest, page.Key{Order: rows[limit-1].Number})
	}
	for _, row := range rows {
		out.SupportCases = append(out.SupportCases, showCase(row))
	}
	return out, nil
}

// UpdateSupportCase changes the status or the owner of a case.
func (s *Support) UpdateSupportCase(ctx context.Context, r *platformv1.UpdateSupportCaseRequest) (*platformv1.UpdateSupportCaseResponse, error) {
	if r.GetRemoveOwner() && r.GetCaseOwner() != "" {
		return nil, apierr.InvalidArgument("removeOwner", "removeOwner cannot be set together with caseOwner")
	}
	out := &platformv1.UpdateSupportCaseResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		query := tx.SupportCase.Query().Where(supportcase.Number(r.GetCaseNumber()))
		if s.store.Postgres() {
			query.ForUpdate()
		}
		row, err := query.Only(ctx)
		if ent.IsNotFound(err) {
			return apierr.NotFound("support case %d not found", r.GetCaseNumber())
		}
		if err != nil {
			return err
		}
		update := row.Update().SetUpdatedAt(store.Now())
		if r.GetStatus() != "" {
			update.SetStatus(r.GetStatus())
		}
		if owner := strings.Join(strings.Fields(r.GetCaseOwner()), " "); owner != "" || r.GetRemoveOwner() {
			update.SetOwner(owner)
		}
		after, err := update.Save(ctx)
		if err != nil {
			return err
		}
		out.SupportCase = showCase(after)
		audit.Change(ctx, auditCase, row.Number, showCase(row), out.GetSupportCase())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func showCase(row *ent.SupportCase) *platformv1.SupportCase {
	return &platformv1.SupportCase{
		CaseNumber: strconv.FormatInt(row.Number, 10), CaseType: row.Kind, Priority: row.Priority, Status: row.Status,
		Subject: row.Subject, Description: row.Description, Email: row.Email, CaseOwner: row.Owner,
		CreatedAt: timestamppb.New(store.Time(row.CreatedAt)), UpdatedAt: timestamppb.New(store.Time(row.UpdatedAt)),
	}
}
