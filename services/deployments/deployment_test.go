package deployments_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmapp"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

func TestGetDeployment(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		other := s.AddTenant(t, "umbrella")
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		ctx := s.Context(t, s.Token)

		body := s.admin(t, http.MethodGet, s.of(""), "")
		apitest.Golden(t, "get", body)
		same(t, body)(client.GetDeployment(ctx, &deploymentsv1.GetDeploymentRequest{DeploymentId: s.DeploymentID}))

		byToken := s.admin(t, http.MethodGet, "/api/agent/deployment", "")
		if byToken != body {
			t.Errorf("by token it is %s, want %s", byToken, body)
		}
		same(t, byToken)(client.GetDeploymentByToken(ctx, &deploymentsv1.GetDeploymentByTokenRequest{}))

		current := s.admin(t, http.MethodGet, "/api/agent/deployments/current", "")
		apitest.Golden(t, "current", current)
		same(t, current)(client.GetCurrentDeployment(ctx, &deploymentsv1.GetCurrentDeploymentRequest{}))

		role := s.admin(t, http.MethodGet, s.of("/default_user_role"), "")
		apitest.Golden(t, "default_user_role", role)
		same(t, role)(client.GetDeploymentDefaultUserRole(ctx, &deploymentsv1.GetDeploymentDefaultUserRoleRequest{DeploymentId: s.DeploymentID}))

		for _, path := range []string{"", "/default_user_role", "/github_app_status", "/users", "/products", "/tags"} {
			s.refuses(t, http.StatusNotFound, other.Token, http.MethodGet, s.of(path), "", "deployment not found")
		}
		s.refuses(t, http.StatusNotFound, s.Token, http.MethodGet, "/api/agent/deployments/999999", "", "deployment not found")
		s.refuses(t, http.StatusNotFound, s.Token, http.MethodGet, "/api/agent/deployments/acme", "", "is a whole number")
		code(t, codes.NotFound)(client.GetDeployment(s.Context(t, other.Token), &deploymentsv1.GetDeploymentRequest{DeploymentId: s.DeploymentID}))
	})
}

func TestScmNameOfDeployment(t *testing.T) {
	s := caller{apitest.Start(t, nil)}
	s.write(t, func(ctx context.Context, tx *ent.Tx) error {
		now := store.Now()
		return tx.ScmConfig.Create().SetType("SCM_TYPE_GITHUB").SetNamespace("acme-git").SetBaseURL("https://github.com").
			SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
	})
	if body := s.admin(t, http.MethodGet, s.of(""), ""); !strings.Contains(body, `"scm_name":"acme-git"`) {
		t.Errorf("got %s", body)
	}
}

func TestUpdateDeployment(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		body := s.admin(t, http.MethodPatch, s.of(""), `{"displayName":" Acme Österreich ","defaultUserRole":"ORG_ROLE_MEMBER"}`)
		apitest.Golden(t, "update", body)
		same(t, body)(client.UpdateDeployment(s.Context(t, s.Token), &deploymentsv1.UpdateDeploymentRequest{DeploymentId: s.DeploymentID}))
		if role := s.admin(t, http.MethodGet, s.of("/default_user_role"), ""); role != `{"defaultUserRole":"ORG_ROLE_MEMBER"}` {
			t.Errorf("the default role is %s", role)
		}
		longest := strings.Repeat("ö", 255)
		if body := s.admin(t, http.MethodPatch, s.of(""), `{"displayName":"`+longest+`"}`); !strings.Contains(body, longest) {
			t.Errorf("a name of 255 characters: %s", body)
		}
		for name, c := range map[string][2]string{
			"blank":        {`{"displayName":"  "}`, "displayName must not be blank"},
			"too long":     {`{"displayName":"` + longest + `o"}`, "displayName must have at most 255 characters, got 256"},
			"unknown role": {`{"displayName":"x","defaultUserRole":"ORG_ROLE_KING"}`, "ORG_ROLE_KING"},
			"role number":  {`{"displayName":"x","defaultUserRole":77}`, "defaultUserRole"},
		} {
			t.Log(name)
			s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPatch, s.of(""), c[0], c[1])
		}
		// An empty string in a JSON body counts as absent, because clients send whole structs (contract facts, section 1).
		for _, body := range []string{`{}`, `{"displayName":"","defaultUserRole":""}`, `{"displayName":null}`} {
			if got := s.admin(t, http.MethodPatch, s.of(""), body); !strings.Contains(got, longest) {
				t.Errorf("%s, or something that was refused, changed it to %s", body, got)
			}
		}
		empty := ""
		code(t, codes.InvalidArgument)(client.UpdateDeployment(s.Context(t, s.Token),
			&deploymentsv1.UpdateDeploymentRequest{DeploymentId: s.DeploymentID, DisplayName: &empty}))
		reader := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember})
		s.refuses(t, http.StatusForbidden, reader, http.MethodPatch, s.of(""), `{"displayName":"x"}`, "ORG_ROLE_ADMIN")
	})
}

