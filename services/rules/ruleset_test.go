package rules_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/rules/ruleset"
)

func TestSelect(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		c.mustDo(t, "POST", path(s.Tenant, "rules"), importBody("", "few.yaml", few))
		ctx := tenant.NewContext(t.Context(), s.DeploymentID)
		for _, test := range []struct {
			selection      ruleset.Selection
			names, product string
		}{
			{ruleset.Selection{}, "acme.python.eval acme.token acme/web/lodash", "sast sca secrets"},
			{ruleset.Selection{Products: []string{"sca", "secrets"}}, "acme.token acme/web/lodash", "sca secrets"},
			{ruleset.Selection{PartialRuleIDs: []string{"acme.token", "acme.nothing"}}, "acme.token", "secrets"},
			{ruleset.Selection{PartialRuleIDs: []string{"acme.nothing"}}, "", ""},
			{ruleset.Selection{Products: []string{"sast"}, PartialRuleIDs: []string{"acme.token"}}, "", ""},
			{ruleset.Selection{ClientVersion: "1.49.9"}, "acme.python.eval acme.token", "sast secrets"},
			{ruleset.Selection{ClientVersion: "1.50.0"}, "acme.python.eval acme.token acme/web/lodash", "sast sca secrets"},
			{ruleset.Selection{ClientVersion: "1.99.0"}, "acme.python.eval acme.token acme/web/lodash", "sast sca secrets"},
			{ruleset.Selection{ClientVersion: "1.173.0"}, "acme.python.eval acme.token", "sast secrets"},
			{ruleset.Selection{ClientVersion: "unknown"}, "acme.python.eval acme.token acme/web/lodash", "sast sca secrets"},
		} {
			got, err := ruleset.Select(ctx, s.Store.Reader, test.selection)
			if err != nil {
				t.Fatal(err)
			}
			var document struct{ Rules []struct{ ID string } }
			if err := json.Unmarshal(got.JSON, &document); err != nil || !strings.HasPrefix(string(got.JSON), `{"rules":[`) {
				t.Fatalf("%v %s", err, got.JSON)
			}
			var names []string
			for _, rule := range document.Rules {
				names = append(names, rule.ID)
				if got.Versions[rule.ID] == 0 {
					t.Errorf("%s has no version", rule.ID)
				}
			}
			slices.Sort(names)
			if strings.Join(names, " ") != test.names || strings.Join(got.Products, " ") != test.product || got.Rules != len(names) || len(got.Versions) != len(names) {
				t.Errorf("%+v: %v %v %d", test.selection, names, got.Products, got.Rules)
			}
		}
		if _, err := ruleset.Select(context.Background(), s.Store.Reader, ruleset.Selection{}); err == nil {
			t.Error("rules are chosen without a deployment")
		}
	})
}

// Scanners get the stored rules, even if they change often and quickly; a deployment without rules gets none.
func TestSelectSeesEveryChange(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		ctx := tenant.NewContext(t.Context(), s.DeploymentID)
		pick := func() string {
			t.Helper()
			got, err := ruleset.Select(ctx, s.Store.Reader, ruleset.Selection{BaseURL: "https://palisade.acme.test/"})
			if err != nil {
				t.Fatal(err)
			}
			return string(got.JSON)
		}
		if got := pick(); got != `{"rules":[]}` {
			t.Errorf("no rules: %s", got)
		}
		rules := path(s.Tenant, "rules")
		c.mustDo(t, "POST", rules, importBody("", "few.yaml", few))
		mustContain(t, pick(), `"url":"https://palisade.acme.test/api/rules/v1/deployments/1/rules/acme/web/lodash"`)
		for i := range 30 {
			mode := []string{"block", "monitor", "comment"}[i%3]
			c.mustDo(t, "PATCH", rules, fmt.Sprintf(`{"names":["acme.token"],"mode":%q}`, mode))
			slug := map[string]string{"block": "rule-board-block", "monitor": "rule-board-audit", "comment": "rule-board-pr-comments"}[mode]
			got := pick()
			if validity := strings.Contains(got, "validation_state"); mode != "monitor" && !strings.Contains(got, slug) || validity != (mode == "block") {
				t.Fatalf("%d: %s: %s", i, mode, got)
			}
		}
		c.mustDo(t, "POST", rules, importBody("", "few.yaml", strings.Replace(few, "A token.", "One token.", 1)))
		mustContain(t, pick(), "One token.")
		c.mustDo(t, "DELETE", path(s.Tenant, "rules/acme.token"), "")
		if strings.Contains(pick(), "acme.token") {
			t.Error("a deleted rule is sent")
		}
	})
}

// Many concurrent scans read the rules correctly.
func TestSelectAtOnce(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		c.mustDo(t, "POST", path(s.Tenant, "rules"), importBody("", "few.yaml", few))
		ctx := tenant.NewContext(t.Context(), s.DeploymentID)
		var scanning sync.WaitGroup
		for range 20 {
			scanning.Go(func() {
				if got, err := ruleset.Select(ctx, s.Store.Reader, ruleset.Selection{Products: []string{"sast"}}); err != nil || got.Rules != 1 {
					t.Errorf("%d %v", got.Rules, err)
				}
			})
		}
		scanning.Wait()
	})
}

// BenchmarkSelect measures a scan of a deployment with 3,000 rules and a warm cache.
func BenchmarkSelect(b *testing.B) {
	s := apitest.Start(b, nil)
	var source strings.Builder
	source.WriteString("rules:\n")
	for i := range 3000 {
		source.WriteString(python(fmt.Sprintf("acme.many.r%d", i), "f($X)"))
	}
	if answer := s.Do(b, s.Token, "POST", path(s.Tenant, "rules"), importBody("", "many.yaml", source.String())); answer.Status != 200 {
		b.Fatal(answer.Body)
	}
	ctx := tenant.NewContext(b.Context(), s.DeploymentID)
	for b.Loop() {
		if got, err := ruleset.Select(ctx, s.Store.Reader, ruleset.Selection{}); err != nil || got.Rules != 3000 {
			b.Fatal(err)
		}
	}
}
