package access

import (
	"context"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// maxDescent is how many tokens may be made one by the other, so that revoking the first takes few statements.
const maxDescent = 8

// Revoke ends a token and all that were made by it: requests that start after it returns are refused by every node. A
// token that is revoked already keeps its time. Errors: NOT_FOUND for a token that the deployment does not have.
func (t *Tokens) Revoke(ctx context.Context, deploymentID, tokenID int64) error {
	return t.st.Write(tenant.NewContext(ctx, deploymentID), func(ctx context.Context, tx *ent.Tx) error {
		rows, err := t.Lock(ctx, tx, token.ID(tokenID))
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			ended, err := t.RevokeAll(ctx, tx, rows)
			for _, row := range ended {
				audit.Change(ctx, auditToken, row.ID, shownToken(row), nil)
			}
			return err
		}
		exists, err := tx.Token.Query().Where(token.ID(tokenID)).Exist(ctx)
		if err == nil && !exists {
			return apierr.NotFound("token %d not found", tokenID)
		}
		return err
	})
}

// Lock reads tokens that are not revoked, in the order of their ids, and keeps other transactions from revoking them
// and from making tokens by them until this one ends.
func (t *Tokens) Lock(ctx context.Context, tx *ent.Tx, which ...predicate.Token) ([]*ent.Token, error) {
	query := tx.Token.Query().Where(token.RevokedAtIsNil()).Where(which...).Order(token.ByID())
	if t.st.Postgres() {
		query.ForUpdate()
	}
	return query.All(ctx)
}

// RevokeAll ends tokens that Lock has returned, and all their descendants, and returns those that it ended, as they
// were. Look-ups of tokens know nothing about parents: what has to end is marked here. It goes generation by
// generation, since a token that makes another one holds its own row meanwhile (see withinToken): either the child is
// seen here, or its maker sees that it was revoked.
func (t *Tokens) RevokeAll(ctx context.Context, tx *ent.Tx, rows []*ent.Token) (ended []*ent.Token, err error) {
	now := store.Micros(t.now())
	for len(rows) > 0 {
		ids := make([]int64, len(rows))
		for i, row := range rows {
			ids[i] = row.ID
		}
		if err := tx.Token.Update().Where(store.WithIDs[predicate.Token](ids)).SetRevokedAt(now).Exec(ctx); err != nil {
			return nil, err
		}
		ended = append(ended, rows...)
		rows, err = t.Lock(ctx, tx, func(s *sql.Selector) { s.Where(store.InIDs(s.C(token.FieldParentID), ids)) })
		if err != nil {
			return nil, err
		}
	}
	return ended, nil
}

// withinToken compares a new token with the one that makes it, and keeps that one from being revoked meanwhile.
func (t *Tokens) withinToken(ctx context.Context, tx *ent.Tx, caller *Principal, spec TokenSpec) error {
	for _, scope := range spec.Scopes {
		if !reachesAll(caller) && !slices.Contains(caller.Scopes, scope) {
			return apierr.PermissionDenied("scopes must be among those of the token that makes the call, %s, got %s", joinWords(caller.Scopes), scope)
		}
	}
	own, err := t.Lock(ctx, tx, token.ID(caller.ID))
	switch {
	case err != nil:
		return err
	case len(own) == 0:
		return errBadCredential() // revoked since the call began
	}
	if end := own[0].ExpiresAt; end != nil && (spec.ExpiresAt.IsZero() || store.Micros(spec.ExpiresAt) > *end) {
		return apierr.PermissionDenied("expiresAt must not be after the end of the token that makes the call, %s",
			store.Time(*end).Format(time.RFC3339))
	}
	for made, parent := 1, own[0].ParentID; ; made++ {
		switch {
		case made == maxDescent:
			return apierr.FailedPrecondition("the token that makes the call is the last of %d that were made one by the other: use one that is nearer to the first", maxDescent)
		case parent == nil:
			return nil
		}
		row, err := tx.Token.Query().Where(token.ID(*parent)).Only(ctx)
		if err != nil {
			return err
		}
		parent = row.ParentID
	}
}
