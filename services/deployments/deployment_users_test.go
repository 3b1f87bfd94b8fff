package deployments_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/user"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// seedTeams creates the team Platform and its subteam Payments. The user manages the first and is a member of the
// second.
func seedTeams(t *testing.T, s caller, userID int64) {
	t.Helper()
	s.write(t, func(ctx context.Context, tx *ent.Tx) error {
		now := store.Now()
		add := func(name string, parent *int64, role string, standard bool) (*int64, error) {
			row, err := tx.Team.Create().SetName(name).SetSlug(strings.ToLower(name)).SetNillableParentID(parent).
				SetIsUserDefault(standard).SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
			if err != nil {
				return nil, err
			}
			return &row.ID, tx.TeamMember.Create().SetTeamID(row.ID).SetUserID(userID).SetRole(role).SetCreatedAt(now).Exec(ctx)
		}
		above, err := add("Platform", nil, "TEAM_ROLE_MANAGER", true)
		if err != nil {
			return err
		}
		if _, err := add("Payments", above, "TEAM_ROLE_READONLY", false); err != nil {
			return err
		}
		p, err := tx.Project.Create().SetName("acme/web").SetNameKey("acme/web").SetCreatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		return tx.TeamProject.Create().SetTeamID(*above).SetProjectID(p.ID).SetCreatedAt(now).Exec(ctx)
	})
}

func TestListUsers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		other := s.AddTenant(t, "umbrella")
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		ctx := s.Context(t, s.Token)
		dana, _ := s.person(t, "dana@acme.test", access.RoleMember)
		s.person(t, "reader_100%@acme.test", access.RoleReadOnly)
		seedTeams(t, s, dana)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.User.Update().Where(user.ID(dana)).SetName("Dana Öztürk").SetIssuer("https://id.acme.test").SetSubject("d-1").Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}

		all := s.admin(t, http.MethodGet, s.of("/users?showActive=True&pruneGithub=1"), "")
		apitest.Golden(t, "users", all)
		same(t, all)(client.GetDeploymentUsers(ctx, &deploymentsv1.GetDeploymentUsersRequest{DeploymentId: s.DeploymentID}))
		listed := s.admin(t, http.MethodPost, s.of("/users/list"), `{}`)
		if want := strings.TrimSuffix(all, "}") + `,"pageToken":""}`; listed != want {
			t.Errorf("the list is %s, want %s", listed, want)
		}
		same(t, listed)(client.ListDeploymentUsers(ctx, &deploymentsv1.ListDeploymentUsersRequest{DeploymentId: s.DeploymentID}))

		for filter, want := range map[string]string{
			`{"query":"DANA"}`:      "dana@acme.test",
			`{"query":"Öztürk"}`:    "dana@acme.test",
			`{"query":"_100%"}`:     "reader_100%@acme.test",
			`{"query":"r%r"}`:       "",
			`{"query":"nobody"}`:    "",
			`{"memberIds":["999"]}`: "",
			`{"filterMembers":"MEMBER_FILTER_TYPE_ADMIN_ONLY"}`:                                     access.AdminEmail,
			`{"filterMembers":"MEMBER_FILTER_TYPE_NON_ADMIN_ONLY"}`:                                 "dana@acme.test reader_100%@acme.test",
			fmt.Sprintf(`{"memberIds":["%d"]}`, dana):                                               "dana@acme.test",
			fmt.Sprintf(`{"memberIds":[%d],"filterMembers":"MEMBER_FILTER_TYPE_ADMIN_ONLY"}`, dana): "",
		} {
			if got := strings.Join(emails(t, s.admin(t, http.MethodPost, s.of("/users/list"), `{"filters":`+filter+`}`)), " "); got != want {
				t.Errorf("%s: %q, want %q", filter, got, want)
			}
		}
		strangers := s.Do(t, other.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/users/list", other.DeploymentID), `{}`).Body
		if got := emails(t, strangers); len(got) != 1 || got[0] != "admin@umbrella.test" {
			t.Errorf("the other deployment has %v", got)
		}
		s.refuses(t, http.StatusNotFound, other.Token, http.MethodPost, s.of("/users/list"), `{}`, "deployment not found")
	})
}

func emails(t *testing.T, body string) []string {
	t.Helper()
	var list struct{ Users []struct{ Email string } }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	found := make([]string, len(list.Users))
	for i, u := range list.Users {
		found[i] = u.Email
	}
	return found
}

