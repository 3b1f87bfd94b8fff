package triage

import (
	"context"
	"strconv"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
)

// answerRequests closes the open requests about the findings of the change, because the decision is the answer to them:
// an ignored finding approves a request, any other state rejects it. Otherwise a later review would override the
// decision.
func (c *Change) answerRequests(ctx context.Context, state string, reviewID int64) error {
	if state == "" {
		return nil
	}
	word, answer := Rejected, findingsv1.FindingExceptionRequestState_FINDING_EXCEPTION_REQUEST_STATE_REJECTED
	if Ignores(state) {
		word, answer = Approved, findingsv1.FindingExceptionRequestState_FINDING_EXCEPTION_REQUEST_STATE_APPROVED
	}
	// As a subquery for each finding, because a join may compare each request with each finding. A finding has at most
	// one open request.
	open := join("(SELECT id FROM exception_requests WHERE deployment_id = ", arg{c.DeploymentID},
		" AND finding_id = kept.finding_id AND reviewed_at IS NULL)")
	kept := join(" FROM triage_change_findings kept WHERE kept.deployment_id = ", arg{c.DeploymentID}, " AND kept.change_id = ", arg{c.ID})
	n, err := count(ctx, c.store, c.tx, join("SELECT count(", open, ")", kept)...)
	if err != nil || n == 0 {
		return err
	}
	by, err := c.reviewer(ctx)
	if err != nil {
		return err
	}
	_, err = c.exec(ctx, "UPDATE exception_requests SET state = ", arg{word}, ", review_id = ", arg{reviewID}, ", reviewer_kind = ", arg{by.Kind},
		", reviewer_id = ", arg{by.ID}, ", reviewer_login = ", arg{by.Login}, ", reviewer_name = ", arg{by.Name}, ", review_note = ", arg{c.Note},
		", reviewed_at = ", arg{c.At}, " WHERE +deployment_id = ", arg{c.DeploymentID}, " AND id IN (SELECT ", open, kept, ")")
	if err != nil {
		return err
	}
	auditRequests(ctx, n, &findingsv1.ExceptionRequest{State: answer, ReviewerLogin: by.Login, ReviewerName: by.Name, ReviewNote: c.Note})
	return nil
}

// reviewer is who made the change.
func (c *Change) reviewer(ctx context.Context) (Person, error) {
	if _, ok := access.FromContext(ctx); !ok { // a person at a host
		return Person{Kind: c.ActorKind, ID: c.ActorID, Login: c.ActorName}, nil
	}
	by, _, err := Caller(ctx, c.tx.Client())
	return by, err
}

// reviewID is the id of the change for the requests that it answers; nil if the change changed nothing.
func (c *Change) reviewID() *int64 {
	if c.ID == 0 {
		return nil
	}
	return &c.ID
}

// revertRequests does to the requests what the undo does to their findings: it opens the requests that the decision
// answered, or answers them again. A request stays closed if a newer one is open for the same identity.
func (u *undo) revertRequests(ctx context.Context) error {
	if u.of.Redoes {
		return u.answerRequests(ctx, u.of.Decision.State, u.of.Decision.ID)
	}
	n, err := u.exec(ctx, "UPDATE exception_requests SET state = '"+Requested+"', review_id = NULL, reviewer_kind = '', reviewer_id = 0,"+
		" reviewer_login = '', reviewer_name = '', review_note = '', reviewed_at = NULL WHERE deployment_id = ", arg{u.DeploymentID},
		" AND review_id = ", arg{u.of.Decision.ID}, " AND finding_id IN (", u.ids(), ") AND NOT EXISTS (SELECT 1 FROM findings f JOIN findings twin"+
			" ON twin.project_id = f.project_id AND twin.fingerprint = f.fingerprint AND twin.issue_type = f.issue_type JOIN exception_requests newer"+
			" ON newer.finding_id = twin.id AND newer.state = '"+Requested+"' AND newer.deployment_id = ", arg{u.DeploymentID},
		" WHERE f.id = exception_requests.finding_id)")
	if n > 0 {
		auditRequests(ctx, n, &findingsv1.ExceptionRequest{State: findingsv1.FindingExceptionRequestState_FINDING_EXCEPTION_REQUEST_STATE_REQUESTED})
	}
	return err
}

// auditRequests records a change of several requests.
func auditRequests(ctx context.Context, n int64, after *findingsv1.ExceptionRequest) {
	audit.Change(ctx, ExceptionKind, strconv.FormatInt(n, 10)+" requests", nil, after)
}
