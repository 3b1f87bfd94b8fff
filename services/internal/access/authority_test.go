package access

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// person creates a user, who is a member of the deployment if role is not empty.
func (s *server) person(t testing.TB, email string, role Role) (id int64) {
	t.Helper()
	write(t, s.st, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.User.Create().SetEmail(email).SetName(email).SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		if id = row.ID; role == "" {
			return nil
		}
		return tx.Membership.Create().SetDeploymentID(s.first.Deployment.ID).SetUserID(id).SetRole(string(role)).SetCreatedAt(store.Now()).Exec(ctx)
	})
	return id
}

// setRole changes a member's role without the rules of the API.
func (s *server) setRole(t testing.TB, userID int64, role Role) {
	t.Helper()
	write(t, s.st, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Membership.Update().Where(membership.UserID(userID)).SetRole(string(role)).Exec(ctx)
	})
}

// change runs a change in the deployment.
func (s *server) change(t testing.TB, change func(ctx context.Context, tx *ent.Tx) error) error {
	t.Helper()
	return s.st.Write(tenant.NewContext(t.Context(), s.first.Deployment.ID), change)
}

// TestTokenFollowsItsCreator: with each request, a token has the lesser of its own role and its creator's.
func TestTokenFollowsItsCreator(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		ada := s.person(t, "ada@acme.test", RoleAdmin)
		tokens := map[Role]string{}
		for _, role := range Roles {
			spec := s.spec()
			spec.UserID, spec.Role = ada, role
			_, tokens[role] = s.createToken(t, spec)
		}
		for i, role := range Roles {
			s.setRole(t, ada, role)
			for j, own := range Roles {
				p := s.mustLogin(t, tokens[own])
				if got, want := p.Grants[0].Role, Roles[max(i, j)]; got != want {
					t.Errorf("a token of %s by a person of %s acts as %s, want %s", own, role, got, want)
				}
				if p.ByAdmin != (role == RoleAdmin) || p.OfDeployment {
					t.Errorf("%s by %s: %+v", own, role, p)
				}
			}
		}
		if err := s.change(t, func(ctx context.Context, tx *ent.Tx) error {
			row, err := LockMember(ctx, st, tx, ada)
			if err != nil {
				return err
			}
			return RemoveMember(ctx, tx, row)
		}); err != nil {
			t.Fatal(err)
		}
		for own, value := range tokens {
			_, err := s.login(t, value)
			if assertReason(t, err, errorsv1.Reason_REASON_PERMISSION_DENIED); statusText(err) != statusText(errNoCreator()) {
				t.Errorf("%s: %v", own, err)
			}
		}
		if err := s.change(t, func(ctx context.Context, tx *ent.Tx) error {
			return Join(ctx, tx, s.first.Deployment.ID, ada, RoleReadOnly, false)
		}); err != nil {
			t.Fatal(err)
		}
		if got := s.mustLogin(t, tokens[RoleAdmin]).Grants[0].Role; got != RoleReadOnly {
			t.Errorf("after she joined again the token acts as %s", got)
		}
	})
}

// TestTokensOfTheDeployment: tokens of commands, of the first start, of a project's CI and without a known creator
// act whoever leaves, and so do the tokens that they create.
func TestTokensOfTheDeployment(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		_, ofCommand := s.createToken(t, s.spec())
		_, value := s.createToken(t, s.spec())
		var ofCI, ofToken, ofNobody string
		ofNobody = newTokenValue()
		if err := s.change(t, func(ctx context.Context, tx *ent.Tx) (err error) {
			if _, ofCI, err = s.tokens.CreateForCI(ctx, tx, s.first.Deployment.ID, 1, "ci", s.clock.now().Add(1e12)); err != nil {
				return err
			}
			if _, ofToken, err = s.tokens.CreateAs(ctx, tx, s.mustLogin(t, value), RoleMember, s.spec()); err != nil {
				return err
			}
			spec := s.spec()
			_, err = insertToken(ctx, tx, spec, ofNobody, s.clock.now())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		write(t, st, func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.Membership.Delete().Exec(ctx)
			return err
		})
		for name, value := range map[string]string{
			"command": ofCommand, "first start": s.first.TokenValue, "CI": ofCI, "another token": ofToken, "nobody": ofNobody,
		} {
			if p := s.mustLogin(t, value); !p.OfDeployment || !p.ByAdmin {
				t.Errorf("%s: %+v", name, p)
			}
		}
	})
}

