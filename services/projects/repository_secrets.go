package projects

import (
	"context"
	"slices"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/token"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/ciworkflow"
	"github.com/palisade/palisade/services/scm/host"
)

const (
	// handOver is how long a token lives until it is known to be at its host: longer than the requests of a call. A call
	// that ends early leaves no token behind.
	handOver = 5 * time.Minute
	// endTimeout applies to the transaction that ends a call whose caller may have gone.
	endTimeout = 10 * time.Second
	// maxTokenName is the maximum length of a token's name, in runes.
	maxTokenName = 255
)

// BulkAddRepoSecret gives each repository a secret with a token of its own.
//
// The tokens are committed before the host gets them, and expire soon. Afterwards one transaction makes the tokens that
// arrived permanent and revokes their predecessors. An expiring token shows that another call is at work on the
// repository: of two concurrent calls, one would revoke the token that the other has just stored at the host.
func (s *Changes) BulkAddRepoSecret(ctx context.Context, r *projectsv1.BulkAddRepoSecretRequest) (*projectsv1.BulkAddRepoSecretResponse, error) {
	rows, missing, err := choose(ctx, s.store.Reader, r.GetFilters(), r.GetExcludeIds(), maxAtHost)
	if err != nil {
		return nil, err
	}
	failed := failures{}
	list, err := s.openHosts(ctx, rows, failed)
	if err != nil {
		return nil, err
	}
	minted, err := s.mintAll(ctx, list, failed)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(at atHost) bool { return minted[at.ID].row == nil })
	results, err := eachAtHost(ctx, list, func(ctx context.Context, at atHost) error {
		return at.SetActionsSecret(ctx, at.name, ciworkflow.Secret, minted[at.ID].value)
	})
	response := &projectsv1.BulkAddRepoSecretResponse{RepoTokenIds: map[int64]int64{}}
	for id, err := range results {
		if err == nil {
			response.RepoTokenIds[id] = minted[id].row.ID
		} else {
			failed.add(id, err)
		}
	}
	if ended := s.endHandOver(ctx, minted, results); ended != nil || err != nil {
		return nil, errorOf(err, ended)
	}
	response.Errors = slices.Concat(missing, failed.list())
	return response, nil
}

func errorOf(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// mintedToken is a new token with its value, which is not stored.
type mintedToken struct {
	row   *ent.Token
	value string
}

// mintAll creates a token for each repository that no other call is giving one.
func (s *Changes) mintAll(ctx context.Context, list []atHost, failed failures) (map[int64]mintedToken, error) {
	caller, _ := access.FromContext(ctx)
	ids := make([]int64, len(list))
	for i, at := range list {
		ids[i] = at.ID
	}
	var minted map[int64]mintedToken
	var busy []int64
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		minted, busy = make(map[int64]mintedToken, len(list)), nil
		rows, err := s.lockAll(ctx, tx, store.WithIDs[predicate.Project](ids))
		if err != nil {
			return err
		}
		handed, err := tx.Token.Query().Where(token.RevokedAtIsNil(), token.ExpiresAtGT(store.Now()), store.OneOf(token.FieldProjectID, ids)).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if slices.ContainsFunc(handed, func(t *ent.Token) bool { return t.ProjectID != nil && *t.ProjectID == row.ID }) {
				busy = append(busy, row.ID)
				continue
			}
			var one mintedToken
			one.row, one.value, err = s.tokens.CreateForCI(ctx, tx, caller.UserID, row.ID, clip("CI of "+row.Name), time.Now().Add(handOver))
			if err != nil {
				return err
			}
			minted[row.ID] = one
		}
		return nil
	})
	for _, id := range busy {
		failed.add(id, &host.Error{Kind: host.RateLimited, Text: "another call is adding the secret: try again in five minutes"})
	}
	return minted, err
}

func clip(name string) string {
	if runes := []rune(name); len(runes) > maxTokenName {
		return string(runes[:maxTokenName])
	}
	return name
}

// endHandOver keeps the tokens that are at their host, and revokes those before them. Tokens that certainly did not
// arrive are revoked; the others expire.
func (s *Changes) endHandOver(ctx context.Context, minted map[int64]mintedToken, results map[int64]error) error {
	var repositories, arrived, refused []int64
	for id, one := range minted {
		switch err, called := results[id]; {
		case !called:
		case err == nil:
			repositories, arrived = append(repositories, id), append(arrived, one.row.ID)
		case !host.Is(err, host.TimedOut) && !host.Is(err, host.Unreachable) && !host.Is(err, host.Failed):
			refused = append(refused, one.row.ID)
		}
	}
	if len(minted) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := s.tokens.MakePermanent(ctx, tx, arrived); err != nil {
			return err
		}
		if err := s.tokens.RevokeWhere(ctx, tx, store.OneOf(token.FieldProjectID, repositories), store.NoneOf(token.FieldID, arrived)); err != nil {
			return err
		}
		return s.tokens.RevokeWhere(ctx, tx, store.WithIDs[predicate.Token](refused))
	})
}
