package findings_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// statusOf is the status of a fact.
func statusOf(f fact) string {
	return lifecycle.Status(cmp.Or(f.state, lifecycle.Unresolved), cmp.Or(f.triage, lifecycle.Untriaged))
}

// issueCase is a filter of issues and its meaning.
type issueCase struct {
	filter *findingsv1.IssuesFilter
	types  []findingsv1.IssueType
	means  []func(fact) bool
}

func enums[E ~int32](t *rapid.T, label, prefix string, values map[string]int32, words ...string) (enums []E, chosen []string) {
	chosen = rapid.SliceOfNDistinct(rapid.SampledFrom(words), 1, 2, rapid.ID[string]).Draw(t, label)
	for _, word := range chosen {
		enums = append(enums, E(values[prefix+strings.ToUpper(word)]))
	}
	return enums, chosen
}

// drawIssueCase draws a filter of at most three fields.
func drawIssueCase(t *rapid.T) *issueCase {
	c := &issueCase{filter: &findingsv1.IssuesFilter{}}
	add := func(means func(fact) bool) { c.means = append(c.means, means) }
	for _, field := range rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, 3, rapid.ID[int]).Draw(t, "fields") {
		switch f := c.filter; field {
		case 0:
			list, words := enums[findingsv1.Severity](t, "severities", "SEVERITY_", findingsv1.Severity_value, "low", "high", "critical")
			f.Severities = list
			add(func(f fact) bool { return slices.Contains(words, f.severity) })
		case 1:
			f.Tab = findingsv1.IssueTab_ISSUE_TAB_IGNORED
			add(func(f fact) bool { return statusOf(f) == "ignored" })
		case 2:
			f.RepositoryNames = []string{"ACME/web", "acme/shop"}
			add(func(f fact) bool { return f.project == "acme/Web" || f.project == "acme/Shop" })
		case 3:
			f.OnPrimaryBranch = true
			add(func(f fact) bool { return f.ref == modelProjects[f.project] })
		case 4:
			f.Rules = []string{"py.sqli", "js.xss"}
			add(func(f fact) bool { return f.rule != "py.style" })
		case 5:
			f.PolicySlugs = []string{"rule-board-audit"}
			add(func(f fact) bool { return f.policy != "rule-board-block" })
		case 6:
			f.ClickToFixPrStates = []findingsv1.ClickToFixPrState{findingsv1.ClickToFixPrState_CLICK_TO_FIX_PR_STATE_NO_PR}
			add(func(f fact) bool { return f.fixPR == "" })
		case 7:
			f.AiSensitivities = []string{"payments"}
			add(func(f fact) bool { return f.tag == "payments" })
		case 9:
			f.TimeFilter, f.Since = findingsv1.TimeFilter_TIME_FILTER_TRIAGED_AT, timestamppb.New(store.Time(base+20))
			add(func(f fact) bool { return f.triagedAt >= 20 })
		case 8:
			list, words := enums[findingsv1.IssueType](t, "types", "ISSUE_TYPE_", findingsv1.IssueType_value, "sast", "sca", "secrets")
			c.types = list
			add(func(f fact) bool { return slices.Contains(words, f.kind) })
		}
	}
	return c
}

// chosen are the facts that the case selects. Removed findings are never shown.
func (c *issueCase) chosen(facts []fact) (list []fact) {
	for _, f := range facts {
		if f.state != lifecycle.Removed && !slices.ContainsFunc(c.means, func(means func(fact) bool) bool { return !means(f) }) {
			list = append(list, f)
		}
	}
	return list
}

