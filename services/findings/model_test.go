package findings_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// modelProjects maps projects to their primary branches.
var modelProjects = map[string]string{"acme/Web": mainRef, "acme/api": "refs/heads/dev", "acme/Shop": mainRef, "acme/lib": "refs/heads/dev"}

// drawFacts draws findings. Small alphabets make siblings, equal times and matches of several filters likely.
func drawFacts(t *rapid.T) []fact {
	refs := []string{mainRef, "refs/heads/dev", "refs/pull/7/merge"}
	facts := make([]fact, rapid.IntRange(90, 330).Draw(t, "findings"))
	taken := map[string]bool{}
	random := rapid.IntRange(0, 1<<30)
	for i := range facts {
		// Draw one number for each finding: a dozen draws for each of hundreds of findings are slow in rapid.
		n := random.Draw(t, "finding")
		pick := func(words ...string) string {
			word := words[n%len(words)]
			n = n/len(words) + n%7
			return word
		}
		f := fact{label: fmt.Sprintf("f%03d", i), at: -int64(1 + n%40)}
		f.kind = pick("sast", "sast", "sast", "sca")
		f.project, f.ref = pick("acme/Web", "acme/api", "acme/Web", "acme/Shop", "acme/api", "acme/lib"), pick(refs...)
		f.print = fmt.Sprint(n % 97)
		f.severity, f.rule = pick("low", "high", "critical"), pick("py.sqli", "py.style", "js.xss")
		f.state = pick(lifecycle.Unresolved, lifecycle.Unresolved, lifecycle.Muted, lifecycle.Fixed, lifecycle.Removed)
		if f.triage = pick("", "", "ignored", "reviewing", "reopened"); f.triage == "ignored" {
			f.reason = pick("no_time", "duplicate")
		}
		f.policy, f.verdict, f.tag = pick("", "rule-board-audit", "rule-board-block"), pick("", "true_positive"), pick("", "payments", "user data")
		if f.kind == "sca" {
			f.exposure, f.transitivity, f.malicious = pick("reachable", "unknown"), pick("direct", "transitive"), pick("", "", "x") == "x"
		}
		f.fixPR = pick("", "", "open", "merged")
		// An identity exists once on a ref, so a duplicate gets an identity of its own.
		if place := f.project + f.ref + f.print; taken[place] {
			f.print = f.label
		} else {
			taken[place] = true
		}
		facts[i] = f
	}
	return facts
}

// drawRequest draws a request. It may have several values for a parameter, and duplicates.
func drawRequest(t *rapid.T, projects map[string]int64) *findingsv1.ListFindingsRequest {
	words := func(label string, words ...string) []string {
		return rapid.SliceOfN(rapid.SampledFrom(words), 0, 3).Draw(t, label)
	}
	// Most filters are absent. Otherwise no finding would match.
	maybe := func(label string, list []string) []string {
		if rapid.IntRange(0, 3).Draw(t, "use "+label) != 0 {
			return nil
		}
		return list
	}
	r := &findingsv1.ListFindingsRequest{
		IssueType:         words("issue_type", "sast", "sca"),
		Dedup:             rapid.Bool().Draw(t, "dedup"),
		Repos:             maybe("repos", words("repos", "ACME/web", "acme/Web", "acme/api", "acme/shop", "acme/lib", "acme/none")),
		Status:            maybe("status", words("status", "open", "ignored", "fixed", "reviewing")),
		TriageReasons:     maybe("reasons", words("reasons", "no_time", "duplicate", "no_triage_reason")),
		Severities:        maybe("severities", words("severities", "low", "high", "critical")),
		Ref:               maybe("ref", words("ref", "main", "refs/heads/dev", "_default", "refs/pull/7/merge")),
		Policies:          maybe("policies", words("policies", "rule-board-audit", "rule-board-block")),
		Rules:             maybe("rules", words("rules", "py.sqli", "js.xss", "none")),
		Categories:        maybe("categories", words("categories", "security", "best-practice")),
		Confidence:        maybe("confidence", words("confidence", "low", "high")),
		AutotriageVerdict: maybe("verdict", words("verdict", "true_positive")),
		ComponentTags:     maybe("tags", words("tags", "payments", "user data")),
		Exposures:         maybe("exposures", words("exposures", "reachable", "unknown")),
		Transitivities:    maybe("transitivities", words("transitivities", "direct", "unknown")),
		ClickToFixPrState: maybe("pr state", words("pr state", "open", "merged")),
	}
	if rapid.IntRange(0, 3).Draw(t, "use since") == 0 {
		r.Since = float64(base-int64(rapid.IntRange(1, 40).Draw(t, "since"))) / 1e6
	}
	for _, name := range maybe("repository ids", words("repository ids", slices.Sorted(maps.Keys(projects))...)) {
		r.RepositoryIds = append(r.RepositoryIds, projects[name])
	}
	if rapid.IntRange(0, 3).Draw(t, "use malicious") == 0 {
		malicious := rapid.Bool().Draw(t, "malicious")
		r.IsMalicious = &malicious
	}
	return r
}

