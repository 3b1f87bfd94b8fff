package identity_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	current  = "/api/auth/users/current"
	settings = current + "/settings"
)

// userOf is the id of the user with an e-mail address.
func (r requester) userOf(t *testing.T, email string) int64 {
	t.Helper()
	return r.Store.Reader.User.Query().Where(user.Email(email)).OnlyIDX(r.System(t))
}

// seed writes to the store as the server.
func (r requester) seed(t *testing.T, fn func(ctx context.Context, tx *ent.Tx) error) {
	t.Helper()
	if err := r.Store.Write(tenant.System(t.Context()), fn); err != nil {
		t.Fatal(err)
	}
}

func TestCurrentUser(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		dana := s.AddUser(t, s.Tenant, "dana@acme.test", access.RoleMember)
		body := s.Body(t, dana, http.MethodGet, current, "", 200)
		golden(t, "user", body)
		client := identityv1.NewUsersServiceClient(s.Conn)
		response, err := client.GetUser(s.Context(t, dana), &identityv1.GetUserRequest{})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, body)
		golden(t, "user_of_nothing", s.Body(t, s.AddUser(t, s.Tenant, "new@acme.test", ""), http.MethodGet, current, "", 200))
		s.seed(t, func(ctx context.Context, tx *ent.Tx) error {
			return tx.User.Update().Where(user.Email("dana@acme.test")).SetIssuer("https://login.acme.test").SetSubject("00u1a2b3c4").Exec(ctx)
		})
		golden(t, "user_sso", s.Body(t, dana, http.MethodGet, current, "", 200))
		has(t, s.Body(t, dana, http.MethodGet, settings, "", 200), `"availableEmails":[{"email":"dana@acme.test","primary":true,"verified":true}]`)
	})
}

// TestUsersAreTheirOwn: userId must be the caller's or absent, and API tokens are not users.
func TestUsersAreTheirOwn(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		dana := s.AddUser(t, s.Tenant, "dana@acme.test", access.RoleAdmin)
		id := s.userOf(t, "dana@acme.test")
		denied := fmt.Sprintf("userId must be the caller's own id, %d, or left out, got 1", id)
		for _, call := range []struct{ method, path string }{
			{http.MethodGet, current}, {http.MethodGet, settings}, {http.MethodGet, current + "/deployments"}, {http.MethodGet, current + "/deployments/joinable"},
		} {
			s.Body(t, dana, call.method, fmt.Sprintf("%s?userId=%d", call.path, id), "", 200)
			has(t, s.Body(t, dana, call.method, call.path+"?userId=1", "", 403), denied, `"code":"PERMISSION_DENIED"`)
			s.Body(t, dana, call.method, call.path+"?userId=me", "", 400)
			has(t, s.Body(t, s.Token, call.method, call.path, "", 403), `"code":"SCHEME_NOT_ACCEPTED"`)
			s.Body(t, "", call.method, call.path, "", 401)
		}
		has(t, s.Body(t, dana, http.MethodPatch, settings, `{"userId":"1","subscribe":true}`, 403), denied)
		s.Body(t, dana, http.MethodPatch, settings, fmt.Sprintf(`{"userId":%d,"subscribe":true}`, id), 200)
		s.Body(t, dana, http.MethodPatch, settings, fmt.Sprintf(`{"userId":"%d","subscribe":true}`, id), 200)
		has(t, s.Body(t, s.Token, http.MethodPatch, settings, `{"subscribe":true}`, 403), `"code":"SCHEME_NOT_ACCEPTED"`)
		s.Body(t, s.Token, http.MethodGet, "/api/auth/authorized_resources", "", 403)
		_, err := identityv1.NewUsersServiceClient(s.Conn).GetUser(s.Context(t, dana), &identityv1.GetUserRequest{UserId: 1})
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("another user: %v", err)
		}
	})
}

