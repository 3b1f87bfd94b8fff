package scans_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/teammember"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// Members of a team see and decide about held closes of its projects only, and need more than the read role.
func TestHeldClosesOfTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, name := range []string{"acme/web", "acme/api"} {
			s.Upload(t, name, "main", manyOf(t, 12))
			s.Upload(t, name, "main", manyOf(t, 0))
		}
		mia := webReader(t, s)
		list := &scansv1.ListHeldClosesResponse{}
		held(t, s, mia, http.StatusOK, http.MethodGet, "held-closes", "", list)
		if len(list.GetHeldCloses()) != 1 || list.GetHeldCloses()[0].GetProject() != "acme/web" {
			t.Errorf("mia sees %v", list)
		}
		held(t, s, mia, http.StatusOK, http.MethodGet, "held-closes/1", "", &scansv1.GetHeldClosesResponse{})
		held(t, s, mia, http.StatusNotFound, http.MethodGet, "held-closes/2", "", nil)
		held(t, s, mia, http.StatusNotFound, http.MethodGet, "held-closes?project=acme/api", "", nil)
		held(t, s, mia, http.StatusNotFound, http.MethodPost, "held-closes/1/confirm", "{}", nil)
		held(t, s, mia, http.StatusForbidden, http.MethodPatch, "close-limits", `{"limits":{"off":true}}`, nil)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.TeamMember.Update().Where(teammember.Role("TEAM_ROLE_READONLY")).SetRole("TEAM_ROLE_MEMBER").Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		held(t, s, mia, http.StatusNotFound, http.MethodPost, "held-closes/2/confirm", "{}", nil)
		held(t, s, mia, http.StatusNotFound, http.MethodPost, "held-closes/2/reject", "{}", nil)
		held(t, s, mia, http.StatusOK, http.MethodPost, "held-closes/1/confirm", "{}", &scansv1.ConfirmHeldClosesResponse{})
		if got := statesOf(t, s); got["fixed"] != 12 || got["unresolved"] != 12 {
			t.Errorf("states %v", got)
		}

		other := s.AddTenant(t, "globex")
		client, ctx := scansv1.NewHeldClosesServiceClient(s.Conn), s.Context(t, other.Token)
		if _, err := client.GetHeldCloses(ctx, &scansv1.GetHeldClosesRequest{DeploymentSlug: "globex", HeldClosesId: 2}); status.Code(err) != codes.NotFound {
			t.Errorf("another deployment reads: %v", err)
		}
		if _, err := client.ConfirmHeldCloses(ctx, &scansv1.ConfirmHeldClosesRequest{DeploymentSlug: "globex", HeldClosesId: 2}); status.Code(err) != codes.NotFound {
			t.Errorf("another deployment confirms: %v", err)
		}
		if all, err := client.ListHeldCloses(ctx, &scansv1.ListHeldClosesRequest{DeploymentSlug: "globex"}); err != nil || len(all.GetHeldCloses()) > 0 {
			t.Errorf("another deployment lists: %v %v", all, err)
		}
		// Held closes are deleted with their project.
		if answer := s.Do(t, s.Token, http.MethodDelete, "/api/v1/deployments/acme/projects/acme/api", ""); answer.Status != http.StatusOK {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		wantList(t, "holds", holds(t, s), "1 confirmed 12/12 0 user")
	})
}