// issueWords are the words that orders compare. Findings of one word are ordered by time, the newest first.
var issueWords = map[findingsv1.SortBy]func(fact) string{
	findingsv1.SortBy_SORT_BY_SEVERITY: func(f fact) string {
		return fmt.Sprint(slices.Index([]string{"low", "medium", "high", "critical"}, f.severity))
	},
	findingsv1.SortBy_SORT_BY_STATE: func(f fact) string {
		return fmt.Sprint(slices.Index([]string{"removed", "fixed", "ignored", "provisionally_ignored", "fixing", "reviewing", "open"}, statusOf(f)))
	},
	findingsv1.SortBy_SORT_BY_REF:  func(f fact) string { return f.ref },
	findingsv1.SortBy_SORT_BY_REPO: func(f fact) string { return f.project },
	findingsv1.SortBy_SORT_BY_RULE: func(f fact) string { return f.rule },
	findingsv1.SortBy_SORT_BY_RELEVANT_SINCE: func(f fact) string {
		return ""
	},
}

// sorted returns the labels in an order. Labels are in the order of ids.
func sorted(facts []fact, by findingsv1.SortBy, direction findingsv1.SortDirection) []string {
	up := direction == findingsv1.SortDirection_SORT_DIRECTION_ASC
	slices.SortFunc(facts, func(a, b fact) int {
		word := cmp.Compare(issueWords[by](a), issueWords[by](b))
		time := cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.label, a.label))
		if !up {
			word = -word
		} else if by == findingsv1.SortBy_SORT_BY_RELEVANT_SINCE {
			time = -time
		}
		return cmp.Or(word, time)
	})
	labels := make([]string, len(facts))
	for i, f := range facts {
		labels[i] = f.label
	}
	return labels
}

// For random findings and filters, issues in any order, page by page, and their numbers, groups and filter values equal
// a loop over all findings.
func TestIssuesEqualModel(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		client := findingsv1.NewIssuesServiceClient(s.Conn)
		tenants, hits := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			facts := drawFacts(rt)
			for i := range facts {
				facts[i].triagedAt = int64(i % 40)
			}
			tenants++
			of := s.AddTenant(t, fmt.Sprintf("issues%d", tenants))
			projects := map[string]func(*ent.ProjectCreate){"acme/archive": func(p *ent.ProjectCreate) { p.SetArchivedAt(1) }}
			for name, branch := range modelProjects {
				projects[name] = func(p *ent.ProjectCreate) { p.SetPrimaryBranch(branch) }
			}
			l := seedFixture(t, s, of, projects)
			l.seed(t, s, append(slices.Clone(facts), fact{label: "archived", project: "acme/archive", kind: "sast"})...)
			ctx := s.Context(t, of.Token)
			for range 6 {
				c := drawIssueCase(rt)
				chosen := c.chosen(facts)
				hits += len(chosen)
				r := &findingsv1.ListIssuesRequest{DeploymentId: of.DeploymentID, Filter: c.filter, IssueTypes: c.types}
				r.Limit = int32(rapid.IntRange(20, 120).Draw(rt, "limit"))
				r.SortBy = findingsv1.SortBy(rapid.IntRange(1, 6).Draw(rt, "order"))
				r.SortDirection = findingsv1.SortDirection(rapid.IntRange(0, 2).Draw(rt, "direction"))
				want := sorted(slices.Clone(chosen), r.GetSortBy(), r.GetSortDirection())
				var got []string
				for first := true; first || r.GetCursor() != ""; first = false {
					response, err := client.ListIssues(ctx, r)
					if err != nil {
						rt.Fatalf("%v: %v", r, err)
					}
					for _, one := range response.GetIssues() {
						got = append(got, one.GetIssue().GetMessage())
					}
					if r.Cursor = response.GetCursor(); len(got) > len(want) {
						break
					}
				}
				if !slices.Equal(got, want) {
					rt.Fatalf("%v:\n got %v\nwant %v", r, got, want)
				}
				checkJump(rt, ctx, client, r, want)
				checkNumbers(rt, ctx, client, of, c, chosen)
			}
		})
		if hits == 0 {
			t.Error("no filter found any finding")
		}
	})
}

