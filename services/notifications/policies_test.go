package notifications_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

func (c caller) policies(more string) string {
	return fmt.Sprintf("/api/policies/v2/deployments/%d/remediation-policies%s", c.DeploymentID, more)
}

// apply replaces the remediation policies.
func (c caller) apply(t testing.TB, policies ...string) {
	t.Helper()
	c.Body(t, c.Token, http.MethodPut, c.policies(""), bundleOf(policies...), 200, "If-Match", "*")
}

func bundleOf(policies ...string) string {
	return `{"bundle":{"policies":[` + strings.Join(policies, ",") + `]}}`
}

// policy is an active policy that blocks; filters is its mode and its conditions.
func policy(slug, filters string) string {
	return fmt.Sprintf(`{"slug":%q,"name":%q,"active":true,"filters":{%s},"actions":[{"type":"block"}]}`, slug, slug, filters)
}

func all(conditions string) string { return `"mode":"all","conditions":[` + conditions + `]` }

// seedNames creates a project with a tag, and a rule, which policies can name before the first scan.
func (c caller) seedNames(t testing.TB) {
	t.Helper()
	c.Upload(t, "acme/web", "main", report())
	err := c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		of, err := tx.Project.Query().Where(project.Name("acme/web")).Only(ctx)
		if err != nil {
			return err
		}
		tag, err := tx.Tag.Create().SetDeploymentID(of.DeploymentID).SetName("pci").SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		if err := tx.ProjectTag.Create().SetDeploymentID(of.DeploymentID).SetProjectID(of.ID).SetTagID(tag.ID).Exec(ctx); err != nil {
			return err
		}
		return tx.Rule.Create().SetDeploymentID(of.DeploymentID).SetTool("gosec").SetName("go.critical").SetCategory("security").
			SetConfidence("high").SetContent([]byte{}).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// graded is a report with one result per name. The name of a rule is also the severity of its results.
func graded(severity string, names ...string) []byte {
	score := map[string]string{"critical": "9.8", "high": "8.1", "medium": "5.0", "low": "2.0"}[severity]
	confidence := map[string]string{"critical": "high", "high": "medium"}[severity]
	rule := fmt.Sprintf(`{"id":"go.%s","properties":{"security-severity":%q,"precision":%q,"category":"security"}}`, severity, score, confidence)
	text := strings.ReplaceAll(string(report(names...)), `"ruleId":"go.sqli","level":"error"`, fmt.Sprintf(`"ruleId":"go.%s"`, severity))
	return []byte(strings.Replace(text, `"version":"2.21"`, `"version":"2.21","rules":[`+rule+`]`, 1))
}

// idle waits until all events are in the ledger.
func (c caller) idle(t testing.TB) {
	t.Helper()
	apitest.Eventually(t, "the events are in the ledger", func() bool {
		return c.Store.Reader.NotificationEvent.Query().CountX(c.System(t)) == 0
	})
}

// sent are the ids of the findings that a rule has sent, sorted.
func (c caller) sent(t testing.TB, rule int64) (ids []int64) {
	t.Helper()
	for _, d := range c.Store.Reader.Delivery.Query().Where(delivery.RuleID(rule), delivery.Kind("findings")).AllX(c.System(t)) {
		m, err := parse("", d.Payload)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.numeric...)
	}
	slices.Sort(ids)
	return ids
}

// listed are the ids of the findings that the back-test of a policy lists, sorted.
func (c caller) listed(t testing.TB, policy string) (ids []int64) {
	t.Helper()
	var answer struct {
		Examples []struct {
			FindingID string `json:"finding_id"`
		}
	}
	decode(t, c.Body(t, c.Token, http.MethodPost, c.policies(":backTest"), strings.TrimSuffix(bundleOf(policy), "}")+`,"days":30}`, 200), &answer)
	for _, example := range answer.Examples {
		id, err := strconv.ParseInt(example.FindingID, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// A rule that is limited to a remediation policy sends the findings that a back-test of the policy lists, for each type
// of conditions; two policies are the union.
func TestRuleOfPolicySendsWhatThePolicyLists(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.seedNames(t)
		filters := map[string]string{
			"severity":      all(`{"type":"severity","values":["critical"]}`),
			"not-severity":  all(`{"type":"severity","values":["critical","low"],"mode":"exclude"}`),
			"confidence":    all(`{"type":"confidence","values":["medium"]}`),
			"code":          all(`{"type":"product","values":["code"]}`),
			"supply-chain":  all(`{"type":"product","values":["supply_chain"]}`),
			"secrets":       all(`{"type":"product","values":["secrets"]}`),
			"rule":          all(`{"type":"rule","values":["go.critical"]}`),
			"category":      all(`{"type":"category","values":["security"]}`),
			"project":       all(`{"type":"project","values":["acme/web"]}`),
			"tag":           all(`{"type":"project_tag","values":["pci"]}`),
			"reachability":  all(`{"type":"reachability","values":["unknown"]}`),
			"validation":    all(`{"type":"validation_state","values":["no_validator"]}`),
			"verdict":       all(`{"type":"autotriage_verdict","values":["false_positive"],"mode":"exclude"}`),
			"finding-state": all(`{"type":"finding_state","values":["new"]}`),
			"any":           `"mode":"any","conditions":[{"type":"severity","values":["low"]},{"type":"product","values":["secrets"]}]`,
			"everything":    `"mode":"all"`,
		}
		var policies []string
		for slug, text := range filters {
			policies = append(policies, policy(slug, text))
		}
		s.apply(t, policies...)
		rules := map[string]int64{}
		for slug := range filters {
			rules[slug] = s.rule(t, slug, "https://hooks.acme.test/in", fmt.Sprintf(`,"policy_slugs":[%q]`, slug))
		}
		both := s.rule(t, "both", "https://hooks.acme.test/in", `,"policy_slugs":["severity","secrets"]`)
		modes := s.rule(t, "modes", "https://hooks.acme.test/in", `,"policy_slugs":["rule-board-audit","rule-board-block"]`)
		unlimited := s.rule(t, "unlimited", "https://hooks.acme.test/in", "")

		s.Upload(t, "acme/web", "main", graded("critical", "a"), "category", "critical")
		s.Upload(t, "acme/web", "main", graded("high", "b", "c"), "category", "high")
		s.Upload(t, "acme/api", "main", graded("low", "d"), "category", "low")
		s.Upload(t, "acme/web", "main", graded("high", "e"), "product", "secrets", "category", "secrets")
		s.Upload(t, "acme/web", "main", graded("medium", "f"), "product", "sca", "category", "sca")
		s.idle(t)

		for slug, text := range filters {
			got, want := s.sent(t, rules[slug]), s.listed(t, policy(slug, text))
			if len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("%s: sent %v, the policy lists %v", slug, got, want)
			}
		}
		union := slices.Concat(s.sent(t, rules["severity"]), s.sent(t, rules["secrets"]))
		if slices.Sort(union); !slices.Equal(s.sent(t, both), union) {
			t.Errorf("two policies sent %v, want %v", s.sent(t, both), union)
		}
		if code := s.sent(t, rules["code"]); len(code) != 4 || !slices.Equal(s.sent(t, modes), code) || !slices.Equal(s.sent(t, unlimited), code) {
			t.Errorf("code findings %v, by modes %v, without policies %v", code, s.sent(t, modes), s.sent(t, unlimited))
		}
	})
}

