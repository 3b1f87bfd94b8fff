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

// maxTokenDepth is the longest chain of tokens that create each other. It limits the number of statements of a
// revocation.
const maxTokenDepth = 8

// Revoke revokes a token and all its descendants. Every node refuses requests that start after Revoke returns. A
// revoked token keeps its time of revocation. Errors: NOT_FOUND for a token that the deployment does not have.
func (t *Tokens) Revoke(ctx context.Context, deploymentID, tokenID int64) error {
	return t.st.Write(tenant.NewContext(ctx, deploymentID), func(ctx context.Context, tx *ent.Tx) error {
		rows, err := t.Lock(ctx, tx, token.ID(tokenID))
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			_, err := t.revoke(ctx, tx, rows)
			return err
		}
		exists, err := tx.Token.Query().Where(token.ID(tokenID)).Exist(ctx)
		if err == nil && !exists {
			return apierr.NotFound("token %d not found", tokenID)
		}
		return err
	})
}

// RevokeWhere revokes tokens with their descendants in the transaction tx.
func (t *Tokens) RevokeWhere(ctx context.Context, tx *ent.Tx, which ...predicate.Token) error {
	rows, err := t.Lock(ctx, tx, which...)
	if err != nil {
		return err
	}
	_, err = t.revoke(ctx, tx, rows)
	return err
}

// revoke revokes tokens that Lock has returned, and records it in the audit trail.
func (t *Tokens) revoke(ctx context.Context, tx *ent.Tx, rows []*ent.Token) ([]*ent.Token, error) {
	ended, err := t.RevokeAll(ctx, tx, rows)
	for _, row := range ended {
		audit.Change(ctx, auditToken, row.ID, shownToken(row), nil)
	}
	return ended, err
}

// Lock reads tokens that are not revoked, ordered by id. Until the end of the transaction, no other transaction can
// revoke them or create tokens with them.
func (t *Tokens) Lock(ctx context.Context, tx *ent.Tx, which ...predicate.Token) ([]*ent.Token, error) {
	query := tx.Token.Query().Where(token.RevokedAtIsNil()).Where(which...).Order(token.ByID())
	if t.st.Postgres() {
		query.ForUpdate()
	}
	return query.All(ctx)
}

// RevokeAll revokes tokens that Lock has returned, and their descendants. It returns the tokens that it revoked, in
// their state before.
//
// Look-ups of tokens do not check parents, so every descendant must be marked here. RevokeAll proceeds generation by
// generation. A token that creates another one locks its own row (see withinToken): either RevokeAll finds
// the child, or the parent finds itself revoked.
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

// withinToken checks that a new token does not exceed its parent, and keeps the parent from being revoked until the
// transaction ends.
func (t *Tokens) withinToken(ctx context.Context, tx *ent.Tx, caller *Principal, spec TokenSpec) error {
	for _, scope := range spec.Scopes {
		if !reachesAll(caller) && !slices.Contains(caller.Scopes, scope) {
			return apierr.PermissionDenied("scopes must be scopes of the calling token, %s, got %s", joinWords(caller.Scopes), scope)
		}
	}
	own, err := t.Lock(ctx, tx, token.ID(caller.ID))
	switch {
	case err != nil:
		return err
	case len(own) == 0:
		return errBadCredential("the API token %d was revoked since the request began", caller.ID)
	}
	if end := own[0].ExpiresAt; end != nil && (spec.ExpiresAt.IsZero() || store.Micros(spec.ExpiresAt) > *end) {
		return apierr.PermissionDenied("expiresAt must not be after the expiry of the calling token, %s",
			store.Time(*end).Format(time.RFC3339))
	}
	for made, parent := 1, own[0].ParentID; ; made++ {
		switch {
		case made == maxTokenDepth:
			return apierr.FailedPrecondition("the calling token is the last in a chain of %d tokens that created each other, which is the limit: use a token nearer to the first", maxTokenDepth)
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