func TestUsersPages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		for i := range 5 {
			s.person(t, fmt.Sprintf("dev%d@acme.test", i), access.RoleMember)
		}
		var seen []string
		token, pages := "", 0
		for pages = 1; ; pages++ {
			body := s.admin(t, http.MethodPost, s.of("/users/list"), fmt.Sprintf(`{"options":{"pageSize":2,"pageToken":%q},"filters":{"query":"dev"}}`, token))
			seen = append(seen, emails(t, body)...)
			var next struct{ PageToken string }
			if err := json.Unmarshal([]byte(body), &next); err != nil {
				t.Fatal(err)
			}
			if token = next.PageToken; token == "" {
				break
			}
			if pages == 1 {
				s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPost, s.of("/users/list"),
					fmt.Sprintf(`{"options":{"pageToken":%q},"filters":{"query":"other"}}`, token), "options.pageToken")
			}
		}
		if got := strings.Join(seen, " "); pages != 3 || got != "dev0@acme.test dev1@acme.test dev2@acme.test dev3@acme.test dev4@acme.test" {
			t.Errorf("%d pages: %s", pages, got)
		}
		for body, text := range map[string]string{
			`{"options":{"pageSize":1001}}`:                            "between 0 and 1000",
			`{"options":{"pageSize":-1}}`:                              "between 0 and 1000",
			`{"options":{"pageToken":"nonsense"}}`:                     "INVALID_CURSOR",
			`{"filters":{"filterMembers":"EVERY"}}`:                    "filterMembers",
			`{"filters":{"memberIds":["dana"]}}`:                       "memberIds",
			`{"filters":{"query":"` + strings.Repeat("x", 256) + `"}}`: "at most 255 characters",
		} {
			s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPost, s.of("/users/list"), body, text)
		}
	})
}

func TestPatchUser(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		other := s.AddTenant(t, "umbrella")
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		dana, jwt := s.person(t, "dana@acme.test", access.RoleMember)
		admin := s.userID(t, access.AdminEmail)
		roles := func(id int64) string { return s.of(fmt.Sprintf("/users/%d/roles", id)) }

		if got := s.admin(t, http.MethodPatch, roles(dana), `{"newRole":"ORG_ROLE_ADMIN"}`); got != `{}` {
			t.Errorf("got %s", got)
		}
		if got := s.want(t, http.StatusOK, jwt, http.MethodGet, s.of("/authorized_actions"), ""); !strings.Contains(got, "settings:manage") {
			t.Errorf("after that she may %s", got)
		}
		if row := s.Store.Reader.Membership.Query().AllX(s.System(t)); row[len(row)-1].UpdatedAt == nil {
			t.Error("the change has no date")
		}
		same(t, `{}`)(client.PatchDeploymentUser(s.Context(t, s.Token), &deploymentsv1.PatchDeploymentUserRequest{
			DeploymentId: s.DeploymentID, UserId: dana, NewRole: deploymentsv1.OrgRole_ORG_ROLE_READONLY}))

		s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPatch, roles(admin), `{"newRole":"ORG_ROLE_MEMBER"}`, "last administrator")
		s.admin(t, http.MethodPatch, roles(admin), `{"newRole":"ORG_ROLE_ADMIN"}`)
		s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPatch, roles(dana), `{}`, "newRole is required")
		s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPatch, roles(dana), `{"newRole":"ORG_ROLE_UNSPECIFIED"}`, "newRole is required")
		s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPatch, roles(dana), `{"newRole":"KING"}`, "KING")
		s.refuses(t, http.StatusNotFound, s.Token, http.MethodPatch, roles(999999), `{"newRole":"ORG_ROLE_ADMIN"}`, "user 999999 not found")
		stranger := s.userID(t, "admin@umbrella.test")
		s.refuses(t, http.StatusNotFound, s.Token, http.MethodPatch, roles(stranger), `{"newRole":"ORG_ROLE_MEMBER"}`, fmt.Sprintf("user %d not found", stranger))
		s.refuses(t, http.StatusNotFound, other.Token, http.MethodPatch, roles(dana), `{"newRole":"ORG_ROLE_ADMIN"}`, "deployment not found")
		s.refuses(t, http.StatusForbidden, jwt, http.MethodPatch, roles(dana), `{"newRole":"ORG_ROLE_ADMIN"}`, "ORG_ROLE_READONLY")
	})
}

