package rules_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/rules/starter"
)

func TestImport(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		rules := path(s.Tenant, "rules")
		apitest.Golden(t, "import_dry_run", c.mustDo(t, "POST", rules, importBody(`,"dryRun":true`, "few.yaml", few)))
		apitest.Golden(t, "import", c.mustDo(t, "POST", rules, importBody("", "few.yaml", few)))
		apitest.Golden(t, "list", c.Get(t, rules))
		apitest.Golden(t, "get", c.Get(t, path(s.Tenant, "rules/acme.python.eval")))
		slashes := c.Get(t, path(s.Tenant, "rules/acme/web/lodash"))
		apitest.Golden(t, "get_slashes", slashes)
		if escaped := c.Get(t, path(s.Tenant, "rules/acme%2Fweb%2Flodash")); escaped != slashes {
			t.Errorf("an escaped name: %s", escaped)
		}
		ctx := s.Context(t, s.Token)
		check := same(t, slashes)
		check(c.grpc().GetRule(ctx, &rulesv1.GetRuleRequest{DeploymentId: s.DeploymentID, RuleName: "acme/web/lodash"}))

		// The same rules in JSON with reordered keys are the same rules.
		again := `{"rules":[{"pattern":"eval($X)","id":"acme.python.eval","severity":"ERROR","message":"Do not evaluate <input> & such.","languages":["python"],
			"metadata":{"semgrep.dev":{"rule":{"origin":"pro_rules"}},"cvss":7.50,"category":"security","dev.semgrep.actions":["block"]}}]}`
		mustContain(t, c.mustDo(t, "POST", rules, importBody(`,"mode":"RULE_MODE_BLOCK"`, "again.json", again)), `"unchanged":1`, `"mode":"RULE_MODE_MONITOR"`)
		changed := c.mustDo(t, "POST", rules, importBody("", "changed.yaml", strings.Replace(few, "7.50", "7.5", 1)))
		apitest.Golden(t, "import_changed", changed)
		apitest.Golden(t, "get_changed", c.Get(t, path(s.Tenant, "rules/acme.python.eval")))
		mustContain(t, c.mustDo(t, "POST", rules, importBody(`,"mode":"block"`, "new.yaml", "rules:\n"+python("acme.new", "x"))), `"mode":"RULE_MODE_BLOCK"`, `"created":1`)
		if got := c.changes(t)["rule"]; got != 5 {
			t.Errorf("%d changes are in the audit trail, want 5", got)
		}
	})
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		rules := path(s.Tenant, "rules")
		bad := strings.Replace(few, "severity: HIGH", "severity: High", 1)
		apitest.Golden(t, "import_bad", c.Body(t, s.Token, "POST", rules, importBody("", "few.yaml", bad), 400))
		mustContain(t, c.Body(t, s.Token, "POST", rules, importBody("", "a.yaml", few, "b.yaml", few), 400),
			"b.yaml:2: rule acme.python.eval: the id is there already, in a.yaml:2 (and 2 more problems)")
		var many strings.Builder
		many.WriteString("rules:\n")
		for i := range 100 {
			fmt.Fprintf(&many, "- id: r%d\n", i)
		}
		mustContain(t, c.Body(t, s.Token, "POST", rules, importBody("", "many.yaml", many.String()), 400), "many.yaml:2: rule r0: languages is missing", "(and 399 more problems)")
		for body, want := range map[string]string{
			`{}`: "files must not be empty", `{"files":[]}`: "files must not be empty",
			importBody(`,"mode":"RULE_MODE_LOUD"`, "few.yaml", few): "mode", importBody(`,"mode":17`, "few.yaml", few): "mode",
			importBody("", strings.Repeat("x", 1025), few): "files[0].name must have at most 1024 characters",
			importBody("", "few.yaml", ""):                 "few.yaml:1: the file is empty",
		} {
			mustContain(t, c.Body(t, s.Token, "POST", rules, body, 400), want)
		}
		if n := s.Store.Reader.RuleDocument.Query().CountX(s.System(t)); n != 0 {
			t.Fatalf("%d rules of refused imports are stored", n)
		}
		apitest.Golden(t, "import_skip_bad", c.mustDo(t, "POST", rules, importBody(`,"skipBad":true`, "few.yaml", bad)))
		if n := s.Store.Reader.RuleVersion.Query().CountX(s.System(t)); n != 2 {
			t.Errorf("%d versions are stored, want 2", n)
		}
	})
}

