package access

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// renamed is a user before and after a change of address and name; nil for none.
type renamed struct{ before, after *ent.User }

// differs reports whether a token has another verified address or name than the stored user.
func (who *identity) differs(from *Principal) bool {
	email, verified := who.verifiedEmail()
	return verified && (email != from.Name || who.Name != "" && who.Name != from.fullName)
}

// isNewest reports whether no newer token of a user was seen, and remembers this one. An older token, which may be
// valid for some hours yet, changes nothing: it could restore what the issuer has changed. The second of two concurrent
// tokens waits here for the first.
func isNewest(ctx context.Context, tx *ent.Tx, userID int64, who *identity) (bool, error) {
	issued := store.Micros(who.issuedAt)
	n, err := tx.User.Update().Where(user.ID(userID), user.Or(user.ClaimsAtIsNil(), user.ClaimsAtLT(issued))).SetClaimsAt(issued).Save(ctx)
	return n > 0, err
}

// rename stores the address and name of a newer token, unless its address is not verified. An address that another user
// keeps is left out. The transaction holds usersLock if the token differs.
func (p *OIDC) rename(ctx context.Context, tx *ent.Tx, found *Principal, who *identity) (kept string, err error) {
	if !who.differs(found) {
		return "", nil
	}
	before, err := tx.User.Get(ctx, found.ID)
	if err != nil {
		return "", err
	}
	email, _ := who.verifiedEmail()
	var freed *renamed
	if email != before.Email {
		var free bool
		if freed, free, err = p.free(ctx, tx, email); err != nil {
			return "", err
		}
		if !free {
			kept, email = email, before.Email
		}
	}
	after, err := tx.User.UpdateOneID(before.ID).SetEmail(email).SetName(nameOf(who, before, email)).Save(ctx)
	if err != nil {
		return "", err
	}
	return kept, p.recordRenamed(ctx, tx, after, freed, &renamed{before, after})
}

// nameOf is the name of a token; the stored one if it has none. Users without a name are shown by their address.
func nameOf(who *identity, before *ent.User, email string) string {
	switch {
	case who.Name != "":
		return who.Name
	case before.Name == before.Email:
		return email
	}
	return before.Name
}

// free takes an address from a user of the issuer who is no member any more, so that it can pass to another subject. ok
// is false if a user keeps the address. The context acts for the server itself, and holds usersLock.
func (p *OIDC) free(ctx context.Context, tx *ent.Tx, email string) (freed *renamed, ok bool, err error) {
	holder, passes, err := p.holder(ctx, tx.Client(), email)
	if err != nil || holder == nil || !passes {
		return nil, holder == nil, err
	}
	placeholder := p.email(&identity{Subject: *holder.Subject})
	after, err := tx.User.UpdateOneID(holder.ID).SetEmail(placeholder).SetName(nameOf(&identity{}, holder, placeholder)).Save(ctx)
	return &renamed{holder, after}, true, err
}

// holder is the user with an address, or nil, and whether the address passes to another subject.
func (p *OIDC) holder(ctx context.Context, db *ent.Client, email string) (row *ent.User, passes bool, err error) {
	row, err = db.User.Query().Where(user.Email(email)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil || row.Subject == nil || *row.Issuer != p.issuer {
		return row, false, err
	}
	member, err := db.Membership.Query().Where(membership.UserID(row.ID)).Exist(ctx)
	return row, !member, err
}

// errTaken refuses a new identity whose address another user has. An address that was reassigned to a new person must
// not open the account of its former owner.
func errTaken(holder *ent.User, subject string) error {
	if holder.Subject == nil {
		return apierr.PermissionDenied("the e-mail address %s belongs to a user without an identity: if it is yours, an administrator of the "+
			"server links the two with palisade user link --email ADDRESS --subject SUBJECT; the subject is %s", holder.Email, apierr.Quote(subject))
	}
	return apierr.PermissionDenied("the e-mail address %s belongs to another member, who signs in with another identity: if the address has passed "+
		"from them to you, an administrator removes that member first, and you sign in again; your subject is %s", holder.Email, apierr.Quote(subject))
}

// recordRenamed writes changes of users to the audit trails of their deployments; of a user without one, to the first.
func (p *OIDC) recordRenamed(ctx context.Context, tx *ent.Tx, actor *ent.User, changes ...*renamed) error {
	first, err := tx.Deployment.Query().Order(deployment.ByID()).FirstID(ctx)
	if err != nil {
		if ent.IsNotFound(err) {
			return nil // there is no trail
		}
		return err
	}
	ctx = p.recorded(ctx, actor.ID, actor.Email)
	for _, c := range changes {
		if c == nil || c.before.Email == c.after.Email && c.before.Name == c.after.Name {
			continue
		}
		if err := auditLink(ctx, tx, c.before, c.after, first); err != nil {
			return err
		}
	}
	return nil
}
