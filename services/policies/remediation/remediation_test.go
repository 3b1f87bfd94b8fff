package remediation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
)

// policy builds a blocking policy; conditions are "type=a,b" or "type!=a,b".
func policy(t testing.TB, name, mode string, conditions ...string) Policy {
	t.Helper()
	from := &policiesv1.RemediationPolicy{
		Name: name, Filters: &policiesv1.RemediationPolicyFilters{Mode: mode}, Actions: []*policiesv1.RemediationPolicyAction{{Type: ActionBlock}},
	}
	for _, text := range conditions {
		kind, values, _ := strings.Cut(text, "=")
		c := &policiesv1.RemediationPolicyCondition{Type: strings.TrimSuffix(kind, "!"), Values: strings.Split(values, ",")}
		if strings.HasSuffix(kind, "!") {
			c.Mode = ModeExclude
		}
		from.Filters.Conditions = append(from.Filters.Conditions, c)
	}
	compiled, err := Compile(from)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestConditions(t *testing.T) {
	f := Facts{
		MatchBasedID: "ab_0", Product: "sast", Severity: "High", Confidence: "medium", RuleName: "palisade.go.ssrf", Category: "security",
		Project: "acme/web", Tags: []string{"pci", "edge"}, Status: "open", New: true,
	}
	dependency := Facts{MatchBasedID: "cd_0", Product: "sca", Severity: "critical", Reachability: "CONDITIONALLY_REACHABLE", Status: "open"}
	secret := Facts{MatchBasedID: "ef_0", Product: "secrets", ValidationState: "confirmed_valid", Verdict: "true_positive", Status: "reviewing"}
	for _, test := range []struct {
		facts      Facts
		mode       string
		conditions string
		want       bool
	}{
		{f, "all", "", true},
		{f, "all", "severity=HIGH", true},
		{f, "all", "severity=critical", false},
		{f, "all", "severity!=critical,low", true},
		{f, "all", "severity=high severity!=high", false},
		{f, "any", "severity=critical confidence=medium", true},
		{f, "any", "severity=critical confidence=high", false},
		{f, "all", "product=code", true},
		{f, "all", "rule=palisade.go.ssrf", true},
		{f, "all", "rule=Palisade.go.ssrf", false},
		{f, "all", "category=security project=acme/web finding_state=new", true},
		{f, "all", "finding_state=existing", false},
		{f, "all", "project_tag=edge,other", true},
		{f, "all", "project_tag!=edge", false},
		{f, "all", "project_tag!=other", true},
		{f, "all", "reachability!=unreachable validation_state!=confirmed_invalid autotriage_verdict!=false_positive", true},
		{f, "all", "reachability=unknown", false},
		{f, "all", "category=", false},
		{Facts{}, "all", "category=", false},
		{dependency, "all", "product=supply_chain reachability=reachable,conditionally_reachable severity=critical", true},
		{dependency, "all", "confidence=high,medium,low", false},
		{dependency, "all", "project_tag!=pci", true},
		{Facts{Severity: "low", Status: "provisionally_ignored"}, "all", "", true},
		{secret, "all", "product=secrets validation_state=confirmed_valid autotriage_verdict=true_positive finding_state=existing", true},
	} {
		p := policy(t, "p", test.mode, strings.Fields(test.conditions)...)
		if got := Block([]Policy{p}, []Facts{test.facts}); got.Block != test.want {
			t.Errorf("%s of %q is %v for %+v", test.mode, test.conditions, got.Block, test.facts)
		}
	}
}

func TestDecision(t *testing.T) {
	critical := policy(t, "No critical findings", "all", "severity=critical")
	secrets := policy(t, "No secrets", "all", "product=secrets")
	secrets.reason = "Ask #appsec"
	comment, err := Compile(&policiesv1.RemediationPolicy{
		Name: "Comment", Filters: &policiesv1.RemediationPolicyFilters{Mode: "all"}, Actions: []*policiesv1.RemediationPolicyAction{{Type: ActionComment}},
	})
	if err != nil {
		t.Fatal(err)
	}
	policies := []Policy{comment, critical, secrets}
	findings := []Facts{
		{MatchBasedID: "b_0", Severity: "critical", Product: "secrets"},
		{MatchBasedID: "a_0", Severity: "critical", Product: "sast"},
		{MatchBasedID: "a_0", Severity: "critical", Product: "sast"},
		{Severity: "critical", Product: "sca"},
		{MatchBasedID: "c_0", Severity: "low", Product: "sast"},
	}
	for _, status := range []string{"fixed", "removed", "muted", "ignored"} {
		findings = append(findings, Facts{MatchBasedID: status, Severity: "critical", Product: "secrets", Status: status})
	}
	want := Decision{Block: true, Reason: "policy No critical findings: 4 findings; policy No secrets: 1 finding (Ask #appsec)", MatchBasedIDs: []string{"a_0", "b_0"},
		Blockers: []Blocker{{Name: "No critical findings", Findings: []int{0, 1, 2, 3}}, {Name: "No secrets", Reason: "Ask #appsec", Findings: []int{0}}}}
	if got := Block(policies, findings); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	for _, none := range []Decision{Block(policies, nil), Block(nil, findings), Block([]Policy{comment}, findings), Block(policies, findings[4:])} {
		if none.Block || none.Reason != "" || len(none.MatchBasedIDs) != 0 {
			t.Errorf("got %+v", none)
		}
	}
	if _, err := Compile(&policiesv1.RemediationPolicy{Filters: &policiesv1.RemediationPolicyFilters{
		Conditions: []*policiesv1.RemediationPolicyCondition{{Type: "phase_of_the_moon"}},
	}}); err == nil {
		t.Error("an unknown type of condition is let through")
	}
}

// TestBlockProperties draws policies and findings: a naive evaluation gives the same result for each finding, the order
// of findings does not matter, and a policy never removes another policy's block.
func TestBlockProperties(t *testing.T) {
	words := []string{"critical", "high", "medium", "low"}
	rapid.Check(t, func(t *rapid.T) {
		var policies []Policy
		for i := range rapid.IntRange(0, 4).Draw(t, "policies") {
			p := Policy{name: fmt.Sprint(i), blocks: rapid.Bool().Draw(t, "blocks"), filter: Filter{Any: rapid.Bool().Draw(t, "any")}}
			for range rapid.IntRange(0, 3).Draw(t, "conditions") {
				c := Condition{words: conditionTypes[rapid.IntRange(0, 1).Draw(t, "type")].words, values: map[string]bool{}, exclude: rapid.Bool().Draw(t, "exclude")}
				for _, word := range rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "values") {
					c.values[word] = true
				}
				p.filter.Conditions = append(p.filter.Conditions, c)
			}
			policies = append(policies, p)
		}
		var findings []Facts
		for i := range rapid.IntRange(0, 6).Draw(t, "findings") {
			findings = append(findings, Facts{
				MatchBasedID: fmt.Sprintf("id_%d", i), Severity: rapid.SampledFrom(words).Draw(t, "severity"),
				Confidence: rapid.SampledFrom(append(words, "")).Draw(t, "confidence"), Status: rapid.SampledFrom([]string{"open", "fixing", "ignored", "fixed"}).Draw(t, "status"),
			})
		}
		var want []string
		for i := range findings {
			if slices.ContainsFunc(policies, func(p Policy) bool { return plainly(p, findings[i]) }) {
				want = append(want, findings[i].MatchBasedID)
			}
		}
		got := Block(policies, findings)
		if got.Block != (len(want) > 0) || got.Block != (got.Reason != "") || !slices.Equal(got.MatchBasedIDs, want) {
			t.Fatalf("got %+v, want %v", got, want)
		}
		order := rapid.Permutation(findings).Draw(t, "order")
		shuffled := Block(policies, order)
		if same := blockedBy(shuffled, order); !reflect.DeepEqual(same, blockedBy(got, findings)) || shuffled.Reason != got.Reason {
			t.Fatalf("another order gives %+v instead of %+v", shuffled, got)
		}
		for i := range policies {
			if wants := slices.DeleteFunc(slices.Clone(findings), func(f Facts) bool { return !plainly(policies[i], f) }); len(wants) != len(blockedBy(got, findings)[policies[i].name]) {
				t.Fatalf("policy %s blocks %v, want %v", policies[i].name, blockedBy(got, findings)[policies[i].name], wants)
			}
		}
		for i := range policies {
			for _, id := range Block(policies[:i], findings).MatchBasedIDs {
				if !slices.Contains(got.MatchBasedIDs, id) {
					t.Fatalf("%s blocks without the last policies only", id)
				}
			}
		}
	})
}

