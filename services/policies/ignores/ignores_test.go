package ignores_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

func TestPatterns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		ctx := s.Context(t, s.admin)
		wants := func(want string) {
			t.Helper()
			got := s.do(t, http.MethodGet, "", "", 200)
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			answer, err := s.client.GetDeploymentProductIgnores(ctx, &policiesv1.GetDeploymentProductIgnoresRequest{DeploymentId: s.DeploymentID})
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, answer, got)
		}
		sast := func(patterns ...string) string { return `{"productIgnores":[` + listOf("SAST", patterns...) + `]}` }
		wants(`{"productIgnores":[]}`)
		if got := s.do(t, http.MethodPost, "", `{"productIgnores":[`+listOf("SAST", "vendor/", "*.min.js", "vendor/")+","+listOf("SECRETS", "testdata/")+`]}`, 200); got != "{}" {
			t.Errorf("got %s", got)
		}
		wants(`{"productIgnores":[{"product":"PRODUCT_SAST","ignores":["*.min.js","vendor/"]},{"product":"PRODUCT_SECRETS","ignores":["testdata/"]}]}`)
		s.do(t, http.MethodPost, "", sast("vendor/", "!vendor/ours/"), 200)
		wants(`{"productIgnores":[{"product":"PRODUCT_SAST","ignores":["*.min.js","vendor/","!vendor/ours/"]},{"product":"PRODUCT_SECRETS","ignores":["testdata/"]}]}`)
		_, err := s.client.UpdateDeploymentProductIgnores(ctx, &policiesv1.UpdateDeploymentProductIgnoresRequest{
			DeploymentId: s.DeploymentID, ProductIgnores: []*policiesv1.ProductIgnores{
				{Product: scansv1.Product_PRODUCT_SAST, Ignores: []string{"gen/"}}, {Product: scansv1.Product_PRODUCT_AI_SAST, Ignores: []string{"docs/"}},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		wants(`{"productIgnores":[{"product":"PRODUCT_SAST","ignores":["gen/"]},{"product":"PRODUCT_SECRETS","ignores":["testdata/"]},` +
			`{"product":"PRODUCT_AI_SAST","ignores":["docs/"]}]}`)
		s.do(t, http.MethodPatch, "", `{"productIgnores":[`+listOf("SECRETS")+`]}`, 200)
		s.do(t, http.MethodDelete, "?product=PRODUCT_AI_SAST", "", 200)
		s.do(t, http.MethodDelete, "?product=PRODUCT_SCA", "", 200)
		wants(`{"productIgnores":[{"product":"PRODUCT_SAST","ignores":["gen/"]}]}`)
		if _, err := s.client.DeleteDeploymentProductIgnores(ctx, &policiesv1.DeleteDeploymentProductIgnoresRequest{DeploymentId: s.DeploymentID}); err != nil {
			t.Fatal(err)
		}
		wants(`{"productIgnores":[]}`)
		apitest.Golden(t, "audit", s.changes(t))
	})
}