func TestUserSettings(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		dana := s.AddUser(t, s.Tenant, "dana@acme.test", access.RoleReadOnly)
		lee := s.AddUser(t, s.Tenant, "lee@acme.test", "")
		before := s.Body(t, dana, http.MethodGet, settings, "", 200)
		golden(t, "settings_default", before)
		for body, want := range map[string]string{
			`{"primaryEmail":"else@acme.test"}`:                   `primaryEmail must be one of availableEmails, dana@acme.test, got \"else@acme.test\"`,
			`{"findingsTourState":"TOUR_STATE_DONE"}`:             "findingsTourState must be one of TOUR_STATE_INCOMPLETE, TOUR_STATE_COMPLETE, TOUR_STATE_SKIPPED",
			`{"tourStates":[{"id":"TOUR_ID_X"}]}`:                 "tourStates[0].id must be one of TOUR_ID_AI_SCAN",
			`{"tourStates":[{"id":"TOUR_ID_AI_SCAN"}]}`:           "tourStates[0].state is required",
			`{"tourStates":[{"state":"TOUR_STATE_SKIPPED"}]}`:     "tourStates[0].id is required",
			`{"eventSource":"Elsewhere"}`:                         "eventSource must be one of Welcome, Findings",
			`{"subscribe":"perhaps"}`:                             "subscribe must be true or false",
			`{"primaryEmail":"` + strings.Repeat("a", 321) + `"}`: "primaryEmail must have at most 320 characters, got 321",
		} {
			has(t, s.Body(t, dana, http.MethodPatch, settings, body, 400), want)
		}
		if after := s.Body(t, dana, http.MethodGet, settings, "", 200); after != before {
			t.Errorf("refused changes made %s of %s", after, before)
		}
		golden(t, "settings_patch", s.Body(t, dana, http.MethodPatch, settings, `{"primaryEmail":"Dana@acme.test","hasAcceptedToc":true,"subscribe":true,
			"contactAboutExperiments":true,"usedCliLogin":true,"hasCompletedFindingsTour":true,"findingsTourState":"TOUR_STATE_COMPLETE",
			"supplyChainTourState":"TOUR_STATE_SKIPPED","eventSource":"Welcome",
			"tourStates":[{"id":"TOUR_ID_COMBINED_FINDINGS","state":"TOUR_STATE_COMPLETE"},{"id":"TOUR_ID_AI_SCAN","state":"TOUR_STATE_INCOMPLETE"}]}`, 200))
		client := identityv1.NewUsersServiceClient(s.Conn)
		no := false
		_, err := client.PatchUserSettings(s.Context(t, dana), &identityv1.PatchUserSettingsRequest{
			Subscribe: &no, TourStates: []*identityv1.TourStateEntry{{Id: identityv1.TourId_TOUR_ID_AI_SCAN, State: identityv1.TourState_TOUR_STATE_SKIPPED}},
		})
		if err != nil {
			t.Fatal(err)
		}
		after := s.Body(t, dana, http.MethodGet, settings, "", 200)
		golden(t, "settings", after)
		response, err := client.GetUserSettings(s.Context(t, dana), &identityv1.GetUserSettingsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, after)
		changes := 0
		for _, entry := range s.Store.Reader.AuditEntry.Query().AllX(s.System(t)) {
			for _, change := range entry.Changes {
				changes++
				if change.Kind != "user_settings" || change.Before == nil || change.After == nil || entry.DeploymentID != s.DeploymentID {
					t.Errorf("audited in deployment %d: %+v", entry.DeploymentID, change)
				}
			}
		}
		if changes != 2 {
			t.Errorf("%d changes were audited, want 2", changes)
		}
		has(t, s.Body(t, lee, http.MethodPatch, settings, `{}`, 200), `"login":"lee@acme.test"`)
		has(t, s.Body(t, lee, http.MethodGet, settings, "", 200), `"hasAcceptedToc":false`, `"primaryEmail":"lee@acme.test"`)
	})
}