// TestStoredTokensFollowTheirCreators: tokens from before the upgrade have no mark, so they do what their stored
// creator may do.
func TestStoredTokensFollowTheirCreators(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		write(t, st, func(ctx context.Context, tx *ent.Tx) error { return tx.Token.Update().ClearHandedOverAt().Exec(ctx) })
		if p := s.mustLogin(t, s.first.TokenValue); p.Grants[0].Role != RoleAdmin || p.OfDeployment {
			t.Errorf("got %+v", p)
		}
		s.setRole(t, s.mustLogin(t, s.first.TokenValue).UserID, RoleReadOnly)
		if p := s.mustLogin(t, s.first.TokenValue); p.Grants[0].Role != RoleReadOnly {
			t.Errorf("got %+v", p)
		}
	})
}

// TestDecide ends and hands over tokens of a person. What is contradictory changes nothing.
func TestDecide(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		ada, bob := s.person(t, "ada@acme.test", RoleAdmin), s.person(t, "bob@acme.test", RoleAdmin)
		spec := s.spec()
		spec.UserID = ada
		var ids []int64
		var values []string
		for range 4 {
			row, value := s.createToken(t, spec)
			ids, values = append(ids, row.ID), append(values, value)
		}
		if err := s.change(t, func(ctx context.Context, tx *ent.Tx) error {
			row, value, err := s.tokens.CreateAs(ctx, tx, s.mustLogin(t, values[0]), RoleMember, s.spec())
			ids, values = append(ids, row.ID), append(values, value)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		spec.UserID = bob
		foreign, foreignValue := s.createToken(t, spec)
		decide := func(by int64, d Decisions) (list []Decided, err error) {
			err = s.change(t, func(ctx context.Context, tx *ent.Tx) error {
				list, err = s.tokens.Decide(ctx, tx, by, ada, d)
				return err
			})
			return list, err
		}
		for name, c := range map[string]struct {
			by   int64
			d    Decisions
			want errorsv1.Reason
		}{
			"unknown":                        {bob, Decisions{End: []int64{999}}, errorsv1.Reason_REASON_NOT_FOUND},
			"of another person":              {bob, Decisions{Keep: []int64{foreign.ID}}, errorsv1.Reason_REASON_NOT_FOUND},
			"both":                           {bob, Decisions{Keep: ids[:1], End: ids[:1]}, errorsv1.Reason_REASON_INVALID_ARGUMENT},
			"the child of one that ends":     {bob, Decisions{End: ids[:1], Keep: ids[4:]}, errorsv1.Reason_REASON_INVALID_ARGUMENT},
			"one's own":                      {ada, Decisions{Keep: ids[1:2]}, errorsv1.Reason_REASON_PERMISSION_DENIED},
			"one's own, with all the others": {ada, Decisions{Others: Keep}, errorsv1.Reason_REASON_PERMISSION_DENIED},
		} {
			_, err := decide(c.by, c.d)
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			assertReason(t, err, c.want)
		}
		if n := st.Reader.Token.Query().Where(token.Or(token.RevokedAtNotNil(), token.And(token.UserID(ada), token.HandedOverAtNotNil()))).
			CountX(tenant.System(t.Context())); n != 0 {
			t.Errorf("%d tokens were changed", n)
		}
		list, err := decide(bob, Decisions{End: ids[:1], Keep: ids[1:2], Others: Leave})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range list {
			got = append(got, fmt.Sprint(slices.Index(ids, one.Token.ID), one.Decision))
		}
		if want := fmt.Sprint([]string{"0 1", "1 2", "2 0", "3 0", "4 1"}); fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
		s.setRole(t, ada, RoleReadOnly)
		for i, want := range []Role{"", RoleMember, RoleReadOnly, RoleReadOnly, ""} {
			p, err := s.login(t, values[i])
			if want == "" {
				assertBadCredential(t, p, err)
			} else if err != nil || p.Grants[0].Role != want {
				t.Errorf("token %d: %+v, %v", i, p, err)
			}
		}
		if list, err := decide(0, Decisions{Others: End}); err != nil || len(list) != 2 {
			t.Errorf("the rest: %v, %v", list, err)
		}
		s.mustLogin(t, foreignValue)
	})
}
