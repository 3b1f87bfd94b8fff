package findings

import (
	"context"
	"slices"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/exceptionrequest"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

// defaultRequests is the page size of the list of exception requests.
const defaultRequests = 100

// ExceptionRequests is the service group "exception requests".
type ExceptionRequests struct {
	findingsv1.UnimplementedExceptionRequestsServiceServer
	store *store.Store
	jobs  *jobs.Jobs
}

// NewExceptionRequests serves exception requests from the store.
func NewExceptionRequests(st *store.Store, queue *jobs.Jobs) *ExceptionRequests {
	return &ExceptionRequests{store: st, jobs: queue}
}

// ListExceptionRequests lists requests, newest first.
func (s *ExceptionRequests) ListExceptionRequests(
	ctx context.Context, r *findingsv1.ListExceptionRequestsRequest,
) (*findingsv1.ListExceptionRequestsResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", nil
	digest, err := page.DigestOf("exception requests", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.ExceptionRequest.Query()
	if state := wordOf(r.GetState(), "FINDING_EXCEPTION_REQUEST_STATE_"); state != "" {
		query.Where(exceptionrequest.State(state))
	}
	if r.GetProjectId() != 0 {
		query.Where(exceptionrequest.ProjectID(r.GetProjectId()))
	}
	if r.GetFindingId() != 0 {
		query.Where(exceptionrequest.FindingID(r.GetFindingId()))
	}
	if continued {
		query.Where(exceptionrequest.IDLT(key.ID))
	}
	limit := defaultRequests
	if r.Limit != nil {
		limit = int(r.GetLimit())
	}
	rows, err := query.Order(ent.Desc(exceptionrequest.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &findingsv1.ListExceptionRequestsResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		out.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	out.Requests, err = describeRequests(ctx, s.store.Reader, rows)
	return out, err
}

// ReviewExceptionRequests decides about requests in one transaction.
func (s *ExceptionRequests) ReviewExceptionRequests(
	ctx context.Context, r *findingsv1.ReviewExceptionRequestsRequest,
) (*findingsv1.ReviewExceptionRequestsResponse, error) {
	out := &findingsv1.ReviewExceptionRequestsResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if _, err := triage.LockProjects(ctx, s.store, tx, requestedBy(r.GetRequestIds())); err != nil {
			return err
		}
		by, _, err := triage.Caller(ctx, tx.Client())
		if err != nil {
			return err
		}
		rows, err := readRequests(ctx, tx, r.GetRequestIds())
		if err != nil {
			return err
		}
		if err := refuseReview(r.GetRequestIds(), rows, by); err != nil {
			return err
		}
		approve := r.GetDecision() == findingsv1.ExceptionDecision_EXCEPTION_DECISION_APPROVE
		changes, err := triage.Review(ctx, s.store, tx, rows, approve, by, newDecision(ctx, s.jobs, triage.KindException, "", "", r.GetNote()))
		if err != nil {
			return err
		}
		for _, change := range changes {
			auditChange(ctx, change)
			out.ChangeIds = append(out.ChangeIds, change.ID)
		}
		if rows, err = readRequests(ctx, tx, r.GetRequestIds()); err != nil {
			return err
		}
		if out.Requests, err = describeRequests(ctx, tx.Client(), rows); err != nil {
			return err
		}
		for _, request := range out.GetRequests() {
			audit.Change(ctx, triage.ExceptionKind, request.GetId(), nil, request)
		}
		return nil
	})
	return out, err
}

// requestedBy selects the findings of requests.
func requestedBy(requests []int64) predicate.Finding {
	return func(s *entsql.Selector) {
		rows := entsql.Dialect(s.Dialect()).Table(exceptionrequest.Table)
		ids := entsql.Dialect(s.Dialect()).Select(rows.C(exceptionrequest.FieldFindingID)).From(rows)
		s.Where(entsql.In(s.C(finding.FieldID), ids.Where(store.InIDs(rows.C(exceptionrequest.FieldID), requests))))
	}
}

func readRequests(ctx context.Context, tx *ent.Tx, ids []int64) ([]*ent.ExceptionRequest, error) {
	return tx.ExceptionRequest.Query().Where(store.WithIDs[predicate.ExceptionRequest](ids)).Order(ent.Asc(exceptionrequest.FieldID)).All(ctx)
}

// refuseReview refuses unknown and decided requests, and the caller's own ones.
func refuseReview(wanted []int64, rows []*ent.ExceptionRequest, by triage.Person) error {
	for _, id := range wanted {
		if !slices.ContainsFunc(rows, func(row *ent.ExceptionRequest) bool { return row.ID == id }) {
			return apierr.NotFound("no exception request %d", id)
		}
	}
	for _, row := range rows {
		if row.State != triage.Requested {
			return apierr.FailedPrecondition("exception request %d was %s already, by %s", row.ID, row.State, row.ReviewerLogin)
		}
		if isOwn(row, by) {
			return apierr.PermissionDenied("exception request %d is your own: another administrator has to decide about it", row.ID)
		}
	}
	return nil
}

// isOwn reports whether a person or token requested the exception itself. Two tokens are two callers, also if the same
// administrator created both: where nobody signs in, the first administrator creates all tokens. A person and a token
// that they created are one. An imported request has only the name of a requester who was not here.
func isOwn(row *ent.ExceptionRequest, by triage.Person) bool {
	if row.RequesterKind == by.Kind {
		return row.RequesterID == by.ID || row.RequesterID == 0 && row.RequesterLogin == by.Login
	}
	return row.RequesterUserID != 0 && row.RequesterUserID == by.UserID
}

// describeRequests adds the names of projects and rules, and the present status of the findings.
func describeRequests(ctx context.Context, db *ent.Client, rows []*ent.ExceptionRequest) ([]*findingsv1.ExceptionRequest, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	projects, ids := make([]int64, len(rows)), make([]int64, len(rows))
	for i, row := range rows {
		projects[i], ids[i] = row.ProjectID, row.FindingID
	}
	found, err := db.Finding.Query().Where(store.WithIDs[predicate.Finding](ids)).
		Select(finding.FieldID, finding.FieldRuleID, finding.FieldStatus).All(ctx)
	if err != nil {
		return nil, err
	}
	findings, rules := make(map[int64]*ent.Finding, len(found)), make([]int64, len(found))
	for i, row := range found {
		findings[row.ID], rules[i] = row, row.RuleID
	}
	names, err := namesOf(ctx, db, projects, rules)
	if err != nil {
		return nil, err
	}
	out := make([]*findingsv1.ExceptionRequest, len(rows))
	for i, row := range rows {
		out[i] = describeRequest(row)
		out[i].ProjectName = names.projects[row.ProjectID]
		if f := findings[row.FindingID]; f != nil {
			out[i].RuleName, out[i].FindingStatus = names.rules[f.RuleID], f.Status
		}
	}
	return out, nil
}

func describeRequest(row *ent.ExceptionRequest) *findingsv1.ExceptionRequest {
	return &findingsv1.ExceptionRequest{
		Id: row.ID, ProjectId: row.ProjectID, FindingId: row.FindingID,
		State:        valueOf[findingsv1.FindingExceptionRequestState](findingsv1.FindingExceptionRequestState_value, "FINDING_EXCEPTION_REQUEST_STATE_", row.State),
		Source:       triage.Sources[row.Source],
		TriageReason: valueOf[findingsv1.FindingTriageReason](findingsv1.FindingTriageReason_value, "FINDING_TRIAGE_REASON_", row.Reason),
		Note:         row.Note, RequesterLogin: row.RequesterLogin, RequesterName: row.RequesterName, CreatedAt: timestamppb.New(store.Time(row.CreatedAt)),
		ReviewerLogin: row.ReviewerLogin, ReviewerName: row.ReviewerName, ReviewNote: row.ReviewNote, ReviewId: row.ReviewID,
		ReviewedAt: store.Timestamp(row.ReviewedAt),
	}
}

// requestExceptions requests exceptions for the caller.
func requestExceptions(ctx context.Context, st *store.Store, tx *ent.Tx, d triage.Decision, where []predicate.Finding) (int64, error) {
	by, source, err := triage.Caller(ctx, tx.Client())
	if err != nil {
		return 0, err
	}
	return d.RequestExceptions(ctx, st, tx, by, source, where...)
}
