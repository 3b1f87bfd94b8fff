package findings_test

import (
	"fmt"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apitest"
)

// seedVariety stores findings that differ in every field with a filter.
func seedVariety(t *testing.T, s *apitest.Server) *fixture {
	t.Helper()
	l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){
		"acme/Web":  func(p *ent.ProjectCreate) { p.SetVisibility("private") },
		"acme/api":  func(p *ent.ProjectCreate) { p.SetPrimaryBranch("refs/heads/release").SetVisibility("public") },
		"acme/bare": func(p *ent.ProjectCreate) { p.SetDefaultBranch("") },
	})
	web, api := "acme/Web", "acme/api"
	l.seed(t, s,
		fact{label: "a1", project: web, severity: "critical", policy: "rule-board-block", verdict: "true_positive"},
		fact{label: "a2", project: web, rule: "py.style", severity: "low", policy: "rule-board-pr-comments", verdict: "false_positive", tag: "user data"},
		fact{label: "a3", project: web, rule: "js.xss", severity: "medium", policy: "rule-board-audit", fixPR: "open"},
		fact{label: "a4", project: web, ref: "refs/heads/release", print: "a1", severity: "critical", triage: "reviewing"},
		fact{label: "a5", project: web, ref: "refs/pull/7/merge", triage: "fixing", fixPR: "merged"},
		fact{label: "b1", project: api, triage: "ignored", reason: "false_positive", tag: "payments"},
		fact{label: "b2", project: api, ref: "refs/heads/release", triage: "ignored", reason: "duplicate"},
		fact{label: "b3", project: api, triage: "provisionally_ignored"},
		fact{label: "b4", project: api, triage: "reopened", state: "muted"},
		fact{label: "b5", project: api, state: "muted"},
		fact{label: "b6", project: api, state: "fixed", triage: "ignored", reason: "no_time"},
		fact{label: "b7", project: api, state: "removed"},
		fact{label: "b8", project: "acme/bare", ref: "refs/tags/v1"},
	)
	l.seed(t, s,
		fact{label: "c1", kind: "sca", rule: "npm.left", project: web, exposure: "reachable", transitivity: "direct", pkg: "left-pad", epss: "high", policy: "rule-board-block"},
		fact{label: "c2", kind: "sca", rule: "npm.left", project: web, exposure: "always_reachable", transitivity: "transitive", pkg: "lodash", epss: "low", fixPR: "open"},
		fact{label: "c3", kind: "sca", rule: "npm.left", project: api, exposure: "conditionally_reachable", transitivity: "unknown", malicious: true, fixPR: "merged"},
		fact{label: "c4", kind: "sca", rule: "py.style", project: api, exposure: "unreachable", epss: "none", verdict: "true_positive"},
		fact{label: "c5", kind: "sca", rule: "npm.left", project: api, exposure: "unknown", epss: "medium"},
		fact{label: "d1", kind: "ai_sast", rule: "py.style", project: web, severity: "low", policy: "rule-board-block", verdict: "false_positive", fixPR: "open"},
		fact{label: "d2", kind: "ai_sast", project: api},
		fact{label: "e1", kind: "secrets", rule: "aws.key", project: web},
	)
	return l
}