// blockedBy are the ids of the findings of each blocker, sorted.
func blockedBy(d Decision, findings []Facts) map[string][]string {
	ids := map[string][]string{}
	for _, b := range d.Blockers {
		for _, at := range b.Findings {
			ids[b.Name] = append(ids[b.Name], findings[at].MatchBasedID)
		}
		slices.Sort(ids[b.Name])
	}
	return ids
}

// plainly evaluates a policy naively.
func plainly(p Policy, f Facts) bool {
	if !p.blocks || f.Status == "ignored" || f.Status == "fixed" {
		return false
	}
	held := 0
	for _, c := range p.filter.Conditions {
		word := c.words(&f)[0]
		if listed := word != "" && c.values[word]; listed && !c.exclude || !listed && c.exclude {
			held++
		}
	}
	if p.filter.Any {
		return held > 0
	}
	return held == len(p.filter.Conditions)
}

// TestFilterProperties draws filters of automations: a naive evaluation gives the same result.
func TestFilterProperties(t *testing.T) {
	tags := ConditionTypeFor(func(f *Facts) []string { return f.Tags })
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID[string])
		filter, held := Filter{}, 0
		mode := rapid.SampledFrom([]string{"all", "any", "none"}).Draw(t, "mode")
		filter.Any, filter.None = mode == "any", mode == "none"
		has := words.Draw(t, "tags")
		n := rapid.IntRange(0, 4).Draw(t, "conditions")
		for range n {
			values, of := words.Filter(func(v []string) bool { return len(v) > 0 }).Draw(t, "values"), rapid.SampledFrom([]string{"all", "any", "none"}).Draw(t, "of")
			filter.Conditions = append(filter.Conditions, tags.Condition(values, of == "all", of == "none"))
			common := len(slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !slices.Contains(has, v) }))
			if of == "all" && common == len(values) || of == "any" && common > 0 || of == "none" && common == 0 {
				held++
			}
		}
		want := map[string]bool{"all": held == n, "any": held > 0, "none": held == 0}[mode]
		if got := filter.Matches(&Facts{Tags: has}); got != want {
			t.Fatalf("%s of %d conditions, %d of which hold: %v", mode, n, held, got)
		}
	})
}
