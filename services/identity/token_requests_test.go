package identity_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/ent/tokenrequest"
	"github.com/palisade/palisade/ent/user"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/identity"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

const requestsPath = "/api/agent/tokens/requests"

var pickedUp = regexp.MustCompile(`^\{"token":"(sgp_[a-zA-Z0-9]{43})"\}$`)

// pickUp requests the token of a key; "" if there is none.
func (r requester) pickUp(t *testing.T, key string) string {
	t.Helper()
	answer := r.Do(t, "", http.MethodPost, requestsPath, `{"token_request_key":"`+key+`"}`)
	if answer.Status == http.StatusNotFound {
		if !strings.HasPrefix(answer.Body, `{"error":"there is no token for this key`) {
			t.Errorf("not yet: %s", answer.Body)
		}
		return ""
	}
	found := pickedUp.FindStringSubmatch(answer.Body)
	if answer.Status != http.StatusOK || found == nil {
		t.Fatalf("pick up: %d %s", answer.Status, answer.Body)
	}
	return found[1]
}

func (r requester) confirm(t *testing.T, token, key string, want int) string {
	t.Helper()
	return r.Body(t, token, http.MethodPost, requestsPath+"/"+key+"/confirm", "{}", want)
}

// user is the credential of a user who may send results to a deployment.
func (r requester) user(t *testing.T, tenant apitest.Tenant) string {
	t.Helper()
	return r.AddUser(t, tenant, "dev@"+tenant.Slug+".test", access.RoleMember)
}

// The whole login: no token yet, confirmed, returned once, and never again.
func TestScannerLogin(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		r := requester{server}
		key, dev := uuid.NewString(), r.user(t, r.Tenant)
		if got := r.pickUp(t, key); got != "" {
			t.Fatal("a token before anybody confirmed")
		}
		today := time.Now().UTC().Format(time.DateOnly)
		body := r.confirm(t, dev, key, 200)
		if !strings.Contains(body, today) { // midnight passed in between
			today = time.Now().UTC().Format(time.DateOnly)
		}
		if want := `{"deployment_name":"Acme Corp","token_name":"scanner login ` + today + `","expires_in":600}`; body != want {
			t.Errorf("confirmed: %s, want %s", body, want)
		}
		has(t, r.confirm(t, dev, key, 409), "confirmed already")
		has(t, r.confirm(t, r.user(t, r.AddTenant(t, "rival")), key, 409), "confirmed already")

		value := r.pickUp(t, strings.ToUpper(key))
		if value == "" {
			t.Fatal("no token after the confirmation")
		}
		if again := r.pickUp(t, key); again != "" {
			t.Error("handed over twice")
		}
		// The token has the permissions that a scanner needs, and no more.
		r.Body(t, value, http.MethodGet, "/api/agent/deployments/current", "", 200)
		r.Body(t, value, http.MethodGet, tokensPath(r.DeploymentID), "", 404)
		row := r.Store.Reader.Token.Query().Where(token.NameHasPrefix("scanner login")).OnlyX(r.System(t))
		if fmt.Sprint(row.Scopes, row.Role, row.ExpiresAt, row.DeploymentID) != fmt.Sprint([]string{"agent"}, "ORG_ROLE_MEMBER", (*int64)(nil), r.DeploymentID) {
			t.Errorf("the token is %v", row)
		}
		// The audit trail has the user who confirmed.
		trail := r.Body(t, r.Token, http.MethodGet, fmt.Sprintf("/api/audit/v1/deployments/%d/entries", r.DeploymentID), "", 200)
		has(t, trail, "ConfirmTokenRequest", "scanner login "+today)
		for _, secret := range []string{value, key} {
			if strings.Contains(trail, secret) {
				t.Error("the audit trail shows a secret")
			}
		}
	})
}

func TestScannerLoginOverGRPC(t *testing.T) {
	server := apitest.Start(t, nil)
	client, key := identityv1.NewTokenRequestsServiceClient(server.Conn), uuid.NewString()
	ask := &identityv1.PickUpTokenRequest{TokenRequestKey: key}
	if _, err := client.PickUpToken(t.Context(), ask); status.Code(err) != codes.NotFound {
		t.Errorf("before: %v", err)
	}
	jwt := server.AddUser(t, server.Tenant, "dev@acme.test", access.RoleMember)
	confirmed, err := client.ConfirmTokenRequest(server.Context(t, jwt), &identityv1.ConfirmTokenRequestRequest{TokenRequestKey: key})
	if err != nil || confirmed.GetExpiresIn() != 600 {
		t.Fatalf("confirm: %v, %v", confirmed, err)
	}
	answer, err := client.PickUpToken(t.Context(), ask)
	if err != nil || !strings.HasPrefix(answer.GetToken(), "sgp_") {
		t.Errorf("pick up: %v", err)
	}
	if _, err := client.PickUpToken(t.Context(), ask); status.Code(err) != codes.NotFound {
		t.Errorf("again: %v", err)
	}
}

