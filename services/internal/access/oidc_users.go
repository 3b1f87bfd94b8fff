package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// usersLock names the row that serializes the taking in of users; see [serialize]. The first requests of a new user come
// together, and each of the queries below must see what the others did.
const usersLock = "users_lock"

// user finds the user of a verified ID token, or takes him in at his first visit.
func (p *OIDC) user(ctx context.Context, who *identity) (*Principal, error) {
	known := user.And(user.Issuer(p.issuer), user.Subject(who.Subject))
	found, err := findUser(ctx, p.st, known)
	if err != nil || found != nil {
		return found, err
	}
	if err := p.takeIn(ctx, who, known); err != nil {
		return nil, err
	}
	found, err = findUser(ctx, p.st, known)
	if err == nil && found == nil {
		err = fmt.Errorf("user of subject %q is gone right after it was stored", who.Subject)
	}
	return found, err
}

// takeIn links the identity to the user of its verified e-mail address, or makes a user who joins the server's first
// deployment with that deployment's default role (contract facts, 3.15).
func (p *OIDC) takeIn(ctx context.Context, who *identity, known predicate.User) error {
	return p.st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		if err := serialize(ctx, tx, usersLock); err != nil {
			return err
		}
		exists, err := tx.User.Query().Where(known).Exist(ctx)
		if err != nil || exists {
			return err
		}
		email := p.email(who)
		row, err := tx.User.Query().Where(user.Email(email)).Only(ctx)
		switch {
		case ent.IsNotFound(err):
			return p.create(ctx, tx, who, email)
		case err != nil:
			return err
		}
		// The condition decides, not the row read above: of two identities with one address, the first is linked.
		linked, err := tx.User.Update().Where(user.ID(row.ID), user.SubjectIsNil()).
			SetIssuer(p.issuer).SetSubject(who.Subject).Save(ctx)
		if err == nil && linked == 0 {
			// An address that was given to a new person must not open the old one's account.
			return apierr.PermissionDenied("the e-mail address of this identity belongs to a user with another identity: ask an administrator")
		}
		return err
	})
}

func (p *OIDC) create(ctx context.Context, tx *ent.Tx, who *identity, email string) error {
	now := store.Micros(p.now())
	name := who.Name
	if name == "" {
		name = email
	}
	row, err := tx.User.Create().SetEmail(email).SetName(name).
		SetIssuer(p.issuer).SetSubject(who.Subject).SetCreatedAt(now).Save(ctx)
	if err != nil {
		return err
	}
	first, err := tx.Deployment.Query().Order(deployment.ByID()).First(ctx)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return tx.Membership.Create().SetDeploymentID(first.ID).SetUserID(row.ID).
		SetRole(first.DefaultRole).SetCreatedAt(now).Exec(ctx)
}

// email is the address by which an identity is known. One that the issuer has not verified proves nothing and could be
// somebody else's, so a name that nobody can have (RFC 2606) takes its place.
func (p *OIDC) email(who *identity) string {
	if email := normalEmail(who.Email); bool(who.EmailVerified) && strings.Contains(email, "@") {
		return email
	}
	sum := sha256.Sum256([]byte(p.issuer + "\x00" + who.Subject))
	return hex.EncodeToString(sum[:12]) + "@unverified.invalid"
}