// All parameters of operation 11, and the order of the list.
func TestParameters(t *testing.T) {
	t.Parallel()
	const all = "a1 a2 a3 a4 a5 b1 b2 b3 b4 b5 b6 b8"
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedVariety(t, s)
		second := float64(base) / 1e6
		for _, c := range []struct{ query, want string }{
			{"", all},
			{"issue_type=sast", all},
			{"issue_type=sca", "c1 c2 c3 c4 c5"},
			{"issue_type=ai_sast", "d1 d2"},
			{fmt.Sprintf("since=%.6f", second), "a1"},
			{fmt.Sprintf("since=%.6f", second-1), "a1 a2"},
			{fmt.Sprintf("since=%.6f", second-0.999999), "a1"},
			{fmt.Sprintf("since=%d", base/1e6), "a1"},
			{"since=0", all},
			{"since=4e9", ""},
			{"page=0", all},
			{"page=1", ""},
			{"dedup=true", "a2 a3 a4 a5 b1 b2 b3 b4 b5 b6 b8"},
			{"dedup=false", all},
			{"page_size=100", all},
			{"page_size=3000", all},
			{"repos=acme/api", "b1 b2 b3 b4 b5 b6"},
			{"repos=ACME/API", "b1 b2 b3 b4 b5 b6"},
			{"repos=acme/web&repos=acme/bare", "a1 a2 a3 a4 a5 b8"},
			{"repos=acme/none", ""},
			{fmt.Sprintf("repository_ids=%d", l.projects["acme/bare"]), "b8"},
			{fmt.Sprintf("repository_ids=%d,%d", l.projects["acme/bare"], l.projects["acme/Web"]), "a1 a2 a3 a4 a5 b8"},
			{fmt.Sprintf("repository_ids=%d&repos=acme/api", l.projects["acme/bare"]), ""},
			{"repository_ids=999", ""},
			{"status=open", "a1 a2 a3 b4 b8"},
			{"status=fixed", "b6"},
			{"status=ignored", "b1 b2 b5"},
			{"status=reviewing", "a4"},
			{"status=fixing", "a5"},
			{"status=provisionally_ignored", "b3"},
			{"status=open,fixing", "a1 a2 a3 a5 b4 b8"},
			{"status=open&status=fixing", "a1 a2 a3 a5 b4 b8"},
			{"status[0]=fixed&status[1]=reviewing", "a4 b6"},
			{"status=ignored&triage_reasons=false_positive", "b1"},
			{"status=ignored&triage_reasons=false_positive,duplicate", "b1 b2"},
			{"status=ignored&triage_reasons=no_time", ""},
			{"status=ignored&triage_reasons=no_triage_reason", "b5"},
			{"status=ignored&triage_reasons=false_positive,no_triage_reason", "b1 b5"},
			{"status=ignored&triage_reasons=acceptable_risk,false_positive,no_time,no_triage_reason,duplicate", "b1 b2 b5"},
			{"status=ignored,open&triage_reasons=duplicate", "a1 a2 a3 b2 b4 b8"},
			{"status=ignored,open&triage_reasons=no_triage_reason", "a1 a2 a3 b4 b5 b8"},
			{"triage_reasons=false_positive", all},
			{"status=fixed&triage_reasons=duplicate", "b6"},
			{"severities=critical", "a1 a4"},
			{"severities=low,medium", "a2 a3"},
			{"severities=low&severities=critical", "a1 a2 a4"},
			{"ref=main", "a1 a2 a3 b1 b3 b4 b5 b6"},
			{"ref=refs/heads/main", "a1 a2 a3 b1 b3 b4 b5 b6"},
			{"ref=refs/pull/7/merge", "a5"},
			{"ref=refs/tags/v1", "b8"},
			{"ref=mai", ""},
			{"ref=_default", "a1 a2 a3 b2"},
			{"ref=_default&ref=release", "a1 a2 a3 a4 b2"},
			{"ref=release,refs/tags/v1", "a4 b2 b8"},
			{"policies=rule-board-block", "a1"},
			{"policies=rule-board-audit", "a3 a4 a5 b1 b2 b3 b4 b5 b6 b8"},
			{"policies=rule-board-block,rule-board-pr-comments", "a1 a2"},
			{"rules=py.style", "a2"},
			{"rules=js.xss,py.style", "a2 a3"},
			{"rules=nothing", ""},
			{"categories=best-practice", "a2"},
			{"categories=security&rules=js.xss", "a3"},
			{"categories=best-practice&rules=js.xss", ""},
			{"confidence=low", "a2"},
			{"confidence=medium", "a3"},
			{"confidence=low,medium", "a2 a3"},
			{"confidence=low&confidence=medium", "a2 a3"},
			{"autotriage_verdict=true_positive", "a1"},
			{"autotriage_verdict=false_positive", "a2"},
			{"autotriage_verdict=false_positive,true_positive", "a1 a2"},
			{"component_tags=user%20data", "a2"},
			{"component_tags=user+data,payments", "a2 b1"},
			{"issue_type=sca&exposures=reachable", "c1"},
			{"issue_type=sca&exposures=always_reachable,conditionally_reachable", "c2 c3"},
			{"issue_type=sca&exposures=unreachable&exposures=unknown", "c4 c5"},
			{"issue_type=sca&transitivities=direct", "c1"},
			{"issue_type=sca&transitivities=transitive,unknown", "c2 c3"},
			{"issue_type=sca&is_malicious=true", "c3"},
			{"issue_type=sca&is_malicious=false", "c1 c2 c4 c5"},
			{"click_to_fix_pr_state=open", "a3"},
			{"click_to_fix_pr_state=open,merged", "a3 a5"},
			{"issue_type=sca&click_to_fix_pr_state=merged", "c3"},

			// Filters that the contract defines for other issue types are ignored.
			{"exposures=reachable&transitivities=direct&is_malicious=true", all},
			{"issue_type=sca&policies=rule-board-block&rules=py.style&categories=x&confidence=low&autotriage_verdict=true_positive", "c1 c2 c3 c4 c5"},
			{"issue_type=ai_sast&policies=rule-board-pr-comments&rules=js.xss&confidence=high&click_to_fix_pr_state=merged", "d1 d2"},
			{"issue_type=ai_sast&severities=low&repos=acme/web", "d1"},

			// Several filters in one request.
			{"severities=critical&status=reviewing&ref=release&repos=acme/web", "a4"},
			{"severities=critical&dedup=true&status=reviewing", "a4"},
		} {
			if got := labels(t, s, c.query); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.query, got, c.want)
			}
		}
	})
}