// Three thousand rules are one import; importing them again changes nothing.
func TestImportMany(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		var files []string
		for f := range 3 {
			var source strings.Builder
			source.WriteString("rules:\n")
			for i := range 1000 {
				source.WriteString(python(fmt.Sprintf("acme.many.r%d-%d", f, i), fmt.Sprintf("f%d($X)", i)))
			}
			files = append(files, fmt.Sprintf("%d.yaml", f), source.String())
		}
		counts := func(body string) [3]int {
			t.Helper()
			var got struct{ Created, Updated, Unchanged int }
			if err := json.Unmarshal([]byte(c.mustDo(t, "POST", path(s.Tenant, "rules"), body)), &got); err != nil {
				t.Fatal(err)
			}
			return [3]int{got.Created, got.Updated, got.Unchanged}
		}
		if got := counts(importBody("", files...)); got != [3]int{3000, 0, 0} {
			t.Errorf("first: %v", got)
		}
		if got := counts(importBody("", files...)); got != [3]int{0, 0, 3000} {
			t.Errorf("again: %v", got)
		}
		files[1] = strings.ReplaceAll(files[1], "Do not.", "Never.")
		if got := counts(importBody("", files...)); got != [3]int{0, 1000, 2000} {
			t.Errorf("a third changed: %v", got)
		}
		var auto struct {
			Config struct{ Rules []json.RawMessage } `json:"rule_config"`
		}
		if err := json.Unmarshal([]byte(c.Get(t, "/c/auto")), &auto); err != nil || len(auto.Config.Rules) != 3000 {
			t.Errorf("a scanner gets %d rules (%v)", len(auto.Config.Rules), err)
		}
	})
}

// Eight concurrent identical imports create each rule once.
func TestImportsAtOnce(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		var mu sync.Mutex
		var total struct{ Created, Updated, Unchanged int }
		var importing sync.WaitGroup
		for range 8 {
			importing.Go(func() {
				answer := s.Do(t, s.Token, "POST", path(s.Tenant, "rules"), importBody("", "few.yaml", few))
				mu.Lock()
				defer mu.Unlock()
				var got struct{ Created, Updated, Unchanged int }
				if err := json.Unmarshal([]byte(answer.Body), &got); err != nil || answer.Status != 200 {
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
				total.Created, total.Updated, total.Unchanged = total.Created+got.Created, total.Updated+got.Updated, total.Unchanged+got.Unchanged
			})
		}
		importing.Wait()
		if total.Created != 3 || total.Updated != 0 || total.Unchanged != 21 {
			t.Errorf("%+v", total)
		}
		if got := c.changes(t)["rule"]; got != 3 {
			t.Errorf("%d changes are in the audit trail, want 3", got)
		}
	})
}

// A deployment that never had a rule gets the product's rules at the first request, once, also with concurrent
// requests. Deleted rules do not come back by themselves.
func TestStarterRules(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		shipped, err := starter.Rules()
		if err != nil {
			t.Fatal(err)
		}
		var asking sync.WaitGroup
		for i := range 8 {
			asking.Go(func() {
				target := []string{path(s.Tenant, "rules"), "/c/auto"}[i%2]
				if answer := s.Do(t, s.Token, "GET", target, ""); answer.Status != 200 || !strings.Contains(answer.Body, shipped[0].Name) {
					t.Errorf("%d %.300s", answer.Status, answer.Body)
				}
			})
		}
		asking.Wait()
		rows := s.Store.Reader.RuleDocument.Query().AllX(s.System(t))
		if len(rows) != len(shipped) {
			t.Fatalf("%d rules, want %d", len(rows), len(shipped))
		}
		for _, row := range rows {
			if row.Mode != "comment" || row.Origin != "starter" || row.Version != 1 {
				t.Errorf("%+v", row)
			}
		}
		if got := c.changes(t)["rule"]; got != len(shipped) {
			t.Errorf("%d changes are in the audit trail, want %d", got, len(shipped))
		}
		first, second := shipped[0].Name, shipped[1].Name
		c.mustDo(t, "DELETE", path(s.Tenant, "rules/"+first), "")
		mine := strings.Replace("rules:\n"+python("X", "mine"), "X", second, 1)
		mustContain(t, c.mustDo(t, "POST", path(s.Tenant, "rules"), importBody("", "mine.yaml", mine)), `"updated":1`, `"RULE_MODE_COMMENT"`)
		if strings.Contains(c.Get(t, "/c/auto"), text(first)) {
			t.Error("a deleted rule came back")
		}
		restored := c.mustDo(t, "POST", path(s.Tenant, "starter-rules"), "")
		mustContain(t, restored, `"created":1,"updated":0,`)
		mustContain(t, c.Get(t, path(s.Tenant, "rules/"+second)), `"pattern":"mine"`, `"RULE_ORIGIN_IMPORT"`)

		rival := s.AddTenant(t, "rival")
		mustContain(t, c.Body(t, rival.Token, "GET", path(rival, "rules?limit=1"), "", 200), `"cursor":"A`)
		if n := s.Store.Reader.RuleDocument.Query().CountX(s.System(t)); n != 2*len(shipped) {
			t.Errorf("%d rules of two deployments, want %d", n, 2*len(shipped))
		}
	})
}

