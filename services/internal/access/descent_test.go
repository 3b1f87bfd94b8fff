package access

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// child creates a token with the token of this value.
func (s *server) child(t testing.TB, by, name string) (value string, err error) {
	t.Helper()
	caller, err := s.login(t, by)
	if err != nil {
		return "", err
	}
	spec := s.spec()
	spec.Name, spec.Scopes = name, Scopes
	err = s.st.Write(tenant.NewContext(t.Context(), spec.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		_, value, err = s.tokens.CreateAs(ctx, tx, caller, RoleAdmin, spec)
		return err
	})
	return value, err
}

func (s *server) mustChild(t testing.TB, by, name string) string {
	t.Helper()
	value, err := s.child(t, by, name)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func (s *server) byName(t testing.TB, name string) *ent.Token {
	t.Helper()
	return s.st.Reader.Token.Query().Where(token.Name(name)).OnlyX(tenant.System(t.Context()))
}

// TestDescendantsDieWithTheirParent: revoking a token revokes its descendants on every node, and nothing else.
func TestDescendantsDieWithTheirParent(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		other := newNode(t, st, s.issuer.key, s.clock)
		root := s.spec()
		root.Name = "root"
		rootRow, rootValue := s.createToken(t, root)
		son := s.mustChild(t, rootValue, "son")
		grandson := s.mustChild(t, son, "grandson")
		daughter := s.mustChild(t, rootValue, "daughter")
		unrelated := s.mustChild(t, s.first.TokenValue, "unrelated")
		if rootRow.ParentID != nil || *s.byName(t, "grandson").ParentID != s.byName(t, "son").ID {
			t.Fatal("the parents are wrong")
		}

		deployment := root.DeploymentID
		if err := s.tokens.Revoke(t.Context(), deployment, s.byName(t, "son").ID); err != nil {
			t.Fatal(err)
		}
		for value, alive := range map[string]bool{rootValue: true, daughter: true, unrelated: true, son: false, grandson: false} {
			for _, node := range []*server{s, other} {
				if _, err := node.login(t, value); (err == nil) != alive {
					t.Errorf("after the first revocation: %v, want alive: %t", err, alive)
				}
			}
		}
		ended := s.byName(t, "grandson").RevokedAt
		s.clock.advance(time.Second)
		if err := s.tokens.Revoke(t.Context(), deployment, rootRow.ID); err != nil {
			t.Fatal(err)
		}
		if now := s.byName(t, "grandson").RevokedAt; *now != *ended {
			t.Error("a token that was revoked already has another time")
		}
		for value, alive := range map[string]bool{rootValue: false, daughter: false, unrelated: true} {
			if _, err := other.login(t, value); (err == nil) != alive {
				t.Errorf("after the second: %v, want alive: %t", err, alive)
			}
		}
	})
}

// TestTokenDepthIsLimited: chains of tokens end, so that revoking the first takes few statements.
func TestTokenDepthIsLimited(t *testing.T) {
	t.Parallel()
	s := newServer(t, openSQLite(t))
	value := s.first.TokenValue
	for i := range maxTokenDepth - 1 {
		value = s.mustChild(t, value, fmt.Sprint("t", i))
	}
	_, err := s.child(t, value, "one too many")
	assertReason(t, err, errorsv1.Reason_REASON_FAILED_PRECONDITION)
	if err := s.tokens.Revoke(t.Context(), s.first.Deployment.ID, s.byName(t, "bootstrap").ID); err != nil {
		t.Fatal(err)
	}
	if n := s.st.Reader.Token.Query().Where(token.RevokedAtIsNil()).CountX(tenant.System(t.Context())); n != 0 {
		t.Errorf("%d tokens are left", n)
	}
}

// TestTokensAreMadeWhileTheyAreRevoked: when a token is revoked while it creates tokens, none of them stays valid.
func TestTokensAreMadeWhileTheyAreRevoked(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		for round := range 10 {
			spec := s.spec()
			spec.Name = fmt.Sprint("root ", round)
			row, root := s.createToken(t, spec)
			son := s.mustChild(t, root, fmt.Sprint("son ", round))
			var wait sync.WaitGroup
			for i, by := range slices.Repeat([]string{root, son}, 4) {
				wait.Go(func() { _, _ = s.child(t, by, fmt.Sprintf("child %d %d", round, i)) }) // refused, or revoked
			}
			wait.Go(func() {
				time.Sleep(time.Duration(round) * time.Millisecond)
				if err := s.tokens.Revoke(t.Context(), spec.DeploymentID, row.ID); err != nil {
					t.Error(err)
				}
			})
			wait.Wait()
			if left := st.Reader.Token.Query().Where(token.RevokedAtIsNil(), token.NameNEQ("bootstrap")).CountX(tenant.System(t.Context())); left != 0 {
				t.Fatalf("round %d: %d tokens are left", round, left)
			}
		}
	})
}
