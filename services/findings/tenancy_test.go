package findings_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/privacy"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
)

// seedTwoTenants creates projects, rules and findings with the same names and identities in two deployments.
func seedTwoTenants(t *testing.T, s *apitest.Server) (ours, theirs *fixture) {
	t.Helper()
	projects := map[string]func(*ent.ProjectCreate){"acme/web": nil}
	ours = seedFixture(t, s, s.Tenant, projects)
	theirs = seedFixture(t, s, s.AddTenant(t, "rival"), projects)
	for i, l := range []*fixture{ours, theirs} {
		l.seed(t, s,
			fact{label: fmt.Sprintf("code%d", i), print: "same"},
			fact{label: fmt.Sprintf("branch%d", i), print: "same", ref: "refs/heads/dev"},
			fact{label: fmt.Sprintf("secret%d", i), print: "secret", kind: "secrets", rule: "aws.key"})
	}
	return ours, theirs
}

// The error for another tenant's deployment equals the error for a missing deployment.
func TestForeignDeployment(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		_, theirs := seedTwoTenants(t, s)
		body := `{"issue_type":"sast","new_triage_state":"ignored","issue_ids":` + idList(t, theirs, "code1") + `}`
		for _, c := range []struct{ method, path, absent, body string }{
			{http.MethodGet, "/api/v1/deployments/rival/findings", "/api/v1/deployments/nobody/findings", ""},
			{http.MethodGet, secretsPath(theirs.Tenant), secretsPath(apitest.Tenant{DeploymentID: 987}), ""},
			{http.MethodPost, "/api/v1/deployments/rival/triage", "/api/v1/deployments/nobody/triage", body},
		} {
			foreign := failure(t, s, http.StatusNotFound, c.method, c.path, c.body)
			absent := failure(t, s, http.StatusNotFound, c.method, c.absent, c.body)
			name := func(body string) string {
				return strings.NewReplacer("rival", "X", "nobody", "X", fmt.Sprint(theirs.DeploymentID), "X", "987", "X").Replace(body)
			}
			if name(foreign) != name(absent) {
				t.Errorf("%s:\nforeign %s\nabsent  %s", c.path, foreign, absent)
			}
		}
		if row := stored(t, s, theirs, "code1"); row.TriageState != "untriaged" {
			t.Errorf("a foreign finding is %s", row.TriageState)
		}
	})
}

// Names, ids and identities of another tenant select nothing, and triage does not spread to them.
func TestForeignNamesAndIDs(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ours, theirs := seedTwoTenants(t, s)
		if got := labels(t, s, ""); got != "code0 branch0" {
			t.Errorf("our list: %s", got)
		}
		if got := labels(t, s, "dedup=true&repos=acme/web&rules=py.sqli&ref=_default"); got != "code0" {
			t.Errorf("our filtered list: %s", got)
		}
		if got := labels(t, s, fmt.Sprintf("repository_ids=%d", theirs.projects["acme/web"])); got != "" {
			t.Errorf("by a foreign project: %s", got)
		}
		if got, _ := secretsOf(t, s, ours, ""); got != "secret0" {
			t.Errorf("our secrets: %s", got)
		}
		answer := s.Do(t, theirs.Token, http.MethodGet, "/api/v1/deployments/rival/findings?dedup=true", "")
		if strings.Contains(answer.Body, "code0") || !strings.Contains(answer.Body, "branch1") {
			t.Errorf("their list: %s", answer.Body)
		}

		if got := triage(t, s, ours, `"issue_type":"sast","new_triage_state":"ignored","issue_ids":`+idList(t, theirs, "code1 branch1")); got != "" {
			t.Errorf("by foreign ids: %s", got)
		}
		ids := append(ours.ids(t, "code0"), theirs.ids(t, "code1")...)
		if got := triage(t, s, ours, fmt.Sprintf(`"issue_type":"sast","new_triage_state":"ignored","issue_ids":[%d,%d]`, ids[0], ids[1])); got != "code0 branch0" {
			t.Errorf("by our and foreign ids: %s", got)
		}
		if got := triage(t, s, ours, `"issue_type":"sast","new_triage_state":"fixing"`); got != "code0 branch0" {
			t.Errorf("by filter: %s", got)
		}
		for _, label := range []string{"code1", "branch1"} {
			if row := stored(t, s, theirs, label); row.TriageState != "untriaged" || len(events(t, s, theirs, label)) != 0 {
				t.Errorf("their %s is %s", label, row.TriageState)
			}
		}
		tags := `"issue_type":"sast","new_note":"x","project_tags":["theirs"]`
		addTag(t, s, theirs, "acme/web", "theirs")
		if got := triage(t, s, ours, tags); got != "" {
			t.Errorf("by a foreign tag: %s", got)
		}
	})
}