// Keys must be UUIDs, and users who confirm must have the permission to send results.
func TestScannerLoginRefusals(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		r := requester{server}
		for _, body := range []string{
			`{}`, `{"token_request_key":""}`, `{"token_request_key":"1234"}`, `{"token_request_key":"` + strings.Repeat("a", 36) + `"}`,
			`{"token_request_key":"` + uuid.NewString() + `x"}`, `{"token_request_key":7}`, `[]`, `{`,
		} {
			if answer := r.Do(t, "", http.MethodPost, requestsPath, body); answer.Status != 400 || !strings.HasPrefix(answer.Body, `{"error":"`) {
				t.Errorf("%s: %d %s", body, answer.Status, answer.Body)
			}
		}
		key := uuid.NewString()
		r.confirm(t, r.user(t, r.Tenant), "1234", 400)
		if body := r.confirm(t, "", key, 401); body != `{"error":"Not authorized"}` {
			t.Errorf("without a credential: %s", body)
		}
		r.confirm(t, r.AddUser(t, r.Tenant, "reader@acme.test", access.RoleReadOnly), key, 403)
		r.confirm(t, r.AddUser(t, r.Tenant, "stranger@acme.test", ""), key, 404)
		// An API token of any scope cannot confirm: the new token would outlive it.
		for _, scopes := range [][]access.Scope{{access.ScopeAgent}, {access.ScopeWebAPI}, access.Scopes} {
			has(t, r.confirm(t, r.AddToken(t, r.Tenant, access.TokenSpec{Scopes: scopes}), key, 403), "only a user's JSON Web Token")
		}
		if r.pickUp(t, key) != "" || r.Store.Reader.TokenRequest.Query().CountX(r.System(t)) != 0 {
			t.Error("a refusal left something")
		}
	})
}

// A user of several deployments must name one; a deployment that is not the user's is not found.
func TestScannerLoginOfSeveralDeployments(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		r, key := requester{server}, uuid.NewString()
		second, foreign := r.AddTenant(t, "second"), r.AddTenant(t, "foreign")
		dev := r.user(t, r.Tenant)
		err := r.Store.Write(r.System(t), func(ctx context.Context, tx *ent.Tx) error {
			id := tx.User.Query().Where(user.Email("dev@acme.test")).OnlyIDX(ctx)
			return tx.Membership.Create().SetDeploymentID(second.DeploymentID).SetUserID(id).SetRole(string(access.RoleMember)).SetCreatedAt(store.Now()).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		confirm := func(slug string, want int) string {
			t.Helper()
			return r.Body(t, dev, http.MethodPost, requestsPath+"/confirm", fmt.Sprintf(`{"token_request_key":%q,"deployment_slug":%q}`, key, slug), want)
		}
		has(t, confirm("", 400), "belongs to 2 deployments", "deployment_slug")
		confirm(foreign.Slug, 404)
		confirm(second.Slug, 200)
		value := r.pickUp(t, key)
		has(t, r.Body(t, value, http.MethodGet, "/api/agent/deployments/current", "", 200), fmt.Sprintf(`"id":%d,`, second.DeploymentID))
	})
}

// A token that is not picked up in time is deleted.
func TestScannerLoginExpires(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		r, late, intime := requester{server}, uuid.NewString(), uuid.NewString()
		dev := r.user(t, r.Tenant)
		r.confirm(t, dev, late, 200)
		r.confirm(t, dev, intime, 200)
		hash := sha256.Sum256([]byte(late))
		db := r.Store.Pools()["writer"]
		if db == nil {
			db = r.Store.Pools()["main"]
		}
		result, err := db.ExecContext(t.Context(), "UPDATE token_requests SET expires_at = $1 WHERE key_hash = $2", store.Now(), hash[:])
		if n := affected(t, result, err); n != 1 {
			t.Fatalf("%d rows have the hash of the key", n)
		}
		if r.pickUp(t, late) != "" {
			t.Error("picked up after its time")
		}
		if err := identity.ExpireTokenRequests(t.Context(), r.Store); err != nil {
			t.Fatal(err)
		}
		left := r.Store.Reader.TokenRequest.Query().AllX(r.System(t))
		revoked := r.Store.Reader.Token.Query().Where(token.RevokedAtNotNil()).CountX(r.System(t))
		if len(left) != 1 || revoked != 1 {
			t.Errorf("%d requests are left, %d tokens deleted", len(left), revoked)
		}
		value := r.pickUp(t, intime)
		r.Body(t, value, http.MethodGet, "/api/agent/deployments/current", "", 200)
	})
}

func affected(t *testing.T, result sql.Result, err error) int64 {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A token that was deleted before the pickup is not returned.
func TestScannerLoginOfDeletedToken(t *testing.T) {
	server := apitest.Start(t, nil)
	r, key := requester{server}, uuid.NewString()
	r.confirm(t, r.user(t, r.Tenant), key, 200)
	err := r.Store.Write(r.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Token.Update().Where(token.NameHasPrefix("scanner login")).SetRevokedAt(store.Now()).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.pickUp(t, key) != "" {
		t.Error("a deleted token was handed over")
	}
}

// Of concurrent requests only one gets the token.
func TestScannerLoginRace(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		r := requester{server}
		dev := r.user(t, r.Tenant)
		for range 5 {
			key := uuid.NewString()
			r.confirm(t, dev, key, 200)
			var wait sync.WaitGroup
			got := make([]string, 8)
			for i := range got {
				wait.Go(func() { got[i] = r.pickUp(t, key) })
			}
			wait.Wait()
			if winners := len(strings.Fields(strings.Join(got, " "))); winners != 1 {
				t.Errorf("%d got the token", winners)
			}
		}
	})
}

// Neither the token nor the key is stored in plain text.
func TestScannerLoginKeepsNothingInClear(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		r, key := requester{server}, uuid.NewString()
		r.confirm(t, r.user(t, r.Tenant), key, 200)
		row := r.Store.Reader.TokenRequest.Query().OnlyX(r.System(t))
		value := r.pickUp(t, key)
		for _, secret := range []string{value, key} {
			if strings.Contains(string(row.Sealed)+string(row.KeyHash)+row.String(), secret) {
				t.Error("a request holds a secret in clear")
			}
		}
		hash := sha256.Sum256([]byte(key))
		if string(row.KeyHash) != string(hash[:]) || r.Store.Reader.TokenRequest.Query().Where(tokenrequest.ID(row.ID)).ExistX(r.System(t)) {
			t.Error("the key is not hashed, or the request is still there")
		}
	})
}
