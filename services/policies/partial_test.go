package policies_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
)

// memberOf makes a team of a project of the first deployment, and returns a token of its member.
func (s caller) memberOf(t testing.TB, projectName string) string {
	t.Helper()
	s.AddUser(t, s.Tenant, "kai@acme.test", access.RoleMember)
	err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		now := store.Now()
		team := tx.Team.Create().SetName("one").SetSlug("one").SetCreatedAt(now).SetUpdatedAt(now).SaveX(ctx)
		id := tx.Project.Query().Where(project.Name(projectName)).OnlyIDX(ctx)
		tx.TeamProject.Create().SetTeamID(team.ID).SetProjectID(id).SetCreatedAt(now).SaveX(ctx)
		who := tx.User.Query().Where(user.Email("kai@acme.test")).OnlyIDX(tenant.System(ctx))
		return tx.TeamMember.Create().SetTeamID(team.ID).SetUserID(who).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(now).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	who := s.Store.Reader.User.Query().Where(user.Email("kai@acme.test")).OnlyIDX(s.System(t))
	return s.AddToken(t, s.Tenant, access.TokenSpec{Name: "member", Role: access.RoleReadOnly, UserID: who, Scopes: []access.Scope{access.ScopeWebAPI}})
}

// TestPartialDetectionPolicy: who does not see all projects reads a bundle that says so. Nobody can apply it, and the
// reader can compare it, and the whole one, with the server.
func TestPartialDetectionPolicy(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		member := s.memberOf(t, "acme/web")
		const hidden = `{"exception_type":"exclude","project":"acme/api","rule":"acme.eval","rule_type":"rule"},
			{"exception_type":"exclude","project_tag_name":"acme-pci","rule":"acme.exec","rule_type":"rule"}`
		const shown = `{"exception_type":"exclude","project":"acme/web","rule":"acme.eval","rule_type":"rule"}`
		whole := `{"rulesets":["default"],"exceptions":[` + hidden + `,` + shown + `]}`
		s.apply(t, "code", whole, 200)
		full := s.Get(t, s.detectionPath("code"))
		if strings.Contains(full, "partial") {
			t.Errorf("the administrator's bundle is partial: %s", full)
		}
		partial := s.want(t, 200, member, http.MethodGet, s.detectionPath("code"), "", "", `"partial":true`, "acme/web")
		if strings.Contains(partial, "acme/api") || strings.Contains(partial, "acme-pci") || version(t, partial) == version(t, full) {
			t.Errorf("the member reads %s", partial)
		}
		s.want(t, 200, member, http.MethodGet, path(s.Tenant, "detection-policy"), "", "", `"partial":true`)

		// An administrator's apply would delete the exceptions that the bundle lacks.
		own := bundleOf(t, partial)
		s.apply(t, "code", own, 400, "partial", "does not see all projects")
		for _, match := range []string{"*", version(t, partial)} {
			s.Body(t, s.Token, http.MethodPut, s.detectionPath("code"), `{"bundle":`+own+`}`, 400+9*btoi(match != "*"), "If-Match", match)
		}
		if got := s.preview(t, "code", own); !strings.Contains(got, `"field":"partial"`) {
			t.Errorf("the administrator's dry run says %s", got)
		}
		if got := s.Get(t, s.detectionPath("code")); got != full {
			t.Errorf("the policy is now %s", got)
		}

		dry := func(bundle string, holds ...string) string {
			t.Helper()
			return s.want(t, 200, member, http.MethodPost, s.detectionPath("code")+":dryRun", `{"bundle":`+bundle+`}`, "", holds...)
		}
		const none = `{"creates":[],"updates":[],"deletes":[],"state_version"`
		for _, bundle := range []string{own, whole} {
			if got := dry(bundle, `"validation_errors":[]`, `"code":"PARTIAL"`); !strings.HasPrefix(got, none) {
				t.Errorf("%s: %s", bundle, got)
			}
		}
		dry(whole, `exceptions[0].project: there is no project \"acme/api\", or you do not see it`, `no project_tag \"acme-pci\"`)
		dry(`{"rulesets":["default"]}`, `"deletes":[{"kind":"detection_policy_exception"`)
		// A hidden project and one that does not exist look alike.
		at := `{"exceptions":[{"exception_type":"exclude","project":"acme/NAME","rule":"acme.eval","rule_type":"rule"}]}`
		hide, gone := dry(strings.ReplaceAll(at, "NAME", "api")), dry(strings.ReplaceAll(at, "NAME", "xxx"))
		if strings.ReplaceAll(hide, "acme/api", "acme/xxx") != gone {
			t.Errorf("%s\n%s", hide, gone)
		}
	})
}

// TestPartialRemediationPolicies is the same for remediation policies: their conditions lack what is hidden.
func TestPartialRemediationPolicies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		member := s.memberOf(t, "acme/web")
		policies := `[{"name":"Some projects","active":true,"filters":{"mode":"any","conditions":[
			{"type":"repository","values":["acme/api","acme/web"]},
			{"type":"project","values":["acme/api"],"mode":"exclude"},
			{"type":"project_tag","values":["acme-pci"]},
			{"type":"rule","values":["acme.G401","acme.eval"]}]},"actions":[{"type":"block"}]}]`
		full := s.put(t, policies, 200)
		partial := s.want(t, 200, member, http.MethodGet, s.remediation(), "", "", `"partial":true`, `"acme/web"`, `"acme.eval"`, `"values":[]`)
		for _, name := range []string{"acme/api", "acme-pci", "G401"} {
			if strings.Contains(partial, name) {
				t.Errorf("the member reads %s in %s", name, partial)
			}
		}
		own := bundleOf(t, partial)
		s.want(t, 400, s.Token, http.MethodPut, s.remediation(), `{"bundle":`+own+`}`, "*", "does not see all projects")
		s.want(t, 409, s.Token, http.MethodPut, s.remediation(), `{"bundle":`+own+`}`, version(t, partial))
		s.want(t, 200, s.Token, http.MethodPost, s.remediation()+":dryRun", `{"bundle":`+own+`}`, "", `"field":"partial"`)
		if got := s.Get(t, s.remediation()); got != full {
			t.Errorf("the policies are now %s", got)
		}
		for what, bundle := range map[string]string{"its own": own, "the whole": `{"policies":` + policies + `}`} {
			got := s.want(t, 200, member, http.MethodPost, s.remediation()+":dryRun", `{"bundle":`+bundle+`}`, "", `"code":"PARTIAL"`, `"validation_errors":[]`)
			if !strings.HasPrefix(got, `{"creates":[],"updates":[],"deletes":[]`) {
				t.Errorf("%s: %s", what, got)
			}
			s.want(t, 200, member, http.MethodPost, s.remediation()+":backTest", `{"bundle":`+bundle+`}`, "", `"code":"PARTIAL"`, `"validation_errors":[]`)
		}
		other := func(name string) string {
			return s.want(t, 200, member, http.MethodPost, s.remediation()+":dryRun",
				strings.ReplaceAll(`{"bundle":{"policies":`+policies+`}}`, "acme/api", name), "")
		}
		if hide, gone := other("acme/api"), other("acme/xxx"); strings.ReplaceAll(hide, "acme/api", "acme/xxx") != gone {
			t.Errorf("%s\n%s", hide, gone)
		}
		// Without teams nothing is hidden, and words that do not exist are refused.
		s.want(t, 200, s.Token, http.MethodPost, s.remediation()+":dryRun", strings.ReplaceAll(`{"bundle":{"policies":`+policies+`}}`, "acme/api", "acme/xxx"), "", "UNKNOWN_REFERENCE")
	})
}

func btoi(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