func addTag(t *testing.T, s *apitest.Server, l *fixture, project, name string) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		tag, err := tx.Tag.Create().SetDeploymentID(l.DeploymentID).SetName(name).SetCreatedAt(base).Save(ctx)
		if err != nil {
			return err
		}
		return tx.ProjectTag.Create().SetDeploymentID(l.DeploymentID).SetProjectID(l.projects[project]).SetTagID(tag.ID).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The store enforces tenant isolation: code without a tenant gets nothing, and code with another tenant gets an error.
func TestTenantIsolationOfTheStore(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ours, theirs := seedTwoTenants(t, s)
		inOurs := tenant.NewContext(t.Context(), ours.DeploymentID)
		foreign := theirs.ids(t, "code1 branch1 secret1")

		if _, err := s.Store.Reader.Finding.Query().All(t.Context()); !errors.Is(err, privacy.Deny) {
			t.Errorf("a query without a tenant: %v", err)
		}
		if n, err := s.Store.Reader.Finding.Query().Where(finding.IDIn(foreign...)).Count(inOurs); n != 0 || err != nil {
			t.Errorf("a query by foreign ids: %d rows, %v", n, err)
		}
		if n, err := s.Store.Reader.Finding.Query().Where(finding.DeploymentID(theirs.DeploymentID)).Count(inOurs); n != 0 || err != nil {
			t.Errorf("a query for another deployment: %d rows, %v", n, err)
		}
		if n, err := s.Store.Reader.Finding.Query().Where(finding.Or(finding.IDIn(foreign...), finding.StatusNEQ(""))).Count(inOurs); n != 3 || err != nil {
			t.Errorf("an OR around tenant isolation: %d rows, %v", n, err)
		}
		for what, change := range map[string]func(context.Context, *ent.Tx) (int, error){
			"update": func(ctx context.Context, tx *ent.Tx) (int, error) {
				return tx.Finding.Update().Where(finding.IDIn(foreign...)).SetStatus("x").Save(ctx)
			},
			"delete": func(ctx context.Context, tx *ent.Tx) (int, error) {
				return tx.Finding.Delete().Where(finding.IDIn(foreign...)).Exec(ctx)
			},
		} {
			if n, err := written(inOurs, s, change); n != 0 || err != nil {
				t.Errorf("bulk %s of foreign rows: %d rows, %v", what, n, err)
			}
			if _, err := written(t.Context(), s, change); !errors.Is(err, privacy.Deny) {
				t.Errorf("bulk %s without a tenant: %v", what, err)
			}
		}
		for what, change := range map[string]func(context.Context, *ent.Tx) (int, error){
			"update": func(ctx context.Context, tx *ent.Tx) (int, error) {
				return 1, tx.Finding.UpdateOneID(foreign[0]).SetStatus("x").Exec(ctx)
			},
			"delete": func(ctx context.Context, tx *ent.Tx) (int, error) {
				return 1, tx.Finding.DeleteOneID(foreign[0]).Exec(ctx)
			},
		} {
			if _, err := written(inOurs, s, change); !ent.IsNotFound(err) {
				t.Errorf("%s of one foreign row: %v", what, err)
			}
		}
		create := func(ctx context.Context, tx *ent.Tx) (int, error) {
			return 1, theirs.row(t, tx.Finding.Create(), fact{label: "planted"}).Exec(ctx)
		}
		bulk := func(ctx context.Context, tx *ent.Tx) (int, error) {
			return 2, tx.Finding.CreateBulk(ours.row(t, tx.Finding.Create(), fact{label: "one"}), theirs.row(t, tx.Finding.Create(), fact{label: "two"})).Exec(ctx)
		}
		for what, change := range map[string]func(context.Context, *ent.Tx) (int, error){"create": create, "bulk create": bulk} {
			if _, err := written(inOurs, s, change); !errors.Is(err, privacy.Deny) {
				t.Errorf("%s in another deployment: %v", what, err)
			}
		}
		if n := s.Store.Reader.Finding.Query().CountX(s.System(t)); n != 6 {
			t.Errorf("%d findings, want 6", n)
		}
	})
}

func written(ctx context.Context, s *apitest.Server, change func(context.Context, *ent.Tx) (int, error)) (n int, err error) {
	err = s.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err = change(ctx, tx)
		return err
	})
	return n, err
}
