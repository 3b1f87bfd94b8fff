package triage

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/notification"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// States of exception requests, in the words of the table.
const (
	Requested = "requested"
	Approved  = "approved"
	Rejected  = "rejected"
)

// Sources of exception requests, in the words of the table.
const (
	SourceComment  = "scm_comment"
	SourcePlatform = "platform"
	SourceAPI      = "api"
)

// Sources are the sources in the words of the API.
var Sources = map[string]findingsv1.FindingExceptionRequestSource{
	SourceComment:  findingsv1.FindingExceptionRequestSource_FINDING_EXCEPTION_REQUEST_SOURCE_SCM_COMMENT,
	SourcePlatform: findingsv1.FindingExceptionRequestSource_FINDING_EXCEPTION_REQUEST_SOURCE_SEMGREP_APPSEC_PLATFORM,
	SourceAPI:      findingsv1.FindingExceptionRequestSource_FINDING_EXCEPTION_REQUEST_SOURCE_API,
}

// ExceptionKind is the kind of object in the audit trail.
const ExceptionKind = "exception_request"

// Person is who requests an exception, or decides about it. Names are stored as they are at that time.
type Person struct {
	Kind string
	// ID is the id of the user or the token; UserID the user, or the creator of the token.
	ID, UserID int64
	// Login is the e-mail address, the name of the token or the login at the host. Name may be empty.
	Login, Name string
}

// Caller returns the caller of the request, and the source of exceptions that the caller requests.
func Caller(ctx context.Context, db *ent.Client) (by Person, source string, err error) {
	p, ok := access.FromContext(ctx)
	if !ok {
		return Person{}, "", errors.New("a request without a caller")
	}
	by, source = Person{Kind: string(p.Kind), ID: p.ID, UserID: p.UserID, Login: p.Name}, SourceAPI
	if p.Scheme == optionsv1.Scheme_SCHEME_JWT {
		source = SourcePlatform
	}
	if p.UserID != 0 {
		row, err := db.User.Query().Where(user.ID(p.UserID)).Select(user.FieldID, user.FieldName).Only(tenant.System(ctx))
		if err != nil && !ent.IsNotFound(err) {
			return Person{}, "", err
		}
		if row != nil {
			by.Name = row.Name
		}
	}
	return by, source, nil
}

// mayRequest is the condition that an exception can be requested for a finding of the table f: it is not ignored, and
// nobody requests one for the same identity.
func mayRequest(f string, deploymentID int64) []any {
	return []any{
		f + ".triage_state <> '" + lifecycle.Ignored + "' AND NOT EXISTS (SELECT 1 FROM findings twin JOIN exception_requests open" +
			" ON open.finding_id = twin.id AND open.state = '" + Requested + "' AND open.deployment_id = ", arg{deploymentID},
		" WHERE twin.deployment_id = ", arg{deploymentID}, " AND twin.project_id = " + f + ".project_id AND twin.fingerprint = " + f + ".fingerprint" +
			" AND twin.issue_type = " + f + ".issue_type)",
	}
}

// Requestable selects the findings for which RequestExceptions would request an exception.
func Requestable(deploymentID int64) predicate.Finding {
	return func(s *entsql.Selector) {
		s.Where(entsql.P(func(b *entsql.Builder) {
			for _, part := range mayRequest(s.TableName(), deploymentID) {
				if value, ok := part.(arg); ok {
					b.Arg(value.value)
				} else {
					b.WriteString(part.(string))
				}
			}
		}))
	}
}

// requestable are the findings f of the conditions for which an exception can be requested, after FROM.
func requestable(ctx context.Context, st *store.Store, deploymentID int64, where []predicate.Finding) ([]any, error) {
	ids, err := selected(ctx, st, where, "findings.id")
	if err != nil {
		return nil, err
	}
	return join("findings f WHERE +f.deployment_id = ", arg{deploymentID}, " AND f.id IN (", ids, ") AND ", mayRequest("f", deploymentID)), nil
}

// CountRequests counts the findings for which RequestExceptions would request an exception.
func CountRequests(ctx context.Context, st *store.Store, db querier, deploymentID int64, where ...predicate.Finding) (int64, error) {
	found, err := requestable(ctx, st, deploymentID, where)
	if err != nil {
		return 0, err
	}
	return count(ctx, st, db, join("SELECT count(*) FROM ", found)...)
}