// Clients write lists, booleans and absent values in several ways (contract facts, section 1).
func TestSpellings(t *testing.T) {
	t.Parallel()
	const all = "a1 a2 a3 a4 a5 b1 b2 b3 b4 b5 b6 b8"
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedVariety(t, s)
		web, bare := l.projects["acme/Web"], l.projects["acme/bare"]
		for _, c := range []struct{ query, want string }{
			{"repos[0]=acme/bare&repos[1]=acme/none", "b8"},
			{"repos%5B0%5D=acme/bare&repos%5B1%5D=acme/none", "b8"},
			{"repos[]=acme/bare", "b8"},
			{"repos=acme/bare,acme/none", "b8"},
			{"severities=low&severities[5]=medium&severities=critical,low", "a1 a2 a3 a4"},
			{fmt.Sprintf("repository_ids[0]=%d&repository_ids[1]=%d&severities=critical", bare, web), "a1 a4"},
			{fmt.Sprintf("repository_ids=%d&repository_ids=%d&severities=critical", bare, web), "a1 a4"},
			{"dedup=True&severities=critical", "a4"},
			{"dedup=1&severities=critical", "a4"},
			{"dedup=False&severities=critical", "a1 a4"},
			{"dedup=0&severities=critical", "a1 a4"},
			{"issue_type=sca&is_malicious=True", "c3"},
			{"issue_type=sca&is_malicious=False", "c1 c2 c4 c5"},
			{"severities=low&&status=open&", "a2"},
			{"unknown=1&severities=low&filter[x]=y", "a2"},
			{"status=&severities=&repos=&ref=&confidence=&page=&page_size=&since=&dedup=&issue_type=", all},
			{"issueType=sca&pageSize=100&clickToFixPrState=merged", "c3"},
		} {
			if got := labels(t, s, c.query); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.query, got, c.want)
			}
		}
	})
}