// The deployment sets limits, and a project overrides them one by one.
func TestCloseLimits(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		read := func(query string) string {
			out := &scansv1.GetCloseLimitsResponse{}
			held(t, s, s.Token, http.StatusOK, http.MethodGet, "close-limits"+query, "", out)
			e := out.GetEffective()
			return fmt.Sprintf("%v %d %d %d", e.GetOff(), e.GetAllOf(), e.GetShare(), e.GetShareOf())
		}
		upload(t, s, "main", manyOf(t, 12))
		for _, c := range []struct{ body, deployment, project string }{
			{`{"limits":{"all_of":5,"share":90}}`, "false 5 90 50", "false 5 90 50"},
			{`{"project":"acme/web","limits":{"off":true,"share":100}}`, "false 5 90 50", "true 5 100 50"},
			{`{"limits":{"share_of":20}}`, "false 5 90 20", "true 5 100 20"},
			{`{"project":"acme/web","limits":{"off":false}}`, "false 5 90 20", "false 5 100 20"},
			{`{"project":"acme/web","reset":true,"limits":{"all_of":13}}`, "false 5 90 20", "false 13 90 20"},
		} {
			limits(t, s, c.body)
			if d, p := read(""), read("?project=acme/web"); d != c.deployment || p != c.project {
				t.Errorf("after %s: %s and %s, want %s and %s", c.body, d, p, c.deployment, c.project)
			}
		}
		wantHeld(t, "12 of 12 with the limit 13", s, manyOf(t, 0), 12, 0)
		upload(t, s, "main", manyOf(t, 13))
		wantHeld(t, "13 of 13", s, manyOf(t, 0), 0, 13)
		limits(t, s, `{"project":"acme/web","limits":{"off":true}}`)
		wantHeld(t, "switched off", s, manyOf(t, 0), 13, 0)
		for body, text := range map[string]string{
			`{}`:                                 "at least one of off, all_of, share and share_of",
			`{"limits":{"share":101}}`:           "limits.share",
			`{"limits":{"all_of":-1}}`:           "limits.all_of",
			`{"limits":{"share_of":1000000001}}`: "limits.share_of",
		} {
			if answer := held(t, s, s.Token, http.StatusBadRequest, http.MethodPatch, "close-limits", body, nil); !strings.Contains(answer.Body, text) {
				t.Errorf("%s: %s, want %q", body, answer.Body, text)
			}
		}
		held(t, s, s.Token, http.StatusNotFound, http.MethodPatch, "close-limits", `{"project":"none","reset":true}`, nil)
		held(t, s, s.Token, http.StatusNotFound, http.MethodGet, "close-limits?project=none", "", nil)
		wantAudit(t, s, "close_limits", "HeldClosesService/UpdateCloseLimits")
	})
}

// A list has pages, and filters by project, ref and state.
func TestHeldClosesList(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, ref := range []string{"main", "dev", "v2"} {
			upload(t, s, ref, manyOf(t, 12))
			upload(t, s, ref, manyOf(t, 0))
		}
		upload(t, s, "v2", manyOf(t, 0))
		client, ctx := scansv1.NewHeldClosesServiceClient(s.Conn), s.Context(t, s.Token)
		list := func(r *scansv1.ListHeldClosesRequest) (ids []int64, cursor string) {
			r.DeploymentSlug = s.Slug
			out, err := client.ListHeldCloses(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range out.GetHeldCloses() {
				ids = append(ids, c.GetId())
			}
			return ids, out.GetCursor()
		}
		two := int32(2)
		first, cursor := list(&scansv1.ListHeldClosesRequest{Limit: &two})
		rest, last := list(&scansv1.ListHeldClosesRequest{Limit: &two, Cursor: cursor})
		if fmt.Sprint(first, rest) != "[3 2] [1]" || last != "" {
			t.Errorf("pages %v %v %q", first, rest, last)
		}
		for _, c := range []struct {
			r    *scansv1.ListHeldClosesRequest
			want string
		}{
			{&scansv1.ListHeldClosesRequest{State: "pending"}, "[2 1]"},
			{&scansv1.ListHeldClosesRequest{State: "confirmed"}, "[3]"},
			{&scansv1.ListHeldClosesRequest{Ref: "dev"}, "[2]"},
			{&scansv1.ListHeldClosesRequest{Ref: "refs/heads/main", Project: "acme/web"}, "[1]"},
		} {
			if got, _ := list(c.r); fmt.Sprint(got) != c.want {
				t.Errorf("%v: %v, want %s", c.r, got, c.want)
			}
		}
		for path, want := range map[string]int{
			"held-closes?project=none": http.StatusNotFound, "held-closes?state=open": http.StatusBadRequest,
			"held-closes?limit=1001": http.StatusBadRequest, "held-closes?cursor=x": http.StatusBadRequest, "held-closes/99": http.StatusNotFound,
		} {
			held(t, s, s.Token, want, http.MethodGet, path, "", nil)
		}
	})
}
