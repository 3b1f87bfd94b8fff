package findings_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/user"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// views calls the API of saved views.
type views struct{ *apitest.Server }

func (v views) path(rest string) string {
	return fmt.Sprintf("/api/v1/deployments/%d/saved-views%s", v.DeploymentID, rest)
}

// create makes a view and returns its id.
func (v views) create(t testing.TB, token, body string) int64 {
	t.Helper()
	var out struct{ View struct{ ID int64 } }
	if err := json.Unmarshal([]byte(v.Body(t, token, http.MethodPost, v.path(""), body, http.StatusOK)), &out); err != nil {
		t.Fatal(err)
	}
	return out.View.ID
}

func (v views) refuse(t testing.TB, want int, token, method, rest, body, text string) {
	t.Helper()
	if got := v.Body(t, token, method, v.path(rest), body, want); !strings.Contains(got, text) {
		t.Errorf("%s %s %s: %s, want %q", method, rest, body, got, text)
	}
}

// list lists views: scope name, with * for a default and ! for a view that the caller may change.
func (v views) list(t testing.TB, token string, limit int32) (list []string) {
	t.Helper()
	for cursor := ""; ; {
		page, err := findingsv1.NewSavedViewsServiceClient(v.Conn).ListSavedViews(v.Context(t, token),
			&findingsv1.ListSavedViewsRequest{DeploymentId: v.DeploymentID, Limit: &limit, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range page.GetViews() {
			text := one.GetScope() + " " + one.GetName()
			if one.GetIsDefault() {
				text += "*"
			}
			if one.GetCanEdit() {
				text += "!"
			}
			list = append(list, text)
		}
		if cursor = page.GetCursor(); cursor == "" {
			return list
		}
	}
}

func (v views) want(t testing.TB, what, token string, want ...string) {
	t.Helper()
	if got := v.list(t, token, 2); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

const wholeView = `{"filter":{"severities":["SEVERITY_HIGH"],"repositoryIds":["1"],"onPrimaryBranch":true},"issue_types":["ISSUE_TYPE_SAST"],` +
	`"columns":["severity","rule"],"sort_by":"SORT_BY_SEVERITY","sort_direction":"SORT_DIRECTION_DESC","group_by":"GROUP_BY_RULE"}`

func TestSavedViewsGolden(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		v := views{s}
		created := s.Body(t, s.Token, http.MethodPost, v.path(""), `{"scope":"deployment","name":" High  on main ","position":3,"is_default":true,"view":`+wholeView+`}`, http.StatusOK)
		apitest.Golden(t, "saved_view", created)
		client := findingsv1.NewSavedViewsServiceClient(s.Conn)
		got, err := client.GetSavedView(s.Context(t, s.Token), &findingsv1.GetSavedViewRequest{DeploymentId: s.DeploymentID, ViewId: 1})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, got, s.Get(t, v.path("/1")))
		apitest.Same(t, got, created)
		list, err := client.ListSavedViews(s.Context(t, s.Token), &findingsv1.ListSavedViewsRequest{DeploymentId: s.DeploymentID, Scope: "deployment"})
		if err != nil {
			t.Fatal(err)
		}
		body := s.Get(t, v.path("?scope=deployment"))
		apitest.Same(t, list, body)
		apitest.Golden(t, "saved_views", body)
		changed := s.Body(t, s.Token, http.MethodPatch, v.path("/1"), `{"name":"All","is_default":false,"view":{}}`, http.StatusOK)
		apitest.Golden(t, "saved_view_changed", changed)
		deleted, err := client.DeleteSavedView(s.Context(t, s.Token), &findingsv1.DeleteSavedViewRequest{DeploymentId: s.DeploymentID, ViewId: 1})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, deleted, changed)
		v.refuse(t, http.StatusNotFound, s.Token, http.MethodGet, "/1", "", "saved view 1 not found")
	})
}

