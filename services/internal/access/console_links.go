package access

import (
	"context"
	"fmt"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/consolelink"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/internal/store"
)

// ConsoleLinkTTL is how long a one-time link to the console may be used.
const ConsoleLinkTTL = 15 * time.Minute

// NewConsoleLink creates a one-time link for the user with this e-mail address, in the transaction tx, whose context
// acts for the server itself. It returns the secret of the link, which is not stored. Errors: NOT_FOUND for the user.
func NewConsoleLink(ctx context.Context, tx *ent.Tx, email string) (secret string, err error) {
	row, err := UserByEmail(ctx, tx, email)
	if err != nil {
		return "", err
	}
	secret, hash := newSecret()
	now := time.Now()
	err = tx.ConsoleLink.Create().SetHash(hash).SetUserID(row.ID).SetCreatedAt(store.Micros(now)).
		SetExpiresAt(store.Micros(now.Add(ConsoleLinkTTL))).Exec(ctx)
	if err != nil {
		return "", fmt.Errorf("store the console link: %w", err)
	}
	return secret, nil
}

// LinkUser returns the user of a link, and nil for one that is unknown, used or expired.
func (s *Sessions) LinkUser(ctx context.Context, link string) (*Principal, error) {
	row, err := s.st.Reader.ConsoleLink.Query().Where(liveLink(link)).Only(tenant.System(ctx))
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return findUser(ctx, s.st, user.ID(row.UserID))
}

// SignInByLink uses a link of a user up and starts a session. It returns "" if the link was used or has expired since
// LinkUser: of two concurrent uses, one succeeds.
func (s *Sessions) SignInByLink(ctx context.Context, who *Principal, link string, from Browser) (secret string, err error) {
	err = s.st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) (err error) {
		used, err := tx.ConsoleLink.Delete().Where(liveLink(link), consolelink.UserID(who.UserID)).Exec(ctx)
		if err != nil || used == 0 {
			return err
		}
		secret, err = s.start(ctx, tx, who.UserID, MethodLink, from)
		return err
	})
	return secret, err
}

func liveLink(link string) predicate.ConsoleLink {
	return consolelink.And(consolelink.Hash(hashSecret(link)), consolelink.ExpiresAtGT(store.Now()))
}

// DeleteExpiredConsoleLinks deletes the links that nobody used in time. It returns how many there were.
func DeleteExpiredConsoleLinks(ctx context.Context, st *store.Store) (deleted int, err error) {
	err = st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) (err error) {
		deleted, err = tx.ConsoleLink.Delete().Where(consolelink.ExpiresAtLTE(store.Now())).Exec(ctx)
		return err
	})
	return deleted, err
}
