package rules_test

import (
	"context"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/ruledocument"
	"github.com/palisade/palisade/ent/tenant"
	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/rules/ruleset"
)

func TestQuarantine(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		rules := path(s.Tenant, "rules")
		c.mustDo(t, "POST", rules, importBody("", "few.yaml", few))
		inside := tenant.NewContext(t.Context(), s.DeploymentID)
		broken := []ruleset.Broken{{Name: "acme.token", Reason: "it is broken", Version: 1}, {Name: "acme.python.eval", Reason: "an older version", Version: 9}}
		err := s.Store.Write(inside, func(ctx context.Context, tx *ent.Tx) error {
			changed, err := ruleset.Quarantine(ctx, s.Store, tx, 77, broken)
			if len(changed) != 1 || changed[0].Name != "acme.token" {
				t.Errorf("quarantined: %v", changed)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, selection := range []ruleset.Selection{{}, {Origin: ruleset.OriginImport}, {Products: []string{"secrets"}}, {PartialRuleIDs: []string{"acme.token"}}} {
			if chosen, err := ruleset.Select(inside, s.Store.Reader, selection); err != nil || chosen.Versions["acme.token"] != 0 {
				t.Errorf("%+v: %v %v", selection, chosen.Versions, err)
			}
		}
		if chosen, err := ruleset.Named(inside, s.Store.Reader, "acme.token", ""); err != nil || chosen.Rules != 1 {
			t.Errorf("by its name, a person gets it: %v %v", chosen, err)
		}
		ctx := s.Context(t, s.Token)
		one := c.Get(t, path(s.Tenant, "rules?quarantined=true"))
		mustContain(t, one, `"name":"acme.token"`, `"quarantine":{"reason":"it is broken","scanId":"77","since":"`)
		yes := true
		same(t, one)(c.grpc().ListRules(ctx, &rulesv1.ListRulesRequest{DeploymentId: s.DeploymentID, Quarantined: &yes}))
		others := c.Get(t, path(s.Tenant, "rules?quarantined=false"))
		mustContain(t, others, `"name":"acme.python.eval"`, `"name":"acme/web/lodash"`)

		released := path(s.Tenant, "released-rules")
		reader := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "reader", Role: access.RoleReadOnly})
		c.Body(t, reader, "POST", released, `{"names":["acme.token"]}`, 403)
		c.Body(t, s.Token, "POST", released, `{"names":[]}`, 400)
		answer, err := c.grpc().ReleaseRules(ctx, &rulesv1.ReleaseRulesRequest{DeploymentId: s.DeploymentID, Names: []string{"acme.token", "acme.python.eval"}})
		if err != nil || len(answer.GetRules()) != 2 || answer.GetRules()[1].GetQuarantine() != nil {
			t.Fatalf("%v %v", answer, err)
		}
		same(t, c.mustDo(t, "POST", released, `{"names":["acme.token","acme.python.eval"]}`))(answer, nil)
		if chosen, err := ruleset.Select(inside, s.Store.Reader, ruleset.Selection{}); err != nil || chosen.Versions["acme.token"] == 0 {
			t.Errorf("after the release: %v %v", chosen.Versions, err)
		}
		if some, err := ruleset.CanQuarantine(inside, s.Store.Reader, broken[:1]); err != nil || some {
			t.Errorf("a report overrules a person: %v", err)
		}
		if row := s.Store.Reader.RuleDocument.Query().Where(ruledocument.Name("acme.python.eval")).OnlyX(s.System(t)); row.ProvenVersion != 0 {
			t.Errorf("a rule that was not in quarantine is proven: %v", row)
		}
	})
}

// TestQuarantineIsBounded: reports alone cannot turn off many rules.
func TestQuarantineIsBounded(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		c.mustDo(t, "POST", path(s.Tenant, "rules"), importBody("", "few.yaml", few))
		inside := tenant.NewContext(t.Context(), s.DeploymentID)
		err := s.Store.Write(inside, func(ctx context.Context, tx *ent.Tx) error {
			for i := range ruleset.MaxQuarantined {
				err := tx.RuleDocument.Create().SetDeploymentID(s.DeploymentID).SetName("acme.r" + string(rune('A'+i))).SetOrigin("import").SetProduct("sast").SetSeverity("LOW").
					SetLanguages([]string{"go"}).SetMode("block").SetVersion(1).SetQuarantinedVersion(1).SetCreatedAt(1).SetUpdatedAt(1).Exec(ctx)
				if err != nil {
					return err
				}
			}
			changed, err := ruleset.Quarantine(ctx, s.Store, tx, 1, []ruleset.Broken{{Name: "acme.token", Version: 1}})
			if len(changed) > 0 {
				t.Errorf("one more is quarantined: %v", changed)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
