package rules_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent"
	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// alias creates an alias of gosec and requires a status.
func (c caller) alias(t *testing.T, name, canonical string, want int) string {
	t.Helper()
	return c.Body(t, c.Token, "POST", path(c.Tenant, "aliases"), fmt.Sprintf(`{"tool":"gosec","name":%q,"canonical":%q}`, name, canonical), want)
}

// pairs lists the aliases of a tool, by id.
func (c caller) pairs(t *testing.T, query string) string {
	t.Helper()
	var got struct {
		Aliases []struct{ Name, Canonical string }
	}
	if err := json.Unmarshal([]byte(c.Get(t, path(c.Tenant, "aliases?"+query))), &got); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, a := range got.Aliases {
		out = append(out, a.Name+">"+a.Canonical)
	}
	return strings.Join(out, " ")
}

func TestAliases(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		apitest.Golden(t, "alias", c.alias(t, "b", "c", 200))
		c.alias(t, "a", "b", 200) // b is an alias: a points to b's target
		c.alias(t, "c", "d", 200) // a and b now point to d
		if got := c.pairs(t, ""); got != "b>d a>d c>d" {
			t.Errorf("%s", got)
		}
		for _, test := range []struct{ name, canonical, golden string }{{"d", "d", "alias_self"}, {"d", "a", "alias_cycle"}} {
			apitest.Golden(t, test.golden, c.alias(t, test.name, test.canonical, 400))
		}
		apitest.Golden(t, "alias_taken", c.alias(t, "a", "x", 409))
		// Names of another tool are independent.
		c.mustDo(t, "POST", path(s.Tenant, "aliases"), `{"tool":"bandit","name":"d","canonical":"a"}`)
		if got := c.pairs(t, "tool=gosec&canonical=d"); got != "b>d a>d c>d" {
			t.Errorf("%s", got)
		}
		list := c.Get(t, path(s.Tenant, "aliases?limit=1&tool=gosec"))
		var page struct{ Cursor string }
		if err := json.Unmarshal([]byte(list), &page); err != nil || page.Cursor == "" {
			t.Fatal(list)
		}
		check := same(t, list)
		check(c.grpc().ListRuleAliases(s.Context(t, s.Token), &rulesv1.ListRuleAliasesRequest{DeploymentId: s.DeploymentID, Limit: 1, Tool: "gosec"}))
		if got := c.pairs(t, "limit=5&tool=gosec&cursor="+page.Cursor); got != "a>d c>d" {
			t.Errorf("%s", got)
		}
		c.Body(t, s.Token, "GET", path(s.Tenant, "aliases?tool=bandit&cursor="+page.Cursor), "", 400)
		for body, want := range map[string]string{
			`{"name":"a","canonical":"b"}`:                                            "tool must not be empty",
			`{"tool":"x","canonical":"b"}`:                                            "name must not be empty",
			`{"tool":"x","name":"a"}`:                                                 "canonical must not be empty",
			`{"tool":"x","name":"a\u0000","canonical":"b"}`:                           "name",
			`{"tool":"x","name":"` + strings.Repeat("n", 1025) + `","canonical":"b"}`: "name must have at most 1024 characters",
		} {
			mustContain(t, c.Body(t, s.Token, "POST", path(s.Tenant, "aliases"), body, 400), want)
		}
		rows := s.Store.Reader.RuleAlias.Query().Order(ent.Asc("id")).AllX(s.System(t))
		apitest.Golden(t, "alias_delete", c.mustDo(t, "DELETE", path(s.Tenant, fmt.Sprintf("aliases/%d", rows[0].ID)), ""))
		c.Body(t, s.Token, "DELETE", path(s.Tenant, fmt.Sprintf("aliases/%d", rows[0].ID)), "", 404)
		c.Body(t, s.Token, "DELETE", path(s.Tenant, "aliases/x"), "", 404)
		// Four were created and one deleted; two were redirected because c is an alias.
		if got := c.changes(t)["rule_alias"]; got != 7 {
			t.Errorf("%d changes are in the audit trail, want 7", got)
		}
	})
}

// Concurrently created aliases never point to each other.
func TestAliasesAtOnce(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		var creating sync.WaitGroup
		for i := range 12 {
			creating.Go(func() {
				body := fmt.Sprintf(`{"tool":"gosec","name":"r%d","canonical":"r%d"}`, i, i+1)
				if answer := s.Do(t, s.Token, "POST", path(s.Tenant, "aliases"), body); answer.Status != 200 {
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
			})
		}
		creating.Wait()
		for _, row := range s.Store.Reader.RuleAlias.Query().AllX(s.System(t)) {
			if row.Canonical != "r12" {
				t.Errorf("%s leads to %s", row.Name, row.Canonical)
			}
		}
	})
}