func TestList(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		c.mustDo(t, "POST", path(s.Tenant, "rules"), importBody("", "few.yaml", few))
		c.mustDo(t, "PATCH", path(s.Tenant, "rules"), `{"names":["acme.token"],"mode":"RULE_MODE_OFF"}`)
		names := func(query string) string {
			t.Helper()
			var got []string
			for cursor := ""; ; {
				var page struct {
					Rules  []struct{ Name string }
					Cursor string
				}
				answer := c.Get(t, path(s.Tenant, "rules?"+query+"&cursor="+url.QueryEscape(cursor)))
				if err := json.Unmarshal([]byte(answer), &page); err != nil {
					t.Fatal(err)
				}
				for _, rule := range page.Rules {
					got = append(got, rule.Name)
				}
				if cursor = page.Cursor; cursor == "" {
					return strings.Join(got, " ")
				}
			}
		}
		for query, want := range map[string]string{
			"":        "acme.python.eval acme/web/lodash acme.token",
			"limit=1": "acme.python.eval acme/web/lodash acme.token",
			"products=RULE_PRODUCT_SCA&products=RULE_PRODUCT_SECRETS": "acme/web/lodash acme.token",
			"products=sast":           "acme.python.eval",
			"modes=off":               "acme.token",
			"modes=monitor,block":     "acme.python.eval acme/web/lodash",
			"origins=import":          "acme.python.eval acme/web/lodash acme.token",
			"origins=starter":         "",
			"language=TS":             "acme/web/lodash",
			"language=javascript":     "acme/web/lodash",
			"language=go":             "",
			"query=ACME/":             "acme/web/lodash",
			"query=%25":               "",
			"query=e&modes=off":       "acme.token",
			"language=py&query=token": "",
		} {
			if got := names(query); got != want {
				t.Errorf("%s: got %q, want %q", query, got, want)
			}
		}
		for query, want := range map[string]string{
			"limit=1001": "limit", "limit=-1": "limit", "cursor=x": "INVALID_CURSOR", "language=klingon": "language must be one of", "products=RULE_PRODUCT_DAST": "products", "modes=9": "modes",
		} {
			mustContain(t, c.Body(t, s.Token, "GET", path(s.Tenant, "rules?"+query), "", 400), want)
		}
		first := c.Get(t, path(s.Tenant, "rules?limit=1"))
		var page struct{ Cursor string }
		if err := json.Unmarshal([]byte(first), &page); err != nil {
			t.Fatal(err)
		}
		mustContain(t, c.Body(t, s.Token, "GET", path(s.Tenant, "rules?query=x&cursor="+page.Cursor), "", 400), "INVALID_CURSOR")
		check := same(t, first)
		check(c.grpc().ListRules(s.Context(t, s.Token), &rulesv1.ListRulesRequest{DeploymentId: s.DeploymentID, Limit: 1}))
	})
}