// checkJump compares a page far into a list, and the page after it, with the findings in order.
func checkJump(rt *rapid.T, ctx context.Context, client findingsv1.IssuesServiceClient, r *findingsv1.ListIssuesRequest, want []string) {
	r = proto.CloneOf(r)
	r.Cursor, r.Limit, r.Offset = "", 7, int32(rapid.IntRange(0, len(want)+3).Draw(rt, "offset"))
	rest := want[min(int(r.GetOffset()), len(want)):]
	var got []string
	for range 2 {
		response, err := client.ListIssues(ctx, r)
		if err != nil {
			rt.Fatalf("%v: %v", r, err)
		}
		for _, one := range response.GetIssues() {
			got = append(got, one.GetIssue().GetMessage())
		}
		if r.Cursor, r.Offset = response.GetCursor(), 0; r.GetCursor() == "" {
			break
		}
	}
	if !slices.Equal(got, rest[:min(14, len(rest))]) {
		rt.Fatalf("jump of %v:\n got %v\nwant %v", r, got, rest)
	}
}

// checkNumbers compares the numbers, groups and filter values of chosen facts.
func checkNumbers(rt *rapid.T, ctx context.Context, client findingsv1.IssuesServiceClient, of apitest.Tenant, c *issueCase, chosen []fact) {
	want, rules, severities := &findingsv1.GetIssueCountsResponse{}, map[string]int64{}, map[string]int64{}
	for _, f := range chosen {
		rules[f.rule]++
		severities["SEVERITY_"+strings.ToUpper(f.severity)]++
		switch statusOf(f) {
		case "open":
			want.Open++
		case "reviewing":
			want.Reviewing++
		case "fixed":
			want.Closed++
		case "ignored":
			want.Ignored++
			switch {
			case f.triage != "ignored":
				want.IgnoredCode++
			case f.reason == "no_time":
				want.IgnoredNoTime++
			default:
				want.IgnoredDuplicate++
			}
		}
	}
	counts, err := client.GetIssueCounts(ctx, &findingsv1.GetIssueCountsRequest{DeploymentId: of.DeploymentID, Filter: c.filter, IssueTypes: c.types})
	if err != nil {
		rt.Fatal(err)
	}
	if want.Archived = counts.GetArchived(); len(c.means) == 0 && want.Archived != 1 || !proto.Equal(counts, want) {
		rt.Fatalf("%v:\n got %v\nwant %v", c.filter, counts, want)
	}
	groups, err := client.ListIssueGroups(ctx, &findingsv1.ListIssueGroupsRequest{DeploymentId: of.DeploymentID, Filter: c.filter, IssueTypes: c.types})
	if err != nil || groups.GetTotal() != int64(len(rules)) || len(groups.GetGroups()) != len(rules) {
		rt.Fatalf("%v: %v, %v, want %v", c.filter, groups, err, rules)
	}
	for i, group := range groups.GetGroups() {
		if group.GetIssuesCount() != rules[group.GetRulePath()] || i > 0 && groups.GetGroups()[i-1].GetIssuesCount() < group.GetIssuesCount() {
			rt.Fatalf("%v: %v, want %v", c.filter, groups, rules)
		}
	}
	filters, err := client.GetIssueFilters(ctx, &findingsv1.GetIssueFiltersRequest{DeploymentId: of.DeploymentID, Filter: c.filter, IssueTypes: c.types})
	if err != nil || filters.GetTotal() != int64(len(chosen)) {
		rt.Fatalf("%v: %v %v, want %d findings", c.filter, filters, err, len(chosen))
	}
	for _, facet := range filters.GetFacets() {
		total := int64(0)
		for _, value := range facet.GetValues() {
			total += value.GetCount()
			if want, severity := severities[value.GetValue()]; severity && value.GetCount() != want {
				rt.Fatalf("%v: %v, want %v", c.filter, facet, severities)
			}
		}
		if field := facet.GetField(); (field == "severities" || field == "refs" || field == "repositoryNames" || field == "rules" || field == "aggregateIssueStates") && total != int64(len(chosen)) {
			rt.Fatalf("%v: %s has %d findings, want %d", c.filter, field, total, len(chosen))
		}
	}
}
