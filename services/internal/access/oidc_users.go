package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/invitation"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// usersLock names the row that serializes the creation of users; see [serialize]. The first requests of a new user
	// arrive together, and each of the queries below must see the writes of the others.
	usersLock = "users_lock"
	// maxEmail is the longest e-mail address in bytes (RFC 5321).
	maxEmail = 254
	// auditMember is the name of a member in the audit trail, auditSignIn the name of the event.
	auditMember = "deployment_user"
	auditSignIn = "oidc/sign-in"
)

// user finds the user of a verified ID token by issuer and subject, or creates one. Nothing else identifies a user: an
// e-mail address, even a verified one, may belong to another person tomorrow.
func (p *OIDC) user(ctx context.Context, who *identity) (*Principal, error) {
	found, err := p.current(ctx, who)
	if err != nil {
		return nil, err
	}
	if len(found.Grants) == 0 && p.signIn.gap(who.claims) != gapNone {
		// The reason helps more than that the user belongs to no deployment.
		return nil, p.refusal(who)
	}
	return found, nil
}

// current is the user of a token, with the memberships that the token leads to.
func (p *OIDC) current(ctx context.Context, who *identity) (*Principal, error) {
	known := user.And(user.Issuer(p.issuer), user.Subject(who.Subject))
	found, err := findUser(ctx, p.st, known)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		err = p.provision(ctx, who, known)
	case found.claimsAt >= store.Micros(who.issuedAt), p.signIn.Admission != AdmitClaim && !who.differs(found):
		return found, nil
	default:
		err = p.refresh(ctx, found, who)
	}
	if err != nil {
		return nil, err
	}
	found, err = findUser(ctx, p.st, known)
	if err == nil && found == nil {
		err = fmt.Errorf("user of subject %q was deleted right after it was stored", who.Subject)
	}
	return found, err
}

// entry is a deployment that a new user joins.
type entry struct {
	deployment *ent.Deployment
	role       Role
	invited    bool
	claims     *Entitlement // the claims that grant it; nil without claims
}