// TestSavedViewsAreChecked: names are unique in a scope, a scope has one default, and views are limited.
func TestSavedViewsAreChecked(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		v, ada := views{s}, s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleAdmin)
		first := v.create(t, ada, `{"name":"Open","is_default":true}`)
		v.create(t, ada, `{"name":"Mine","position":1,"is_default":true}`)
		v.create(t, ada, `{"scope":"deployment","name":"open","is_default":true}`)
		v.want(t, "one default", ada, "own Open!", "deployment open*!", "own Mine*!")
		s.Body(t, ada, http.MethodPatch, v.path(fmt.Sprintf("/%d", first)), `{"is_default":true,"position":2}`, http.StatusOK)
		v.want(t, "another default, and another order", ada, "deployment open*!", "own Mine!", "own Open*!")
		for _, c := range []struct {
			want                     int
			method, rest, body, text string
		}{
			{http.StatusConflict, http.MethodPost, "", `{"name":"OPEN"}`, `a view with the name \"OPEN\" exists`},
			{http.StatusConflict, http.MethodPatch, fmt.Sprintf("/%d", first), `{"name":"mine"}`, "exists in this scope"},
			{http.StatusBadRequest, http.MethodPatch, fmt.Sprintf("/%d", first), `{"scope":"deployment"}`, `scope cannot change: it must be \"own\" or left out`},
			{http.StatusBadRequest, http.MethodPatch, fmt.Sprintf("/%d", first), `{"scope":"all"}`, "scope"},
			{http.StatusBadRequest, http.MethodPatch, fmt.Sprintf("/%d", first), `{"team_id":9}`, "team_id cannot change"},
			{http.StatusBadRequest, http.MethodPost, "", `{"name":"  "}`, "name"},
			{http.StatusBadRequest, http.MethodPost, "", `{"name":"x","scope":"all"}`, "scope"},
			{http.StatusBadRequest, http.MethodPost, "", `{"name":"x","scope":"team"}`, "team_id"},
			{http.StatusBadRequest, http.MethodPost, "", `{"name":"x","team_id":1}`, "team_id"},
			{http.StatusNotFound, http.MethodPost, "", `{"name":"x","scope":"team","team_id":9}`, "team 9 not found"},
			{http.StatusBadRequest, http.MethodPost, "", `{"name":"x","view":{"sort_by":"SORT_BY_NAME"}}`, "sort_by"},
			{http.StatusBadRequest, http.MethodPost, "", `{"name":"x","view":{"columns":["a","a"]}}`, "columns"},
			{http.StatusBadRequest, http.MethodPost, "", `{"name":"x","view":{"filter":{"rules":[` + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("r", 900)+`",`, 80), ",") + `]}}}`, "65536 bytes"},
			{http.StatusNotFound, http.MethodPatch, "/99", `{"name":"x"}`, "saved view 99 not found"},
			{http.StatusNotFound, http.MethodDelete, "/99", "", "saved view 99 not found"},
		} {
			v.refuse(t, c.want, ada, c.method, c.rest, c.body, c.text)
		}
		s.Body(t, ada, http.MethodPatch, v.path(fmt.Sprintf("/%d", first)), `{"name":"OPEN","scope":"own","team_id":0}`, http.StatusOK)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			var more []*ent.SavedViewCreate
			for i := range 99 {
				more = append(more, tx.SavedView.Create().SetDeploymentID(s.DeploymentID).SetScope("deployment").SetOwnerID(0).SetName(fmt.Sprint(i)).
					SetNameKey(fmt.Sprint(i)).SetContent([]byte{}).SetCreatorID(1).SetCreatedAt(store.Now()).SetUpdatedAt(store.Now()))
			}
			return tx.SavedView.CreateBulk(more...).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		v.refuse(t, http.StatusBadRequest, ada, http.MethodPost, "", `{"name":"x","scope":"deployment"}`, "at most 100 views")
		v.create(t, ada, `{"name":"x"}`)
		if n := len(v.list(t, ada, 50)); n != 103 {
			t.Errorf("%d views", n)
		}
	})
}