// matches implements the filters of the contract without a database.
func matches(f fact, projects map[string]int64, r *findingsv1.ListFindingsRequest) bool {
	oneOf := func(list []string, word string) bool { return len(list) == 0 || slices.Contains(list, word) }
	status := lifecycle.Status(f.state, cmp.Or(f.triage, lifecycle.Untriaged))
	about := rules[f.rule]
	onRef := func(ref string) bool {
		return ref == "_default" && f.ref == modelProjects[f.project] || f.ref == ref || f.ref == "refs/heads/"+ref
	}
	if len(r.GetRef()) > 0 && !slices.ContainsFunc(r.GetRef(), onRef) {
		return false
	}
	types := r.GetIssueType()
	if len(types) == 0 {
		types = []string{"sast"}
	}
	if !slices.Contains(types, f.kind) || status == lifecycle.Removed || !oneOf(r.GetStatus(), status) ||
		slices.Contains(r.GetStatus(), "ignored") && status == "ignored" && !oneOf(r.GetTriageReasons(), cmp.Or(f.reason, "no_triage_reason")) ||
		r.GetSince() != 0 && float64(base+f.at)/1e6 < r.GetSince() ||
		!oneOf(r.GetSeverities(), f.severity) || !oneOf(r.GetComponentTags(), f.tag) || !oneOf(r.GetClickToFixPrState(), f.fixPR) ||
		len(r.GetRepositoryIds()) > 0 && !slices.Contains(r.GetRepositoryIds(), projects[f.project]) ||
		len(r.GetRepos()) > 0 && !slices.ContainsFunc(r.GetRepos(), func(name string) bool { return strings.EqualFold(name, f.project) }) {
		return false
	}
	if f.kind == "sca" {
		return oneOf(r.GetExposures(), f.exposure) && oneOf(r.GetTransitivities(), f.transitivity) &&
			(r.IsMalicious == nil || r.GetIsMalicious() == f.malicious)
	}
	return oneOf(r.GetPolicies(), cmp.Or(f.policy, "rule-board-audit")) && oneOf(r.GetRules(), f.rule) &&
		oneOf(r.GetCategories(), about.GetCategory()) && oneOf(r.GetConfidence(), about.GetConfidence()) &&
		oneOf(r.GetAutotriageVerdict(), f.verdict)
}

// model returns the labels of the findings that the request selects: filtered, ordered, deduplicated.
func model(facts []fact, projects map[string]int64, r *findingsv1.ListFindingsRequest) []string {
	var rows []int
	for i, f := range facts {
		if matches(f, projects, r) {
			rows = append(rows, i)
		}
	}
	slices.SortFunc(rows, func(a, b int) int { return cmp.Or(cmp.Compare(facts[b].at, facts[a].at), cmp.Compare(b, a)) })
	seen, list := map[string]bool{}, []string{}
	for _, i := range slices.Backward(rows) {
		identity := facts[i].kind + facts[i].project + "\x00" + facts[i].print
		if !r.GetDedup() || !seen[identity] {
			list = append(list, facts[i].label)
		}
		seen[identity] = true
	}
	slices.Reverse(list)
	return list
}

// For random findings and filters, the list equals the model, page by page and with jumps, on both databases.
func TestListEqualsModel(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		client := findingsv1.NewFindingsServiceClient(s.Conn)
		read := func(rt *rapid.T, token string, r *findingsv1.ListFindingsRequest) []string {
			response, err := client.ListFindings(s.Context(t, token), r)
			if err != nil {
				rt.Fatalf("%v: %v", r, err)
			}
			list := []string{}
			for _, f := range response.GetFindings() {
				list = append(list, f.GetRuleMessage())
			}
			return list
		}
		tenants, hits := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			facts := drawFacts(rt)
			tenants++
			of := s.AddTenant(t, fmt.Sprintf("model%d", tenants))
			other := s.AddToken(t, of, access.TokenSpec{})
			projects := map[string]func(*ent.ProjectCreate){}
			for name, branch := range modelProjects {
				if projects[name] = nil; branch != mainRef {
					projects[name] = func(p *ent.ProjectCreate) { p.SetPrimaryBranch(branch) }
				}
			}
			l := seedFixture(t, s, of, projects)
			l.seed(t, s, facts...)
			for range 12 {
				r := drawRequest(rt, l.projects)
				r.DeploymentSlug = of.Slug
				want := model(facts, l.projects, r)
				hits += len(want)
				jump := int64(rapid.IntRange(0, 3).Draw(rt, "jump"))
				for page := int64(0); page*100 <= int64(len(want)); page++ {
					r.Page = page
					part := want[page*100 : min(int(page+1)*100, len(want))]
					if got := read(rt, of.Token, r); !slices.Equal(got, part) {
						rt.Fatalf("page %d of %v:\n got %v\nwant %v", page, r, got, part)
					}
				}
				r.Page = jump
				part := want[min(int(jump)*100, len(want)):min(int(jump+1)*100, len(want))]
				if got := read(rt, other, r); !slices.Equal(got, part) {
					rt.Fatalf("jump to page %d of %v:\n got %v\nwant %v", jump, r, got, part)
				}
			}
		})
		if hits == 0 {
			t.Error("no request found any finding")
		}
		t.Logf("%d findings listed in %d tenants", hits, tenants)
	})
}