// provision creates a user for an identity that may join, in the deployments that it may join.
func (p *OIDC) provision(ctx context.Context, who *identity, known predicate.User) error {
	// Refuse unknown users before they make others wait for the lock. A concurrent request may just have created this
	// user.
	if _, refused := p.entries(tenant.System(ctx), p.st.Reader, who); refused != nil {
		exists, err := p.st.Reader.User.Query().Where(known).Exist(tenant.System(ctx))
		if err != nil || exists {
			return err
		}
		if g := p.signIn.gap(who.claims); g != gapNone && p.warned.first(who) {
			p.warnOfGap(ctx, g, who, "the user does not become a member")
		}
		return refused
	}
	return p.st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		if err := serialize(ctx, tx, usersLock); err != nil {
			return err
		}
		exists, err := tx.User.Query().Where(known).Exist(ctx)
		if err != nil || exists {
			return err
		}
		entries, err := p.entries(ctx, tx.Client(), who)
		if err != nil {
			return err
		}
		freed, _, err := p.free(ctx, tx, p.email(who)) // entries has refused an address that a user keeps
		if err != nil {
			return err
		}
		row, err := p.create(ctx, tx, who)
		if err != nil {
			return err
		}
		if err := p.recordRenamed(ctx, tx, row, freed); err != nil {
			return err
		}
		for _, e := range entries {
			if err := p.enter(ctx, tx, row, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// entries are the deployments that an unknown identity may join, at least one. Errors: PERMISSION_DENIED with the
// reason when there is none.
func (p *OIDC) entries(ctx context.Context, db *ent.Client, who *identity) ([]entry, error) {
	email, verified := who.verifiedEmail()
	if verified {
		holder, passes, err := p.holder(ctx, db, email)
		if err != nil {
			return nil, err
		}
		if holder != nil && !passes {
			return nil, errTaken(holder, who.Subject)
		}
	}
	var entries []entry
	if verified {
		inviting, err := db.Invitation.Query().Where(invitation.Email(email), invitation.AcceptedAtIsNil()).Select(invitation.FieldDeploymentID).All(ctx)
		if err != nil {
			return nil, err
		}
		for _, row := range inviting {
			d, err := db.Deployment.Query().Where(deployment.ID(row.DeploymentID)).Only(ctx)
			if err != nil {
				return nil, err
			}
			entries = append(entries, entry{deployment: d, role: Role(d.DefaultRole), invited: true})
		}
	}
	first, err := db.Deployment.Query().Order(deployment.ByID()).First(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return nil, err
	}
	if err == nil {
		entries = p.admit(entries, first, who)
	}
	if len(entries) == 0 {
		return nil, p.refusal(who)
	}
	return entries, nil
}

// admit adds the first deployment, if the identity may join it without an invitation (contract facts, 3.15). The role
// in a claim overrides the role in an invitation.
func (p *OIDC) admit(entries []entry, first *ent.Deployment, who *identity) []entry {
	e := entry{deployment: first, role: Role(first.DefaultRole)}
	switch p.signIn.Admission {
	case AdmitAny:
	case AdmitDomain:
		email, verified := who.verifiedEmail()
		if !verified || !slices.Contains(p.signIn.Domains, email[strings.LastIndexByte(email, '@')+1:]) {
			return entries
		}
	case AdmitClaim:
		given, ok := p.signIn.entitlement(who.claims)
		if !ok {
			return entries
		}
		e.role, e.claims = given.Role, &given
	default:
		return entries
	}
	at := slices.IndexFunc(entries, func(other entry) bool { return other.deployment.ID == first.ID })
	if at < 0 {
		return append(entries, e)
	}
	e.invited, entries[at] = true, e
	return entries
}

func (p *OIDC) refusal(who *identity) error {
	email, verified := who.verifiedEmail()
	if !verified {
		email = "the e-mail address of this account, which the identity provider must first have verified (email_verified)"
	}
	invite := "ask an administrator to invite " + email
	missing := p.signIn.gap(who.claims)
	switch {
	case p.signIn.Admission == AdmitDomain:
		return apierr.PermissionDenied("this account is not a member, and has no verified e-mail address of a domain that may "+
			"join: %s", invite)
	case missing != gapNone:
		cause, cure := missing.explain(p.signIn.Claim)
		return apierr.PermissionDenied("this account is not a member, and %s: %s; or %s", cause, cure, invite)
	case p.signIn.Admission == AdmitClaim:
		return apierr.PermissionDenied("this account is not a member, and its token has no value in the claim %s that lets "+
			"it join: ask an administrator of the identity provider, or %s", p.signIn.Claim, invite)
	default:
		return apierr.PermissionDenied("this account is not a member: %s", invite)
	}
}

// maxWarned bounds the users whose tokens are remembered.
const maxWarned = 1000

// warnedTokens has the tokens of unknown users that the log has a line about. Each request with such a token is
// refused, and a client may send many.
type warnedTokens struct {
	mu sync.Mutex
	of map[string]time.Time // by subject: when the token was issued
}

// first reports whether a token is not remembered, and remembers it.
func (w *warnedTokens) first(who *identity) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, known := w.of[who.Subject]; known && at.Equal(who.issuedAt) {
		return false
	}
	if w.of == nil || len(w.of) >= maxWarned {
		w.of = map[string]time.Time{}
	}
	w.of[who.Subject] = who.issuedAt
	return true
}

func (p *OIDC) create(ctx context.Context, tx *ent.Tx, who *identity) (*ent.User, error) {
	email := p.email(who)
	name := who.Name
	if name == "" {
		name = email
	}
	return tx.User.Create().SetEmail(email).SetName(name).SetIssuer(p.issuer).SetSubject(who.Subject).
		SetClaimsAt(store.Micros(who.issuedAt)).SetCreatedAt(store.Micros(p.now())).Save(ctx)
}

// enter makes a new user a member.
func (p *OIDC) enter(ctx context.Context, tx *ent.Tx, row *ent.User, e entry) error {
	ctx = p.recorded(tenant.NewContext(ctx, e.deployment.ID), row.ID, row.Email)
	if e.invited {
		if _, err := TakeInvitation(ctx, tx, e.deployment.ID, row.Email); err != nil {
			return err
		}
	}
	if err := Join(ctx, tx, e.deployment.ID, row.ID, e.role, e.claims != nil); err != nil {
		return err
	}
	if e.claims != nil {
		if err := p.syncTeams(ctx, tx, row.ID, *e.claims); err != nil {
			return err
		}
	}
	audit.Change(ctx, auditMember, row.ID, nil, p.shown(row.ID, row.Email, e.role))
	return nil
}

// recorded makes the user the actor of the changes of a sign-in. Authentication runs before the interceptor that
// records the actor.
func (p *OIDC) recorded(ctx context.Context, userID int64, email string) context.Context {
	if p.trail == nil {
		return ctx
	}
	ctx, _ = p.trail.Record(ctx, audit.Call{
		Actor: audit.Actor{Kind: string(KindUser), ID: userID, Name: email, UserID: userID}, Method: auditSignIn,
	})
	return ctx
}

// shown is a member in the audit trail.
func (p *OIDC) shown(userID int64, email string, role Role) *deploymentsv1.DeploymentUser {
	return &deploymentsv1.DeploymentUser{
		Id: userID, OrgRole: deploymentsv1.OrgRole(deploymentsv1.OrgRole_value[string(role)]), Email: email,
		Login: email, Authentication: []string{p.issuer}, LastUpdatedAt: timestamppb.New(p.now()), Active: true,
	}
}

// verifiedEmail is the address of an identity, if the issuer has verified it. The address of the local administrator is
// never accepted.
func (who *identity) verifiedEmail() (email string, ok bool) {
	email = normalEmail(who.Email)
	if !bool(who.EmailVerified) || len(email) > maxEmail || !visibleASCII(email) || !isAddress(email) || email == AdminEmail {
		return "", false
	}
	return email, true
}

// isAddress accepts one address without quotes, comments and display name. In other forms, what follows the last @ need
// not be the domain that receives the e-mail.
func isAddress(email string) bool {
	parsed, err := mail.ParseAddress(email)
	return err == nil && parsed.Address == email && strings.Count(email, "@") == 1
}

// email is the address that is stored for an identity. An unverified address could belong to someone else, so a
// reserved name (RFC 2606) replaces it.
func (p *OIDC) email(who *identity) string {
	if email, ok := who.verifiedEmail(); ok {
		return email
	}
	sum := sha256.Sum256([]byte(p.issuer + "\x00" + who.Subject))
	return hex.EncodeToString(sum[:12]) + "@unverified.invalid"
}
