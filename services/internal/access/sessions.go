package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	stdsql "database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/session"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// MaxSessions is how many sessions a user may have. The next sign-in ends the one that was not used for the longest
	// time, so lists of sessions are short.
	MaxSessions = 100
	// maxAgent is how many characters of a User-Agent are stored.
	maxAgent = 255
	// secretSize is the size of the secrets of sessions and console links in bytes.
	secretSize = 32
	// auditSession is the name of a session in the audit trail.
	auditSession = "session"
)

// The ways to sign in, as they are stored.
const (
	MethodOIDC = "oidc"
	MethodLink = "link"
)

// Sessions are the browsers in which users have signed in to the console. All nodes share them through the store, so a
// revocation holds from the next request on every node.
type Sessions struct {
	st       *store.Store
	idle     time.Duration
	lifetime time.Duration
	usage    *usage
	now      func() time.Time
}

// NewSessions returns the sessions of a store. A session ends after idle without a request, and at the age of lifetime.
// Close stops the background work.
func NewSessions(st *store.Store, idle, lifetime time.Duration, log *slog.Logger) *Sessions {
	s := &Sessions{st: st, idle: idle, lifetime: lifetime, now: time.Now}
	s.usage = newUsage(st, log, "sessions", recordSessionUses)
	s.usage.start()
	return s
}

// Close writes the pending last uses, within the deadline of ctx, and stops the background work.
func (s *Sessions) Close(ctx context.Context) error { return s.usage.close(ctx) }

// Browser describes where a sign-in comes from, for the list of sessions.
type Browser struct {
	// Address is the IP address, Agent the User-Agent header.
	Address, Agent string
}

// SignIn starts a session for a user. It returns the secret for the cookie, which is not stored.
func (s *Sessions) SignIn(ctx context.Context, who *Principal, method string, from Browser) (secret string, err error) {
	err = s.st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) (err error) {
		secret, err = s.start(ctx, tx, who.UserID, method, from)
		return err
	})
	return secret, err
}

func (s *Sessions) start(ctx context.Context, tx *ent.Tx, userID int64, method string, from Browser) (secret string, err error) {
	if err := s.makeRoom(ctx, tx, userID); err != nil {
		return "", err
	}
	secret, hash := newSecret()
	now := store.Micros(s.now())
	row, err := tx.Session.Create().SetHash(hash).SetUserID(userID).SetMethod(method).SetAddress(from.Address).
		SetAgent(shortAgent(from.Agent)).SetCreatedAt(now).SetLastUsedAt(now).Save(ctx)
	if err != nil {
		return "", fmt.Errorf("store the session: %w", err)
	}
	audit.Change(ctx, auditSession, row.ID, nil, shownSession(row))
	return secret, nil
}

// SignOut revokes the session of a principal.
func (s *Sessions) SignOut(ctx context.Context, who *Principal) error {
	return s.st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		_, err := s.Revoke(ctx, tx, who.UserID, session.ID(who.SessionID))
		return err
	})
}

// makeRoom revokes sessions of a user who has the most that are allowed.
func (s *Sessions) makeRoom(ctx context.Context, tx *ent.Tx, userID int64) error {
	ids, err := tx.Session.Query().Where(session.UserID(userID), s.alive()).
		Order(session.ByLastUsedAt(), session.ByID()).IDs(ctx)
	if err != nil || len(ids) < MaxSessions {
		return err
	}
	_, err = s.Revoke(ctx, tx, userID, store.OneOf(session.FieldID, ids[:len(ids)-MaxSessions+1]))
	return err
}

// alive selects the sessions that have not ended.
func (s *Sessions) alive() predicate.Session {
	now := s.now()
	return session.And(session.RevokedAtIsNil(), session.CreatedAtGT(store.Micros(now.Add(-s.lifetime))),
		session.LastUsedAtGT(store.Micros(now.Add(-s.idle))))
}

// List returns the sessions of a user that have not ended, newest first.
func (s *Sessions) List(ctx context.Context, userID int64) ([]*ent.Session, error) {
	return s.st.Reader.Session.Query().Where(session.UserID(userID), s.alive()).
		Order(ent.Desc(session.FieldID)).All(tenant.System(ctx))
}

// Revoke revokes the sessions of a user that the predicates select and that have not ended, in the transaction tx. It
// returns how many there were.
func (s *Sessions) Revoke(ctx context.Context, tx *ent.Tx, userID int64, which ...predicate.Session) (int, error) {
	return RevokeSessions(ctx, tx, userID, append(which, s.alive())...)
}

// RevokeSessions revokes the sessions of a user that the predicates select, in the transaction tx, whatever its context
// may access. The audit trail of that context gets each of them. It returns how many there were.
func RevokeSessions(ctx context.Context, tx *ent.Tx, userID int64, which ...predicate.Session) (int, error) {
	rows, err := tx.Session.Query().Where(session.UserID(userID), session.RevokedAtIsNil()).Where(which...).
		Order(session.ByID()).All(tenant.System(ctx))
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	err = tx.Session.Update().Where(store.OneOf(session.FieldID, ids)).SetRevokedAt(store.Now()).Exec(tenant.System(ctx))
	if err != nil {
		return 0, fmt.Errorf("revoke sessions: %w", err)
	}
	for _, row := range rows {
		audit.Change(ctx, auditSession, row.ID, shownSession(row), nil)
	}
	return len(rows), nil
}

