package access

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// maxSubject is the longest subject in characters (OpenID Connect Core, 2).
const maxSubject = 255

// Link lets a user sign in with an identity of an OpenID Connect issuer. It runs in the transaction tx, whose context
// acts for the server itself. Only an operator links identities; a sign-in never does. The audit trails of all
// deployments of the user get an entry, or the trail of fallback when the user has no deployment.
//
// Errors: NOT_FOUND for the user; INVALID_ARGUMENT; FAILED_PRECONDITION for the local administrator, for a user who has
// another identity, and for an identity that another user has.
func Link(ctx context.Context, tx *ent.Tx, email, issuer, subject string, fallback int64) (*ent.User, error) {
	if subject == "" || len(subject) > maxSubject {
		return nil, apierr.InvalidArgument("subject", "subject must have 1 to %d characters, got %d", maxSubject, len(subject))
	}
	if err := serialize(ctx, tx, usersLock); err != nil {
		return nil, err
	}
	row, err := UserByEmail(ctx, tx, email)
	if err != nil {
		return nil, err
	}
	switch {
	case row.Email == AdminEmail:
		return nil, apierr.FailedPrecondition("%s can sign in without an issuer and cannot be linked: link another user", AdminEmail)
	case row.Subject != nil && *row.Issuer == issuer && *row.Subject == subject:
		return row, nil
	case row.Subject != nil:
		return nil, apierr.FailedPrecondition("user %s signs in with subject %s of %s: unlink that first (palisade user unlink)", row.Email, apierr.Quote(*row.Subject), *row.Issuer)
	}
	other, err := tx.User.Query().Where(user.Issuer(issuer), user.Subject(subject)).Only(ctx)
	if err == nil {
		return nil, apierr.FailedPrecondition("subject %s belongs to user %s: unlink that user first (palisade user unlink)", apierr.Quote(subject), other.Email)
	}
	if !ent.IsNotFound(err) {
		return nil, err
	}
	after, err := tx.User.UpdateOneID(row.ID).SetIssuer(issuer).SetSubject(subject).ClearClaimsAt().Save(ctx)
	if err != nil {
		return nil, err
	}
	return after, auditLink(ctx, tx, row, after, fallback)
}

// Unlink removes the identity of a user, who can then sign in through no issuer, and ends the user's sessions. From
// the next request on, the identity is unknown. Errors: NOT_FOUND for the user; FAILED_PRECONDITION for a user without
// an identity.
func Unlink(ctx context.Context, tx *ent.Tx, email string, fallback int64) (*ent.User, error) {
	if err := serialize(ctx, tx, usersLock); err != nil {
		return nil, err
	}
	row, err := UserByEmail(ctx, tx, email)
	if err != nil {
		return nil, err
	}
	if row.Subject == nil {
		return nil, apierr.FailedPrecondition("user %s has no identity of an issuer", row.Email)
	}
	if _, err := RevokeSessions(ctx, tx, row.ID); err != nil {
		return nil, err
	}
	after, err := tx.User.UpdateOneID(row.ID).ClearIssuer().ClearSubject().ClearClaimsAt().Save(ctx)
	if err != nil {
		return nil, err
	}
	return after, auditLink(ctx, tx, row, after, fallback)
}

// DeploymentsOf returns the deployments of the user with this e-mail address, ordered by id.
func DeploymentsOf(ctx context.Context, st *store.Store, email string) (ids []int64, err error) {
	ctx = tenant.System(ctx)
	id, err := st.Reader.User.Query().Where(user.Email(normalEmail(email))).OnlyID(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = st.Reader.Membership.Query().Where(membership.UserID(id)).Order(membership.ByDeploymentID()).
		Select(membership.FieldDeploymentID).Scan(ctx, &ids)
	return ids, err
}

// UserByEmail finds a user for commands of the server. The context acts for the server itself. Errors: NOT_FOUND.
func UserByEmail(ctx context.Context, tx *ent.Tx, email string) (*ent.User, error) {
	row, err := tx.User.Query().Where(user.Email(normalEmail(email))).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("user %s not found", apierr.Quote(email))
	}
	return row, err
}

func auditLink(ctx context.Context, tx *ent.Tx, before, after *ent.User, fallback int64) error {
	rows, err := tx.Membership.Query().Where(membership.UserID(before.ID)).Order(membership.ByDeploymentID()).All(ctx)
	if err != nil {
		return err
	}
	deployments := []int64{fallback}
	if len(rows) > 0 {
		deployments = deployments[:0]
	}
	for _, row := range rows {
		deployments = append(deployments, row.DeploymentID)
	}
	for _, id := range deployments {
		audit.Change(tenant.NewContext(ctx, id), auditMember, before.ID, identityOf(before), identityOf(after))
	}
	return nil
}

// identityOf is the user's issuer and subject, for the audit trail.
func identityOf(row *ent.User) *deploymentsv1.DeploymentUser {
	out := &deploymentsv1.DeploymentUser{Id: row.ID, Email: row.Email, Login: row.Email, Name: row.Name}
	if row.Subject != nil {
		out.Authentication = []string{*row.Issuer, *row.Subject}
	}
	return out
}