// RequestExceptions requests that findings are ignored as the decision says, one request for each identity. An approval
// ignores them for good, also if the decision is provisional. RequestExceptions records an event for each finding and
// an audit entry, and notifies administrators. It returns the number of findings. The caller has to hold the locks of
// the findings' projects; see LockProjects.
func (d Decision) RequestExceptions(ctx context.Context, st *store.Store, tx *ent.Tx, by Person, source string, where ...predicate.Finding) (int64, error) {
	d.Reason = cmp.Or(d.Reason, lifecycle.NoTriageReason)
	found, err := requestable(ctx, st, d.DeploymentID, where)
	if err != nil {
		return 0, err
	}
	requested, err := exec(ctx, st, tx, join(events, "SELECT f.deployment_id, f.id, 'exception_requested', f.status, f.status, ", arg{d.Reason}, ", ",
		arg{d.Note}, ", ", d.actor(), " FROM ", found)...)
	if err != nil || requested == 0 {
		return 0, err
	}
	_, err = exec(ctx, st, tx, join("INSERT INTO exception_requests (deployment_id, project_id, finding_id, state, source, reason, note, requester_kind,"+
		" requester_id, requester_user_id, requester_login, requester_name, created_at, reviewer_kind, reviewer_id, reviewer_login, reviewer_name, review_note)"+
		" SELECT f.deployment_id, f.project_id, MIN(f.id), '"+Requested+"', ", arg{source}, ", ", arg{d.Reason}, ", ", arg{d.Note}, ", ", arg{by.Kind}, ", ",
		arg{by.ID}, ", ", arg{by.UserID}, ", ", arg{by.Login}, ", ", arg{by.Name}, ", ", arg{d.At}, ", '', 0, '', '', '' FROM ", found,
		" GROUP BY f.deployment_id, f.project_id, f.fingerprint, f.issue_type ORDER BY MIN(f.id)")...)
	if err != nil {
		return 0, err
	}
	audit.Change(ctx, ExceptionKind, strconv.FormatInt(requested, 10)+" findings", nil, &findingsv1.ExceptionRequest{
		Source: Sources[source], Note: d.Note, RequesterLogin: by.Login, RequesterName: by.Name,
		TriageReason: findingsv1.FindingTriageReason(findingsv1.FindingTriageReason_value["FINDING_TRIAGE_REASON_"+strings.ToUpper(d.Reason)]),
	})
	return requested, d.notifyApprovers(ctx, tx)
}

// notifyApprovers notifies administrators, at most once a day, that requests wait.
func (d Decision) notifyApprovers(ctx context.Context, tx *ent.Tx) error {
	return tx.Notification.Create().SetDeploymentID(d.DeploymentID).SetDedupKey("exception_requests:"+store.Time(d.At).Format(time.DateOnly)).
		SetTitle("Exceptions are requested").
		SetDescription("Developers ask to ignore findings. The list of exception requests shows them; an administrator approves or rejects each.").
		SetSeverity(notificationsv1.Severity_SEVERITY_INFO.String()).SetAdminOnly(true).SetLink("").SetIsExternalLink(false).SetLinkText("").SetCreatedAt(d.At).
		OnConflictColumns(notification.FieldDeploymentID, notification.FieldDedupKey).Ignore().Exec(ctx)
}

// Review decides about open requests: it ignores the findings with the reasons of the requesters, or marks them as to
// be fixed. The findings get the requesters' note if it is the same for all, otherwise the reviewer's. The caller has
// to hold the locks of the findings' projects. It returns the changes that it made, one for each of the few reasons.
func Review(
	ctx context.Context, st *store.Store, tx *ent.Tx, requests []*ent.ExceptionRequest, approve bool, by Person, d Decision,
) ([]*Change, error) {
	groups := map[string][]*ent.ExceptionRequest{}
	for _, r := range requests {
		reason := "" // to be fixed
		if approve {
			reason = r.Reason
		}
		groups[reason] = append(groups[reason], r)
	}
	kind, state, word := "exception_rejected", lifecycle.Fixing, Rejected
	if approve {
		kind, state, word = "exception_approved", lifecycle.Ignored, Approved
	}
	var changes []*Change
	for _, reason := range slices.Sorted(maps.Keys(groups)) {
		var ids, findings []int64
		for _, r := range groups[reason] {
			ids, findings = append(ids, r.ID), append(findings, r.FindingID)
		}
		slices.Sort(findings)
		one := d
		one.Kind, one.State, one.Reason = KindException, state, reason
		if approve && sameNote(groups[reason]) {
			one.Note = groups[reason][0].Note
		}
		_, err := exec(ctx, st, tx, join(events, "SELECT deployment_id, id, '"+kind+"', status, status, ", arg{reason}, ", ", arg{d.Note}, ", ", d.actor(),
			" FROM findings WHERE +deployment_id = ", arg{d.DeploymentID}, " AND ", store.InIDs("id", findings))...)
		if err != nil {
			return nil, err
		}
		change, _, err := one.Apply(ctx, st, tx, findings)
		if err != nil {
			return nil, err
		}
		err = tx.ExceptionRequest.Update().Where(store.WithIDs[predicate.ExceptionRequest](ids)).SetState(word).SetNillableReviewID(change.reviewID()).
			SetReviewerKind(by.Kind).SetReviewerID(by.ID).SetReviewerLogin(by.Login).SetReviewerName(by.Name).SetReviewNote(d.Note).
			SetReviewedAt(d.At).Exec(ctx)
		if err != nil {
			return nil, err
		}
		if change.ID != 0 {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

func sameNote(requests []*ent.ExceptionRequest) bool {
	return !slices.ContainsFunc(requests, func(r *ent.ExceptionRequest) bool { return r.Note != requests[0].Note })
}
