package access

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// Decision is what happens to a token of a person who loses authority.
type Decision int

// The decisions. A token that is left is limited by what its creator may do.
const (
	Leave Decision = iota
	End
	Keep
)

// Decisions are about the tokens that a person created and that do not belong to the deployment.
type Decisions struct {
	Others Decision // about the tokens that neither list names
	End    []int64
	Keep   []int64
}

// of returns the decision about a token.
func (d Decisions) of(id int64) Decision {
	switch {
	case slices.Contains(d.End, id):
		return End
	case slices.Contains(d.Keep, id):
		return Keep
	default:
		return d.Others
	}
}

// Decided is a token and what happened to it: the state before its end, or else the new state.
type Decided struct {
	Token    *ent.Token
	Decision Decision
}

// ofPerson selects the tokens that a user created and that do not belong to the deployment; see belongsToDeployment.
func ofPerson(userID int64) predicate.Token {
	return token.And(token.UserID(userID), token.HandedOverAtIsNil(), token.ProjectIDIsNil())
}

// Decide ends and hands over tokens of a user, in the transaction tx, and returns all of them by id. by is the user who
// decides; 0 for the operator.
//
// Errors: NOT_FOUND for a token that is not one of the user's; INVALID_ARGUMENT for contradictions; PERMISSION_DENIED
// for a user who keeps their own tokens.
func (t *Tokens) Decide(ctx context.Context, tx *ent.Tx, by, userID int64, d Decisions) ([]Decided, error) {
	rows, err := t.Lock(ctx, tx, ofPerson(userID))
	if err != nil {
		return nil, err
	}
	if err := d.check(rows); err != nil {
		return nil, err
	}
	var ends, keeps []*ent.Token
	out := make([]Decided, len(rows))
	for i, row := range rows {
		out[i] = Decided{Token: row, Decision: d.of(row.ID)}
		switch out[i].Decision {
		case End:
			ends = append(ends, row)
		case Keep:
			keeps = append(keeps, row)
		}
	}
	ended, err := t.revoke(ctx, tx, ends)
	if err != nil {
		return nil, err
	}
	for i, one := range out {
		switch gone := slices.ContainsFunc(ended, func(row *ent.Token) bool { return row.ID == one.Token.ID }); {
		case gone && one.Decision == Keep:
			return nil, apierr.InvalidArgument("tokens.keep", "token %d was created with a token that ends: keep both, or neither", one.Token.ID)
		case gone:
			out[i].Decision = End // with the token that it was created with
		}
	}
	return out, t.handOver(ctx, tx, by, keeps)
}

// check finds decisions about tokens that are not among rows, and contradictory ones.
func (d Decisions) check(rows []*ent.Token) error {
	for _, id := range slices.Concat(d.End, d.Keep) {
		if !slices.ContainsFunc(rows, func(row *ent.Token) bool { return row.ID == id }) {
			return apierr.NotFound("token %d not found among the tokens of the user", id)
		}
		if slices.Contains(d.End, id) && slices.Contains(d.Keep, id) {
			return apierr.InvalidArgument("tokens.keep", "token %d cannot both end and be kept", id)
		}
	}
	return nil
}

// HandOver makes tokens belong to the context's deployment, in the transaction tx, and returns them in their new state.
// by is the user who decides; 0 for the operator. Errors: NOT_FOUND for a token that is missing or revoked;
// PERMISSION_DENIED for a token of that user.
func (t *Tokens) HandOver(ctx context.Context, tx *ent.Tx, by int64, ids []int64) ([]*ent.Token, error) {
	rows, err := t.Lock(ctx, tx, store.WithIDs[predicate.Token](ids))
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(rows, func(row *ent.Token) bool { return row.ID == id }) {
			return nil, apierr.NotFound("token %d not found", id)
		}
	}
	personal := slices.DeleteFunc(slices.Clone(rows), OfDeployment)
	return rows, t.handOver(ctx, tx, by, personal)
}

// handOver hands over tokens that Lock has returned. Their rows are brought up to date.
func (t *Tokens) handOver(ctx context.Context, tx *ent.Tx, by int64, rows []*ent.Token) error {
	if len(rows) == 0 {
		return nil
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		if ids[i] = row.ID; row.UserID == by {
			// Otherwise a token could be made to outlive the authority of the person who has its value.
			return apierr.PermissionDenied("token %d is the caller's own: another administrator hands it over, or the operator (palisade token hand-over)", row.ID)
		}
	}
	now := store.Micros(t.now())
	if err := tx.Token.Update().Where(store.WithIDs[predicate.Token](ids)).SetHandedOverAt(now).Exec(ctx); err != nil {
		return err
	}
	for _, row := range rows {
		before := shownToken(row)
		row.HandedOverAt = &now
		audit.Change(ctx, auditToken, row.ID, before, shownToken(row))
	}
	return nil
}