func TestModesAndDelete(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		rules := path(s.Tenant, "rules")
		c.mustDo(t, "POST", rules, importBody("", "few.yaml", few))
		apitest.Golden(t, "modes", c.mustDo(t, "PATCH", rules, `{"names":["acme/web/lodash","acme.python.eval","acme.python.eval"],"mode":"RULE_MODE_BLOCK"}`))
		apitest.Golden(t, "modes_unknown", c.Body(t, s.Token, "PATCH", rules, `{"names":["acme.token","acme.nothing"],"mode":"RULE_MODE_BLOCK"}`, 404))
		mustContain(t, c.Get(t, path(s.Tenant, "rules/acme.token")), `"mode":"RULE_MODE_MONITOR"`)
		before := c.changes(t)["rule"]
		c.mustDo(t, "PATCH", rules, `{"names":["acme/web/lodash"],"mode":"block"}`)
		if got := c.changes(t)["rule"]; got != before {
			t.Errorf("a mode that was there already is %d changes", got-before)
		}
		for body, want := range map[string]string{
			`{"names":[],"mode":"block"}`: "names must not be empty", `{"names":["a"]}`: "mode is required", `{"names":["a"],"mode":"loud"}`: "mode",
		} {
			mustContain(t, c.Body(t, s.Token, "PATCH", rules, body, 400), want)
		}
		apitest.Golden(t, "delete", c.mustDo(t, "DELETE", path(s.Tenant, "rules/acme/web/lodash"), ""))
		for _, method := range []string{"GET", "DELETE"} {
			apitest.Golden(t, "not_found", c.Body(t, s.Token, method, path(s.Tenant, "rules/acme/web/lodash"), "", 404))
		}
		// A new rule with the name of a deleted one starts again.
		mustContain(t, c.mustDo(t, "POST", rules, importBody("", "few.yaml", few)), `"created":1,"updated":0,"unchanged":2`)
		mustContain(t, c.Get(t, path(s.Tenant, "rules/acme/web/lodash")), `"mode":"RULE_MODE_MONITOR"`, `"version":1`)
	})
}

// Callers who are not administrators can read and not change; callers of other deployments see nothing.
func TestAccess(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := caller{s}
		c.mustDo(t, "POST", path(s.Tenant, "rules"), importBody("", "few.yaml", few))
		alias := c.mustDo(t, "POST", path(s.Tenant, "aliases"), `{"tool":"gosec","name":"G1","canonical":"G2"}`)
		var created struct{ Alias struct{ ID string } }
		if err := json.Unmarshal([]byte(alias), &created); err != nil {
			t.Fatal(err)
		}
		changes := [][3]string{
			{"POST", "rules", importBody("", "few.yaml", strings.ReplaceAll(few, "ERROR", "LOW"))}, {"PATCH", "rules", `{"names":["acme.token"],"mode":"off"}`},
			{"DELETE", "rules/acme.token", ""}, {"POST", "starter-rules", ""}, {"POST", "aliases", `{"tool":"gosec","name":"G3","canonical":"G2"}`},
			{"DELETE", "aliases/" + created.Alias.ID, ""},
		}
		reads := []string{"rules", "rules/acme.token", "aliases"}
		readOnly := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "reader", Role: access.RoleReadOnly})
		member := s.AddUser(t, s.Tenant, "dana@acme.test", access.RoleMember)
		agent := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "ci", Scopes: []access.Scope{access.ScopeAgent}})
		rival := s.AddTenant(t, "rival")
		for _, token := range []string{readOnly, member} {
			for _, change := range changes {
				c.Body(t, token, change[0], path(s.Tenant, change[1]), change[2], 403)
			}
			for _, read := range reads {
				c.Body(t, token, "GET", path(s.Tenant, read), "", 200)
			}
		}
		for _, token := range []string{agent, rival.Token} {
			for _, change := range changes {
				c.Body(t, token, change[0], path(s.Tenant, change[1]), change[2], 404)
			}
			for _, read := range reads {
				c.Body(t, token, "GET", path(s.Tenant, read), "", 404)
			}
		}
		for _, target := range []string{"rules/acme.token", "aliases/" + created.Alias.ID} {
			if method := []string{"GET", "DELETE"}[slices.Index([]string{"r", "a"}, target[:1])]; true {
				c.Body(t, rival.Token, method, path(rival, target), "", 404)
			}
		}
		c.Body(t, rival.Token, "PATCH", path(rival, "rules"), `{"names":["acme.token"],"mode":"off"}`, 404)
		mustContain(t, c.Get(t, path(s.Tenant, "rules/acme.token")), `"version":1`, `"RULE_MODE_MONITOR"`)
		if got := c.Get(t, path(s.Tenant, "aliases")); !strings.Contains(got, `"name":"G1"`) || strings.Contains(got, "G3") {
			t.Errorf("%s", got)
		}
	})
}