func TestToggles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		ctx, yes, no := s.Context(t, s.Token), true, false
		for _, c := range []struct{ path, field string }{
			{"/has_triage_via_comment", "hasTriageViaComment"},
			{"/has_deepsemgrep", "has_deepsemgrep"},
			{"/has_deep_engine", "has_deepsemgrep"},
			{"/has_dependency_query", "hasDependencyQuery"},
		} {
			for _, value := range []string{"true", "false"} {
				want := fmt.Sprintf(`{"%s":%s}`, c.field, value)
				if got := s.admin(t, http.MethodPost, s.of(c.path), want); got != want {
					t.Errorf("POST %s: %s, want %s", c.path, got, want)
				}
			}
			s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPost, s.of(c.path), `{}`, c.field+" is required")
			s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPost, s.of(c.path), `{"`+c.field+`":"perhaps"}`, c.field)
			member := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember})
			s.refuses(t, http.StatusForbidden, member, http.MethodPost, s.of(c.path), `{"`+c.field+`":true}`, "ORG_ROLE_ADMIN")
		}
		same(t, `{"hasTriageViaComment":true}`)(client.UpdateDeploymentHasTriageViaComment(ctx,
			&deploymentsv1.UpdateDeploymentHasTriageViaCommentRequest{DeploymentId: s.DeploymentID, HasTriageViaComment: &yes}))
		same(t, `{"has_deepsemgrep":true}`)(client.UpdateDeploymentHasDeepsemgrep(ctx,
			&deploymentsv1.UpdateDeploymentHasDeepsemgrepRequest{DeploymentId: s.DeploymentID, HasDeepsemgrep: &yes}))
		same(t, `{"hasDependencyQuery":false}`)(client.UpdateDeploymentHasDependencyQuery(ctx,
			&deploymentsv1.UpdateDeploymentHasDependencyQueryRequest{DeploymentId: s.DeploymentID, HasDependencyQuery: &no}))
		code(t, codes.InvalidArgument)(client.UpdateDeploymentHasTriageViaComment(ctx,
			&deploymentsv1.UpdateDeploymentHasTriageViaCommentRequest{DeploymentId: s.DeploymentID}))
		apitest.Golden(t, "get_toggled", s.admin(t, http.MethodGet, s.of(""), ""))
	})
}