// TestLastAdminsDemoteEachOther: two administrators demote each other concurrently, repeatedly: one administrator
// always remains.
func TestLastAdminsDemoteEachOther(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		root := s.userID(t, access.AdminEmail)
		first, firstJWT := s.person(t, "first@acme.test", access.RoleAdmin)
		second, secondJWT := s.person(t, "second@acme.test", access.RoleAdmin)
		set := func(jwt string, id int64, role deploymentsv1.OrgRole) error {
			_, err := client.PatchDeploymentUser(s.Context(t, jwt), &deploymentsv1.PatchDeploymentUserRequest{
				DeploymentId: s.DeploymentID, UserId: id, NewRole: role})
			return err
		}
		if err := set(s.Token, root, deploymentsv1.OrgRole_ORG_ROLE_MEMBER); err != nil {
			t.Fatal(err)
		}
		for round := range 20 {
			results := make(chan error, 2)
			go func() { results <- set(firstJWT, second, deploymentsv1.OrgRole_ORG_ROLE_MEMBER) }()
			go func() { results <- set(secondJWT, first, deploymentsv1.OrgRole_ORG_ROLE_MEMBER) }()
			failed := 0
			for range 2 {
				if err := <-results; err != nil {
					failed++
				}
			}
			admins := emails(t, s.admin(t, http.MethodPost, s.of("/users/list"), `{"filters":{"filterMembers":"MEMBER_FILTER_TYPE_ADMIN_ONLY"}}`))
			if len(admins) != 1 || failed != 1 {
				t.Fatalf("round %d: the administrators are %v, %d calls were refused; want one of each", round, admins, failed)
			}
			for _, id := range []int64{first, second} {
				if err := set(s.Token, id, deploymentsv1.OrgRole_ORG_ROLE_ADMIN); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func TestRemoveUser(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		_, chief := s.person(t, "chief@acme.test", access.RoleAdmin)
		dana, jwt := s.person(t, "dana@acme.test", access.RoleMember)
		token := s.AddToken(t, s.Tenant, access.TokenSpec{UserID: dana, Role: access.RoleMember})
		seedTeams(t, s, dana)
		one := func(id int64) string { return s.of(fmt.Sprintf("/users/%d", id)) }

		s.refuses(t, http.StatusForbidden, s.Token, http.MethodDelete, one(dana), "", "JSON Web Token")
		s.refuses(t, http.StatusForbidden, jwt, http.MethodDelete, one(dana), "", "ORG_ROLE_MEMBER")
		apitest.Golden(t, "remove_user", s.want(t, http.StatusOK, chief, http.MethodDelete, one(dana), ""))
		if n := s.Store.Reader.TeamMember.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d team memberships are left", n)
		}
		s.refuses(t, http.StatusNotFound, jwt, http.MethodGet, s.of(""), "", "deployment not found")
		s.refuses(t, http.StatusForbidden, token, http.MethodGet, s.of(""), "", "no longer a member")
		s.refuses(t, http.StatusNotFound, chief, http.MethodDelete, one(dana), "", fmt.Sprintf("user %d not found", dana))

		root := s.userID(t, access.AdminEmail)
		if _, err := client.RemoveDeploymentUser(s.Context(t, chief), &deploymentsv1.RemoveDeploymentUserRequest{DeploymentId: s.DeploymentID, UserId: root}); err != nil {
			t.Error(err)
		}
		self := s.userID(t, "chief@acme.test")
		code(t, codes.FailedPrecondition)(client.RemoveDeploymentUser(s.Context(t, chief),
			&deploymentsv1.RemoveDeploymentUserRequest{DeploymentId: s.DeploymentID, UserId: self}))
		s.refuses(t, http.StatusBadRequest, chief, http.MethodDelete, one(self), "", "last administrator")
	})
}