// DeleteEnded deletes the sessions that have ended because of their age or because nobody used them. Revoked sessions
// stay until then. It returns how many were deleted.
func (s *Sessions) DeleteEnded(ctx context.Context) (deleted int, err error) {
	now := s.now()
	err = s.st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) (err error) {
		deleted, err = tx.Session.Delete().Where(session.Or(
			session.CreatedAtLTE(store.Micros(now.Add(-s.lifetime))), session.LastUsedAtLTE(store.Micros(now.Add(-s.idle))))).Exec(ctx)
		return err
	})
	return deleted, err
}

// Shown is a session as the API shows it. current is the id of the session that makes the call, or 0.
func (s *Sessions) Shown(row *ent.Session, current int64) *identityv1.Session {
	out := shownSession(row)
	out.Current = row.ID == current
	out.ExpiresAt = timestamppb.New(earlier(store.Time(row.CreatedAt).Add(s.lifetime), store.Time(row.LastUsedAt).Add(s.idle)))
	return out
}

func shownSession(row *ent.Session) *identityv1.Session {
	method := identityv1.SignInMethod_SIGN_IN_METHOD_OPENID_CONNECT
	if row.Method == MethodLink {
		method = identityv1.SignInMethod_SIGN_IN_METHOD_CONSOLE_LINK
	}
	return &identityv1.Session{
		Id: row.ID, Method: method, Address: row.Address, Agent: row.Agent,
		CreatedAt: timestamppb.New(store.Time(row.CreatedAt)), LastUsedAt: timestamppb.New(store.Time(row.LastUsedAt)),
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// sessionSQL is a constant for the same reason as tokenSQL.
const sessionSQL = "SELECT " + session.FieldID + ", " + session.FieldHash + ", " + session.FieldUserID + ", " + session.FieldCreatedAt +
	", " + session.FieldLastUsedAt + ", " + session.FieldRevokedAt + " FROM " + session.Table + " WHERE " + session.FieldHash + " = $1"

// find returns a session that has not ended, or nil.
func (s *Sessions) find(ctx context.Context, secret string) (*ent.Session, error) {
	if len(secret) != base64.RawURLEncoding.EncodedLen(secretSize) {
		return nil, nil
	}
	hash := hashSecret(secret)
	row, revokedAt := &ent.Session{}, stdsql.NullInt64{}
	err := s.st.ReadRow(ctx, sessionSQL, []any{hash}, &row.ID, &row.Hash, &row.UserID, &row.CreatedAt, &row.LastUsedAt, &revokedAt)
	switch {
	case errors.Is(err, stdsql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up the session: %w", err)
	}
	now := s.now()
	alive := subtle.ConstantTimeCompare(row.Hash, hash) == 1 && !revokedAt.Valid &&
		now.Before(store.Time(row.CreatedAt).Add(s.lifetime)) && now.Before(store.Time(row.LastUsedAt).Add(s.idle))
	if !alive {
		return nil, nil
	}
	return row, nil
}

// User returns the user of a session, as a principal of the scheme of JSON Web Tokens, and nil for a session that is
// unknown or has ended.
func (s *Sessions) User(ctx context.Context, secret string) (*Principal, error) {
	row, err := s.find(ctx, secret)
	if err != nil || row == nil {
		return nil, err
	}
	p, err := findUser(ctx, s.st, user.ID(row.UserID))
	if err != nil || p == nil {
		return nil, err
	}
	p.SessionID, p.sessionUsedAt = row.ID, row.LastUsedAt
	return p, nil
}

// used records a use of the session that authenticated p.
func (s *Sessions) used(p *Principal) {
	s.usage.record(p.SessionID, p.sessionUsedAt, store.Micros(s.now()))
}

// recordSessionUses writes the last use of sessions. The condition keeps a recent time that another node has written.
func recordSessionUses(ctx context.Context, tx *ent.Tx, batch []int64, now time.Time) error {
	return tx.Session.Update().
		Where(session.IDIn(batch...), session.LastUsedAtLTE(store.Micros(now.Add(-usageResolution)))).
		SetLastUsedAt(store.Micros(now)).Exec(ctx)
}

// newSecret returns a 256-bit random secret and its hash.
func newSecret() (secret string, hash []byte) {
	random := make([]byte, secretSize)
	_, _ = rand.Read(random) // it never fails: the program ends when the system has no randomness
	secret = base64.RawURLEncoding.EncodeToString(random)
	return secret, hashSecret(secret)
}

// hashSecret needs no salt and no slow function: nobody can guess 256 random bits.
func hashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// shortAgent keeps the first characters of a User-Agent that can be shown.
func shortAgent(agent string) string {
	var b strings.Builder
	n := 0
	for _, c := range strings.ToValidUTF8(agent, "") {
		if n == maxAgent {
			break
		}
		if unicode.IsPrint(c) {
			b.WriteRune(c)
			n++
		}
	}
	return b.String()
}