// TestUserSettingsAtOnce: concurrent changes of different settings all take effect.
func TestUserSettingsAtOnce(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		dana := s.AddUser(t, s.Tenant, "dana@acme.test", access.RoleMember)
		var group sync.WaitGroup
		for _, body := range []string{`{"hasAcceptedToc":true}`, `{"subscribe":true}`, `{"contactAboutExperiments":true}`, `{"hasCompletedFindingsTour":true}`} {
			group.Go(func() {
				if answer := s.Do(t, dana, http.MethodPatch, settings, body); answer.Status != 200 {
					t.Errorf("%s: %d %s", body, answer.Status, answer.Body)
				}
			})
		}
		group.Wait()
		has(t, s.Body(t, dana, http.MethodGet, settings, "", 200), `"hasAcceptedToc":true`, `"subscribe":true`,
			`"contactAboutExperiments":true`, `"hasCompletedFindingsTour":true`)
	})
}

func TestUserOrganizations(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := requester{server}
		umbrella, tyrell, cyberdyne := s.AddTenant(t, "umbrella"), s.AddTenant(t, "tyrell"), s.AddTenant(t, "cyberdyne")
		dana := s.AddUser(t, s.Tenant, "dana@acme.test", access.RoleMember)
		lee := s.AddUser(t, s.Tenant, "lee@acme.test", "")
		id := s.userOf(t, "dana@acme.test")
		s.seed(t, func(ctx context.Context, tx *ent.Tx) error {
			invite := func(email string, of apitest.Tenant) *ent.InvitationCreate {
				return tx.Invitation.Create().SetEmail(email).SetDeploymentID(of.DeploymentID).SetInvitedBy(1).SetCreatedAt(store.Now())
			}
			connect := func(of int64, kind, namespace string) *ent.ScmConfigCreate {
				return tx.ScmConfig.Create().SetDeploymentID(of).SetType(kind).SetNamespace(namespace).SetBaseURL("https://host.test").
					SetCreatedAt(store.Now()).SetUpdatedAt(store.Now())
			}
			for _, create := range []interface{ Exec(context.Context) error }{
				tx.Membership.Create().SetDeploymentID(umbrella.DeploymentID).SetUserID(id).SetRole(string(access.RoleAdmin)).SetCreatedAt(store.Now()),
				invite("dana@acme.test", umbrella), // the user is already a member
				invite("dana@acme.test", tyrell), invite("lee@acme.test", cyberdyne),
				invite("dana@acme.test", cyberdyne).SetAcceptedAt(store.Now()), // and was removed since
				connect(s.DeploymentID, "SCM_TYPE_GITHUB", "acme"), connect(s.DeploymentID, "SCM_TYPE_BITBUCKET", "acme-old"),
				connect(umbrella.DeploymentID, "SCM_TYPE_GITLAB_SELFMANAGED", "umbrella/web"), connect(tyrell.DeploymentID, "SCM_TYPE_GITHUB", "tyrell"),
			} {
				if err := create.Exec(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		nobody := s.AddUser(t, s.Tenant, "nobody@acme.test", "")
		bodies := map[string]string{}
		for name, path := range map[string]string{
			"organizations": current + "/deployments", "joinable": current + "/deployments/joinable", "resources": "/api/auth/authorized_resources",
		} {
			bodies[name] = s.Body(t, dana, http.MethodGet, path, "", 200)
			golden(t, name, bodies[name])
			golden(t, name+"_of_nobody", s.Body(t, nobody, http.MethodGet, path, "", 200))
		}
		client, ctx := identityv1.NewUsersServiceClient(s.Conn), s.Context(t, dana)
		orgs, err := client.ListUserOrgs(ctx, &identityv1.ListUserOrgsRequest{UserId: id})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, orgs, bodies["organizations"])
		joinable, err := client.ListUserJoinableOrgs(ctx, &identityv1.ListUserJoinableOrgsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, joinable, bodies["joinable"])
		resources, err := client.ListUserAuthorizedResources(ctx, &identityv1.ListUserAuthorizedResourcesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, resources, bodies["resources"])
		if got := s.Body(t, lee, http.MethodGet, "/api/auth/authorized_resources", "", 200); strings.Contains(got, "tyrell") || !strings.Contains(got, "cyberdyne") {
			t.Errorf("lee may open %s", got)
		}
	})
}