// TestPathDecides: the deployment in the body is ignored; the path counts.
func TestPathDecides(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		other := s.AddTenant(t, "umbrella")
		before := s.Do(t, other.Token, http.MethodGet, "/api/agent/deployment", "").Body
		for _, id := range []string{fmt.Sprint(other.DeploymentID), fmt.Sprintf(`"%d"`, other.DeploymentID)} {
			for _, c := range []struct{ method, path, body string }{
				{http.MethodPatch, "", `"displayName":"Taken over"`},
				{http.MethodPost, "/has_triage_via_comment", `"hasTriageViaComment":true`},
				{http.MethodPut, "/tags/pci", `"name":""`},
				{http.MethodPut, "/products", `"ai":{"enabled":true}`},
				{http.MethodPost, "/users/list", `"filters":{}`},
				{http.MethodPost, "/tags/find", `"includeCounts":true`},
				{http.MethodPost, "/products/feedback", `"featureAction":"x"`},
			} {
				body := s.admin(t, c.method, s.of(c.path), `{"deploymentId":`+id+`,`+c.body+`}`)
				if strings.Contains(body, "umbrella") {
					t.Errorf("%s %s shows the other deployment: %s", c.method, c.path, body)
				}
			}
			path := fmt.Sprintf("/api/agent/deployments/%d/has_triage_via_comment", other.DeploymentID)
			body := fmt.Sprintf(`{"deploymentId":%d,"hasTriageViaComment":true}`, s.DeploymentID)
			s.refuses(t, http.StatusNotFound, s.Token, http.MethodPost, path, body, "deployment not found")
		}
		if after := s.Do(t, other.Token, http.MethodGet, "/api/agent/deployment", "").Body; after != before {
			t.Errorf("the other deployment became %s, was %s", after, before)
		}
		if tags := s.Do(t, other.Token, http.MethodGet, fmt.Sprintf("/api/agent/deployments/%d/tags", other.DeploymentID), "").Body; strings.Contains(tags, "pci") {
			t.Errorf("the other deployment has the tags %s", tags)
		}
	})
}

func TestAuthorizedActions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		for role, want := range map[access.Role]string{
			access.RoleAdmin:        `{"authorized_actions":["deployment:read","findings:triage","scans:upload","settings:manage","teams:manage"]}`,
			access.RoleMember:       `{"authorized_actions":["deployment:read","findings:triage","scans:upload","teams:manage"]}`,
			access.RoleImpersonator: `{"authorized_actions":["deployment:read","findings:triage"]}`,
			access.RoleReadOnly:     `{"authorized_actions":["deployment:read"]}`,
		} {
			_, jwt := s.person(t, strings.ToLower(string(role))+"@acme.test", role)
			if got := s.want(t, http.StatusOK, jwt, http.MethodGet, s.of("/authorized_actions"), ""); got != want {
				t.Errorf("%s: %s, want %s", role, got, want)
			}
			same(t, want)(client.GetDeploymentAuthorizedActions(s.Context(t, jwt),
				&deploymentsv1.GetDeploymentAuthorizedActionsRequest{DeploymentId: s.DeploymentID}))
		}
		s.refuses(t, http.StatusForbidden, s.Token, http.MethodGet, s.of("/authorized_actions"), "", "JSON Web Token")
	})
}

func TestGitHubAppStatus(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		ask := func(query, want string) {
			t.Helper()
			if got := s.admin(t, http.MethodGet, s.of("/github_app_status"+query), ""); got != `{"github_app_status":`+want+`}` {
				t.Errorf("%q: %s, want %s", query, got, want)
			}
		}
		ask("", "false")
		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			now := store.Now()
			return tx.ScmApp.Create().SetRequestID("r-1").SetState("pending").SetScmType("SCM_TYPE_GITHUB").SetBaseURL("https://github.com").
				SetNamespace("acme").SetCreatedBy(1).SetCreatedAt(now).SetExpiresAt(now + 1e9).Exec(ctx)
		})
		ask("", "false")
		s.write(t, func(ctx context.Context, tx *ent.Tx) error { return tx.ScmApp.Update().SetState("complete").Exec(ctx) })
		ask("", "true")
		ask("?withCodeAccess=True", "false")
		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			return tx.ScmApp.Update().Where(scmapp.RequestID("r-1")).SetCodeAccess(true).Exec(ctx)
		})
		ask("?withCodeAccess=1", "true")
	})
}

func TestFeedback(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		path := s.of("/products/feedback")
		if got := s.admin(t, http.MethodPost, path, `{"featureAction":"sca_disabled","feedback":"Too many findings"}`); got != `{}` {
			t.Errorf("got %s", got)
		}
		same(t, `{}`)(client.SendDeploymentToggleFeedback(s.Context(t, s.Token),
			&deploymentsv1.SendDeploymentToggleFeedbackRequest{DeploymentId: s.DeploymentID, FeatureAction: "sca_enabled"}))
		rows := s.Store.Reader.ProductFeedback.Query().AllX(s.System(t))
		if len(rows) != 2 || rows[0].Feedback != "Too many findings" || rows[0].ActorKind != "token" || rows[0].DeploymentID != s.DeploymentID {
			t.Errorf("stored %v", rows)
		}
		s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPost, path, `{"feedback":"x"}`, "featureAction must not be empty")
		long := strings.Repeat("x", 3001)
		s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPost, path, `{"featureAction":"x","feedback":"`+long+`"}`, "at most 3000 characters, got 3001")
		if n := s.Store.Reader.ProductFeedback.Query().CountX(s.System(t)); n != 2 {
			t.Errorf("%d rows after what was refused", n)
		}
	})
}