// TestSavedViewsAccess: callers read and change the views of their scopes; views are deleted with their team or user.
func TestSavedViewsAccess(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		v := views{s}
		tokens, ids := map[string]string{}, map[string]int64{}
		for name, role := range map[string]access.Role{"mia": access.RoleMember, "max": access.RoleMember, "rob": access.RoleReadOnly, "out": access.RoleMember} {
			tokens[name] = s.AddUser(t, s.Tenant, name+"@acme.test", role)
			ids[name] = s.Store.Reader.User.Query().Where(user.Email(name + "@acme.test")).OnlyIDX(s.System(t))
		}
		var team int64
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			row, err := tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("Web").SetSlug("web").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			team = row.ID
			for name, role := range map[string]string{"mia": "TEAM_ROLE_MANAGER", "max": "TEAM_ROLE_MEMBER", "rob": "TEAM_ROLE_MANAGER"} {
				if err := tx.TeamMember.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team).SetUserID(ids[name]).SetRole(role).SetCreatedAt(1).Exec(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		ofTeam := fmt.Sprintf(`{"name":"Team","scope":"team","team_id":%d,"position":1}`, team)
		shared := v.create(t, tokens["mia"], ofTeam)
		all := v.create(t, s.Token, `{"name":"All","scope":"deployment","position":2}`)
		own := v.create(t, tokens["rob"], `{"name":"Own"}`)
		v.want(t, "manager", tokens["mia"], "team Team!", "deployment All")
		v.want(t, "member", tokens["max"], "team Team", "deployment All")
		v.want(t, "read-only", tokens["rob"], "own Own!", "team Team", "deployment All")
		v.want(t, "another team", tokens["out"], "deployment All")
		v.want(t, "administrator", s.Token, "team Team!", "deployment All!")
		for _, c := range []struct {
			want                            int
			who, method, rest, body, reason string
		}{
			{http.StatusForbidden, "max", http.MethodPost, "", ofTeam, "managers of the team"},
			{http.StatusForbidden, "rob", http.MethodPost, "", ofTeam, "managers of the team"},
			{http.StatusNotFound, "out", http.MethodPost, "", ofTeam, "not found"},
			{http.StatusForbidden, "mia", http.MethodPost, "", `{"name":"x","scope":"deployment"}`, "administrators"},
			{http.StatusForbidden, "max", http.MethodPatch, fmt.Sprintf("/%d", shared), `{"name":"x"}`, "managers of the team"},
			{http.StatusForbidden, "mia", http.MethodDelete, fmt.Sprintf("/%d", all), "", "administrators"},
			{http.StatusNotFound, "out", http.MethodGet, fmt.Sprintf("/%d", shared), "", "not found"},
			{http.StatusNotFound, "mia", http.MethodDelete, fmt.Sprintf("/%d", own), "", "not found"},
		} {
			v.refuse(t, c.want, tokens[c.who], c.method, c.rest, c.body, c.reason)
		}
		if answer := s.Do(t, s.Token, http.MethodGet, v.path(fmt.Sprintf("/%d", own)), ""); answer.Status != http.StatusNotFound {
			t.Errorf("an administrator reads the view of a user: %s", answer.Body)
		}
		other := s.AddTenant(t, "globex")
		client := findingsv1.NewSavedViewsServiceClient(s.Conn)
		_, err = client.GetSavedView(s.Context(t, other.Token), &findingsv1.GetSavedViewRequest{DeploymentId: other.DeploymentID, ViewId: all})
		if status.Code(err) != codes.NotFound {
			t.Errorf("another deployment reads: %v", err)
		}
		s.Body(t, s.Token, http.MethodDelete, fmt.Sprintf("/api/permissions/v2/deployments/%d/teams/%d", s.DeploymentID, team), "", http.StatusOK)
		chief := s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin)
		s.Body(t, chief, http.MethodDelete, fmt.Sprintf("/api/agent/deployments/%d/users/%d", s.DeploymentID, ids["rob"]), "", http.StatusOK)
		if left := s.Store.Reader.SavedView.Query().IDsX(s.System(t)); !slices.Equal(left, []int64{all}) {
			t.Errorf("left are %v", left)
		}
	})
}