// A policy by which a rule would send nothing is refused. If it becomes so later, config_error says it, and the other
// policies of the rule still count.
func TestRuleOfPolicyThatSelectsNothing(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		const critical = `{"type":"severity","values":["critical"]}`
		inactive := func(p string) string { return strings.Replace(p, `"active":true`, `"active":false`, 1) }
		only, off := policy("critical-only", all(critical)), inactive(policy("off", all(critical)))
		existing := policy("existing", all(`{"type":"finding_state","values":["existing"]}`))
		verdict := policy("verdict", `"mode":"any","conditions":[{"type":"autotriage_verdict","values":["true_positive"]}]`)
		high := policy("high", all(`{"type":"severity","values":["high"]}`))
		s.apply(t, only, off, existing, verdict, high)
		create := func(slugs string, want int) string {
			t.Helper()
			return s.Body(t, s.Token, http.MethodPost, s.actions(""), `{"notificationRule":{"channel":"webhook","name":"x","config":{"url":"https://hooks.acme.test/"},"policy_slugs":[`+slugs+`]}}`, want)
		}
		for slug, text := range map[string]string{
			"none-such": "policy_slugs[1] must be one of rule-board-audit, rule-board-block, rule-board-pr-comments, critical-only, high, got",
			"off":       `the policy \"off\" is not active`,
			"existing":  `no new finding meets the condition finding_state of the policy \"existing\"`,
			"verdict":   `no new finding meets the condition autotriage_verdict of the policy \"verdict\"`,
		} {
			if got := create(fmt.Sprintf(`"critical-only",%q`, slug), 400); !strings.Contains(got, text) {
				t.Errorf("%s: %s does not say %s", slug, got, text)
			}
		}
		create(`"critical-only","high","rule-board-block"`, 200)
		rule := s.Store.Reader.NotificationRule.Query().OnlyIDX(s.System(t))
		for _, state := range []struct {
			policies []string
			want     string
		}{
			{[]string{only, high}, ""},
			{[]string{inactive(only), high}, `policy_slugs has policies for which the rule sends nothing: the policy "critical-only" is not active`},
			{[]string{high}, `policy_slugs has policies for which the rule sends nothing: there is no policy "critical-only"`},
			{[]string{existing}, `policy_slugs has policies for which the rule sends nothing: there is no policy "critical-only"; there is no policy "high"`},
			{[]string{only, high}, ""},
			{[]string{high}, `policy_slugs has policies for which the rule sends nothing: there is no policy "critical-only"`},
		} {
			s.apply(t, state.policies...)
			if got := s.configError(t); got != state.want {
				t.Errorf("config_error is %q, want %q", got, state.want)
			}
		}
		s.Upload(t, "acme/web", "main", graded("critical", "a"), "category", "critical")
		s.Upload(t, "acme/web", "main", graded("high", "b"), "category", "high")
		s.idle(t)
		if got := s.sent(t, rule); len(got) != 1 {
			t.Errorf("sent %v, want the finding of the policy that is left", got)
		}
		// The rule can be replaced as it was read.
		body := s.Body(t, s.Token, http.MethodPut, s.actions(fmt.Sprintf("/%d", rule)),
			`{"notificationRule":{"channel":"webhook","name":"y","config":{"url":"https://hooks.acme.test/"},"policy_slugs":["critical-only","high"]}}`, 200)
		if !strings.Contains(body, `there is no policy \"critical-only\"`) {
			t.Errorf("replaced: %s", body)
		}
	})
}