func TestCreateDeployment(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		_, admin := s.person(t, "chief@acme.test", access.RoleAdmin)
		const path = "/api/agent/deployments"
		apitest.Golden(t, "create", s.want(t, http.StatusCreated, admin, http.MethodPost, path, `{"deploymentName":" Acme Labs "}`))
		apitest.Golden(t, "create_again", s.want(t, http.StatusCreated, admin, http.MethodPost, path, `{"deploymentName":"ACME labs"}`))
		third, err := client.CreateDeployment(s.Context(t, admin), &deploymentsv1.CreateDeploymentRequest{DeploymentName: "acme labs!"})
		if err != nil || third.GetDeployment().GetSlug() != "acme-labs-3" {
			t.Errorf("the third is %v, %v", third, err)
		}
		long := s.want(t, http.StatusCreated, admin, http.MethodPost, path, `{"deploymentName":"`+strings.Repeat("ö", 255)+`"}`)
		if slug := strings.Repeat("o", 63); !strings.Contains(long, `"slug":"`+slug+`"`) {
			t.Errorf("a long name gives %s", long)
		}

		own := fmt.Sprintf("/api/agent/deployments/%d/authorized_actions", third.GetDeployment().GetId())
		if got := s.want(t, http.StatusOK, admin, http.MethodGet, own, ""); !strings.Contains(got, "settings:manage") {
			t.Errorf("the creator may %s", got)
		}
		s.refuses(t, http.StatusNotFound, s.Token, http.MethodGet, strings.TrimSuffix(own, "/authorized_actions"), "", "deployment not found")

		_, member := s.person(t, "dev@acme.test", access.RoleMember)
		_, stranger := s.person(t, "stranger@acme.test", "")
		for _, jwt := range []string{member, stranger} {
			s.refuses(t, http.StatusForbidden, jwt, http.MethodPost, path, `{"deploymentName":"Mine"}`, "only an administrator of a deployment")
		}
		s.refuses(t, http.StatusForbidden, s.Token, http.MethodPost, path, `{"deploymentName":"Mine"}`, "JSON Web Token")
		s.refuses(t, http.StatusBadRequest, admin, http.MethodPost, path, `{}`, "deploymentName must not be empty")
		s.refuses(t, http.StatusBadRequest, admin, http.MethodPost, path, `{"deploymentName":" ?! "}`, "letter or a digit")
		s.refuses(t, http.StatusBadRequest, admin, http.MethodPost, path, `{"deploymentName":"`+strings.Repeat("x", 256)+`"}`, "at most 255 characters, got 256")
		if n := s.Store.Reader.Deployment.Query().CountX(s.System(t)); n != 5 {
			t.Errorf("there are %d deployments, want 5", n)
		}
	})
}

// TestCreateDeploymentsAtOnce: concurrent requests with equal names get different slugs.
func TestCreateDeploymentsAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		client := deploymentsv1.NewDeploymentServiceClient(s.Conn)
		_, admin := s.person(t, "chief@acme.test", access.RoleAdmin)
		const calls = 4
		slugs := make(chan string, calls)
		for range calls {
			go func() {
				created, err := client.CreateDeployment(s.Context(t, admin), &deploymentsv1.CreateDeploymentRequest{DeploymentName: "Acme Labs"})
				if err != nil {
					t.Error(err)
				}
				slugs <- created.GetDeployment().GetSlug()
			}()
		}
		seen := map[string]bool{}
		for range calls {
			seen[<-slugs] = true
		}
		for _, want := range []string{"acme-labs", "acme-labs-2", "acme-labs-3", "acme-labs-4"} {
			if !seen[want] {
				t.Errorf("nobody got %s: %v", want, seen)
			}
		}
	})
}
