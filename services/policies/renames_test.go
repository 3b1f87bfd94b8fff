package policies_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
)

// rename gives the project and the tag other names.
func (s caller) rename(t testing.TB) {
	t.Helper()
	s.Body(t, s.Token, http.MethodPatch, fmt.Sprintf("/api/agent/deployments/%d/repos/acme/web", s.DeploymentID), `{"name":"acme/site"}`, 200)
	s.Body(t, s.Token, http.MethodPut, fmt.Sprintf("/api/agent/deployments/%d/tags/acme-pci", s.DeploymentID), `{"name":"acme-card"}`, 200)
}

// TestRenamedObjects: policies name a project and a tag by their new names, and go on blocking.
func TestRenamedObjects(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.put(t, "["+critical+","+secrets+`,{"name":"Others","active":true,"actions":[{"type":"block"}],"filters":{"mode":"all","conditions":[
			{"type":"repository","values":[" acme/web "],"mode":"none"},{"type":"repository_tag","values":["acme-pci"],"mode":"any"}]}}]`, 200)
		s.rename(t)
		got := policiesOf(t, s.Get(t, s.remediation()))
		for _, want := range []string{
			`{"type":"severity","values":["Critical","high","critical"]`, `{"type":"project","values":["acme/site"],"mode":"include"}`,
			`{"type":"repository","values":["acme/site"],"mode":"none"}`, `{"type":"repository_tag","values":["acme-card"],"mode":"any"}`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in %s", want, got)
			}
		}
		if dry := s.dry(t, got); !strings.Contains(dry, `"updates":[]`) || !strings.Contains(dry, `"validation_errors":[]`) {
			t.Errorf("what was read is not what is stored: %s", dry)
		}
		if report := s.Upload(t, "acme/site", "main", reportOf("sql error")); !strings.Contains(report, `"block_reason":"policy No critical findings: 1 finding (Ask #appsec)"`) {
			t.Errorf("a report of the renamed project: %s", report)
		}
		if changes := changesOf(t, s); strings.Count(changes, "remediation_policy no-critical: ") != 2 {
			t.Errorf("audited: %s", changes)
		}
	})
}

// TestRuleAlias: a policy about a rule counts for its new name, and for rules of other tools with the old one.
func TestRuleAlias(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.Upload(t, "acme/web", "main", reportOf("sql error"))
		s.put(t, `[{"name":"No SQL","active":true,"actions":[{"type":"block"}],"filters":{"mode":"all","conditions":[{"type":"rule","values":["sql"]}]}},
			{"name":"Others","active":true,"actions":[{"type":"comment"}],"filters":{"mode":"all","conditions":[{"type":"rule","values":["sql"],"mode":"exclude"}]}}]`, 200)
		s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/rules/v1/deployments/%d/aliases", s.DeploymentID), `{"tool":"lint","name":"sql","canonical":"sql-injection"}`, 200)
		if got := s.Get(t, s.remediation()); strings.Count(got, `"values":["sql","sql-injection"]`) != 2 {
			t.Errorf("policies %s", got)
		}
		if report := s.Upload(t, "acme/web", "main", reportOf("sql-injection error")); !strings.Contains(report, `"block_reason":"policy No SQL: 1 finding"`) {
			t.Errorf("a report with the new name: %s", report)
		}
	})
}

// TestRenamesActOnce: a new name is no other policy, so what the policy has done counts.
func TestRenamesActOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.put(t, `[{"name":"Review","active":true,"actions":[{"type":"set_state","config":{"state":"reviewing"}}],
			"filters":{"mode":"all","conditions":[{"type":"project","values":["acme/web"]}]}}]`, 200)
		ctx := tenant.NewContext(t.Context(), s.DeploymentID)
		of := s.acting(t)
		err := s.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			return tx.PolicyAct.Create().SetProjectID(1).SetPolicyID(of.ID()).SetAction("set_state").SetIssueType("sast").SetFingerprint("a").
				SetVersion(of.Version()).SetAt(store.Now()).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.rename(t)
		renamed := s.acting(t)
		if act := s.Store.Reader.PolicyAct.Query().OnlyX(ctx); act.Version != renamed.Version() || renamed.Version() == of.Version() || renamed.UpdatedAt() != of.UpdatedAt() {
			t.Errorf("the act counts for %s, the policy was %+v and is %+v", act.Version, of, renamed)
		}
	})
}

// acting returns the only policy with actions for jobs.
func (s caller) acting(t testing.TB) remediation.Policy {
	t.Helper()
	policies, err := remediation.LoadActing(tenant.NewContext(t.Context(), s.DeploymentID), s.Store.Reader)
	if err != nil || len(policies) != 1 {
		t.Fatalf("%d policies: %v", len(policies), err)
	}
	return policies[0]
}
