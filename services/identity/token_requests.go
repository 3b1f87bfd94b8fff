package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/ent/tokenrequest"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// pickUpTime is how long a confirmed token waits for its scanner.
const pickUpTime = 10 * time.Minute

// TokenRequests is the service group "token requests".
type TokenRequests struct {
	identityv1.UnimplementedTokenRequestsServiceServer
	store   *store.Store
	tokens  *access.Tokens
	keyring *secret.Keyring
}

// NewTokenRequests issues tokens to scanners after a person's login.
func NewTokenRequests(st *store.Store, tokens *access.Tokens, keyring *secret.Keyring) *TokenRequests {
	return &TokenRequests{store: st, tokens: tokens, keyring: keyring}
}

// PickUpToken returns the token of a confirmed key. The request is unauthenticated: the key identifies the caller.
func (s *TokenRequests) PickUpToken(ctx context.Context, r *identityv1.PickUpTokenRequest) (*identityv1.PickUpTokenResponse, error) {
	ctx, hash := tenant.System(ctx), hashKey(r.GetTokenRequestKey())
	waiting, err := s.store.Reader.TokenRequest.Query().Where(tokenrequest.KeyHash(hash)).Exist(ctx)
	if err == nil && !waiting { // scanners poll often before there is something to write
		err = errNotYet()
	}
	if err != nil {
		return nil, err
	}
	response := &identityv1.PickUpTokenResponse{}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.TokenRequest.Query().Where(tokenrequest.KeyHash(hash), tokenrequest.ExpiresAtGT(store.Now())).Only(ctx)
		if ent.IsNotFound(err) || err == nil && subtle.ConstantTimeCompare(row.KeyHash, hash) != 1 {
			return errNotYet()
		}
		if err != nil {
			return err
		}
		// Of concurrent requests only one deletes the row.
		deleted, err := tx.TokenRequest.Delete().Where(tokenrequest.ID(row.ID)).Exec(ctx)
		if err != nil {
			return err
		}
		alive, err := tx.Token.Query().Where(token.ID(row.TokenID), token.RevokedAtIsNil()).Exist(ctx)
		if err == nil && (deleted == 0 || !alive) {
			err = errNotYet()
		}
		if err != nil {
			return err
		}
		value, err := s.keyring.Unseal(row.Sealed, sealedFor(row.KeyHash))
		if err != nil {
			return fmt.Errorf("token request %d: %w", row.ID, err)
		}
		response.Token = string(value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// ConfirmTokenRequest creates a token for the scanner with the key. The access rule allows only users: otherwise a
// token could create copies that outlive it.
func (s *TokenRequests) ConfirmTokenRequest(ctx context.Context, r *identityv1.ConfirmTokenRequestRequest) (*identityv1.ConfirmTokenRequestResponse, error) {
	caller, _ := access.FromContext(ctx)
	grant, _ := access.GrantFromContext(ctx)
	now, hash := time.Now(), hashKey(r.GetTokenRequestKey())
	spec := access.TokenSpec{
		DeploymentID: grant.DeploymentID, Name: "scanner login " + now.UTC().Format(time.DateOnly),
		Scopes: []access.Scope{access.ScopeAgent},
		Role:   access.RoleMember, // the lowest role that may send results; each user who may confirm has it
	}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, value, err := s.tokens.CreateAs(ctx, tx, caller, grant.Role, spec)
		if err != nil {
			return err
		}
		sealed, err := s.keyring.Seal([]byte(value), sealedFor(hash))
		if err != nil {
			return err
		}
		err = tx.TokenRequest.Create().SetDeploymentID(grant.DeploymentID).SetKeyHash(hash).SetTokenID(row.ID).SetSealed(sealed).
			SetCreatedAt(store.Micros(now)).SetExpiresAt(store.Micros(now.Add(pickUpTime))).Exec(ctx)
		if ent.IsConstraintError(err) {
			return apierr.AlreadyExists("this login was confirmed already: let the scanner pick its token up, or start the login again")
		}
		if err != nil {
			return err
		}
		audit.Change(ctx, auditToken, row.ID, nil, convertToken(row))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &identityv1.ConfirmTokenRequestResponse{
		DeploymentName: grant.Name, TokenName: spec.Name, ExpiresIn: int32(pickUpTime / time.Second),
	}, nil
}

// hashKey is the stored form of a key. Rows are found by the hash, so that lookup times do not leak keys.
func hashKey(key string) []byte {
	sum := sha256.Sum256([]byte(strings.ToLower(key)))
	return sum[:]
}

// sealedFor is the associated data that binds a sealed token to its key.
func sealedFor(keyHash []byte) []byte { return append([]byte("token_requests/"), keyHash...) }

func errNotYet() error {
	return apierr.NotFound("there is no token for this key: confirm the login in the browser first; each token is handed over once")
}