// changes lists the changes of patterns in the audit trail.
func (s caller) changes(t testing.TB) string {
	t.Helper()
	var lines []string
	for _, entry := range s.Store.Reader.AuditEntry.Query().Order(ent.Asc(auditentry.FieldID)).AllX(s.own(t)) {
		for _, change := range entry.Changes {
			lines = append(lines, change.Kind+" "+change.ID+": "+string(change.Before)+" -> "+string(change.After))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		var many []string
		for i := range 501 {
			many = append(many, fmt.Sprint("p", i))
		}
		for body, says := range map[string]string{
			`{}`:                                     "productIgnores must not be empty",
			`{"productIgnores":[]}`:                  "productIgnores must not be empty",
			`{"productIgnores":[{"ignores":["a"]}]}`: "productIgnores[0].product",
			`{"productIgnores":[{"product":"PRODUCT_X","ignores":["a"]}]}`:                  "PRODUCT_X",
			`{"productIgnores":[` + listOf("SAST", "ok", "[a") + `]}`:                       `productIgnores[0].ignores[1] must be a pattern of a .gitignore file: a [ has no ]; got`,
			`{"productIgnores":[` + listOf("SAST", "ok") + "," + listOf("SCA", "#a") + `]}`: "productIgnores[1].ignores[0] must be a pattern of a .gitignore file: it is a comment",
			`{"productIgnores":[` + listOf("SAST", "") + `]}`:                               "it is blank",
			`{"productIgnores":[{"product":"PRODUCT_SAST","ignores":["a\u0000"]}]}`:         "U+0000",
			`{"productIgnores":[` + listOf("SAST", "a\nb") + `]}`:                           "one line",
			`{"productIgnores":[` + listOf("SAST", strings.Repeat("ü", 501)) + `]}`:         "1000 bytes",
			`{"productIgnores":[` + listOf("SAST", many...) + `]}`:                          "at most 500",
			`{"productIgnores":[` + listOf("SAST", "a") + "," + listOf("SAST", "b") + `]}`:  "two lists of PRODUCT_SAST",
		} {
			for _, request := range []struct{ method, more string }{{http.MethodPost, ""}, {http.MethodPatch, ""}, {http.MethodPost, ":preview"}} {
				if got := s.do(t, request.method, request.more, body, 400); !strings.Contains(got, says) {
					t.Errorf("%.80s: %s does not say %s", body, got, says)
				}
			}
		}
		s.do(t, http.MethodPost, "", `{"productIgnores":[`+listOf("SAST", many[:500]...)+`]}`, 200)
		if got := s.do(t, http.MethodPost, "", `{"productIgnores":[`+listOf("SAST", "one more")+`]}`, 400); !strings.Contains(got, "sast would have 501") {
			t.Errorf("got %s", got)
		}
		s.do(t, http.MethodDelete, "?product=PRODUCT_X", "", 400)
	})
}

// TestAccess: API tokens are refused. Members and readers see the patterns, and only administrators change them. Other
// deployments are not found.
func TestAccess(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		body := `{"productIgnores":[` + listOf("SAST", "vendor/") + `]}`
		other := s.AddTenant(t, "other")
		for _, of := range []struct {
			name, token  string
			read, change int
		}{
			{"token", s.Token, 403, 403}, {"admin", s.admin, 200, 200}, {"stranger", s.AddUser(t, other, "x@other.test", access.RoleAdmin), 404, 404},
			{"member", s.AddUser(t, s.Tenant, "m@acme.test", access.RoleMember), 200, 403},
			{"reader", s.AddUser(t, s.Tenant, "r@acme.test", access.RoleReadOnly), 200, 403}, {"nobody", "", 401, 401},
		} {
			for _, request := range []struct {
				method, more, body string
				want               int
			}{
				{http.MethodGet, "", "", of.read}, {http.MethodPost, ":preview", body, of.read}, {http.MethodPost, "", body, of.change},
				{http.MethodPatch, "", body, of.change}, {http.MethodDelete, "", "", of.change},
			} {
				if got := s.Do(t, of.token, request.method, pathOf(s.Tenant)+request.more, request.body); got.Status != request.want {
					t.Errorf("%s: %s %s: %d %s, want %d", of.name, request.method, request.more, got.Status, got.Body, request.want)
				}
			}
		}
	})
}

// TestPreviewOfATeam counts only the projects of the caller's teams.
func TestPreviewOfATeam(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.upload(t, web, "vendor/a.go")
		s.upload(t, "acme/other", "vendor/x.go", "vendor/y.go")
		member := s.AddUser(t, s.Tenant, "kai@acme.test", access.RoleMember)
		err := s.Store.Write(s.own(t), func(ctx context.Context, tx *ent.Tx) error {
			now := store.Now()
			team := tx.Team.Create().SetName("web").SetSlug("web").SetCreatedAt(now).SetUpdatedAt(now).SaveX(ctx)
			id := tx.Project.Query().Where(project.Name(web)).OnlyIDX(ctx)
			tx.TeamProject.Create().SetTeamID(team.ID).SetProjectID(id).SetCreatedAt(now).SaveX(ctx)
			who := tx.User.Query().Where(user.Email("kai@acme.test")).OnlyIDX(tenant.System(ctx))
			return tx.TeamMember.Create().SetTeamID(team.ID).SetUserID(who).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(now).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		body := `{"productIgnores":[` + listOf("SAST", "vendor/") + `]}`
		for token, want := range map[string]string{member: `"wouldIgnore":1`, s.admin: `"wouldIgnore":3`} {
			if got := s.Body(t, token, http.MethodPost, pathOf(s.Tenant)+":preview", body, 200); !strings.Contains(got, want) {
				t.Errorf("want %s in %s", want, got)
			}
		}
	})
}