func TestInviteAndJoin(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		other := s.AddTenant(t, "umbrella")
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		checklist := deploymentsv1.NewChecklistServiceClient(s.Conn)
		_, chief := s.person(t, "chief@acme.test", access.RoleAdmin)
		_, dana := s.person(t, "dana@elsewhere.test", "")
		seedTeams(t, s, s.userID(t, "chief@acme.test"))
		invite := fmt.Sprintf("/api/onboarding/deployments/%d/invite_members", s.DeploymentID)

		s.refuses(t, http.StatusNotFound, dana, http.MethodPost, s.of("/users"), `{}`, "deployment not found")
		s.refuses(t, http.StatusNotFound, dana, http.MethodPost, "/api/agent/deployments/999999/users", `{}`, "deployment not found")
		body := `{"emails":["Dana@Elsewhere.test","chief@acme.test","new@acme.test","dana@elsewhere.test"]}`
		apitest.Golden(t, "invite", s.want(t, http.StatusOK, chief, http.MethodPost, invite, body))
		again := s.want(t, http.StatusOK, chief, http.MethodPost, invite, body)
		apitest.Golden(t, "invite_again", again)
		same(t, again)(checklist.InviteMembers(s.Context(t, chief), &deploymentsv1.InviteMembersRequest{
			DeploymentId: s.DeploymentID, Emails: []string{"dana@elsewhere.test", "chief@acme.test", "new@acme.test"}}))

		// The invitation is valid for this deployment only, regardless of the body.
		elsewhere := fmt.Sprintf("/api/agent/deployments/%d/users", other.DeploymentID)
		s.refuses(t, http.StatusNotFound, dana, http.MethodPost, elsewhere, fmt.Sprintf(`{"deploymentId":"%d"}`, s.DeploymentID), "deployment not found")
		s.refuses(t, http.StatusForbidden, s.Token, http.MethodPost, s.of("/users"), `{}`, "JSON Web Token")
		joined := s.want(t, http.StatusOK, dana, http.MethodPost, s.of("/users"), `{}`)
		apitest.Golden(t, "join", joined)
		same(t, joined)(client.AddDeploymentUser(s.Context(t, dana), &deploymentsv1.AddDeploymentUserRequest{DeploymentId: s.DeploymentID}))
		if got := emails(t, s.admin(t, http.MethodPost, s.of("/users/list"), `{"filters":{"query":"elsewhere"}}`)); len(got) != 1 {
			t.Errorf("members: %v", got)
		}
		if users := s.admin(t, http.MethodPost, s.of("/users/list"), `{"filters":{"query":"elsewhere"}}`); !strings.Contains(users, `"name":"Platform"`) || strings.Contains(users, `"name":"Payments"`) {
			t.Errorf("she is not in the default team, or in more: %s", users)
		}

		// A removed user needs a new invitation.
		id := s.userID(t, "dana@elsewhere.test")
		s.want(t, http.StatusOK, chief, http.MethodDelete, s.of(fmt.Sprintf("/users/%d", id)), "")
		s.refuses(t, http.StatusNotFound, dana, http.MethodPost, s.of("/users"), `{}`, "deployment not found")
		s.want(t, http.StatusOK, chief, http.MethodPost, invite, `{"emails":["dana@elsewhere.test"]}`)
		s.want(t, http.StatusOK, dana, http.MethodPost, s.of("/users"), `{}`)
	})
}

func TestInviteBadInput(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		_, chief := s.person(t, "chief@acme.test", access.RoleAdmin)
		_, member := s.person(t, "dev@acme.test", access.RoleMember)
		invite := fmt.Sprintf("/api/onboarding/deployments/%d/invite_members", s.DeploymentID)
		many := `"` + strings.Join(strings.Fields(strings.Repeat("a@acme.test ", 21)), `","`) + `"`
		for body, text := range map[string]string{
			`{}`:                                     "emails",
			`{"emails":[]}`:                          "emails",
			`{"emails":["new@acme.test","no mail"]}`: "emails[1]",
			`{"emails":[""]}`:                        "emails[0]",
			`{"emails":[` + many + `]}`:              "at most 20 items, got 21",
			`{"emails":["` + strings.Repeat("x", 250) + `@acme.test"]}`: "emails[0]",
		} {
			s.refuses(t, http.StatusBadRequest, chief, http.MethodPost, invite, body, text)
		}
		s.refuses(t, http.StatusForbidden, member, http.MethodPost, invite, `{"emails":["new@acme.test"]}`, "ORG_ROLE_MEMBER")
		s.refuses(t, http.StatusForbidden, s.Token, http.MethodPost, invite, `{"emails":["new@acme.test"]}`, "JSON Web Token")
		if n := s.Store.Reader.Invitation.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d invitations after what was refused", n)
		}
	})
}
