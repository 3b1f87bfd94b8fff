package policies

import (
	"cmp"
	"maps"
	"slices"
	"time"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/scans/backtest"
)

const (
	// mostListed is the maximum number of projects and of rules in an answer.
	mostListed = 100
	// mostExamples is the maximum number of examples.
	mostExamples = 20
)

// tally counts hits. They come project by project, and finding by finding, so that it keeps no sets of findings.
type tally struct {
	policies []remediation.Policy
	// actions are the types of actions, sorted, and of has the actions of each policy, by number.
	actions []string
	of      [][]int
	total   []count
	// byPolicy and latest are in the order of the policies.
	byPolicy [][]count
	latest   [][]backtest.Hit
	byDay    map[int64][]count
	byRule   map[int64][]count
	projects []*policiesv1.BackTestProject
	// The current project: its counts, and the policies of each scan with hits.
	project []count
	scans   []*scanHits
}

// count is how many findings and scans an action concerns. finding is the last one that was counted.
type count struct {
	finding         int64
	findings, scans int32
}

func (c *count) addFinding(id int64) {
	if c.finding != id {
		c.finding = id
		c.findings++
	}
}

// scanHits are the policies and the actions that apply to any finding of a scan.
type scanHits struct {
	policies, actions []bool
	day               int64
}

func newTally(policies []remediation.Policy) *tally {
	t := &tally{policies: policies, of: make([][]int, len(policies)), byDay: map[int64][]count{}, byRule: map[int64][]count{}}
	for i := range policies {
		t.actions = append(t.actions, policies[i].Actions()...)
	}
	slices.Sort(t.actions)
	t.actions = slices.Compact(t.actions)
	for i := range policies {
		for _, action := range policies[i].Actions() {
			t.of[i] = append(t.of[i], slices.Index(t.actions, action))
		}
		t.byPolicy = append(t.byPolicy, t.counts())
	}
	t.total, t.project, t.latest = t.counts(), t.counts(), make([][]backtest.Hit, len(policies))
	return t
}

func (t *tally) counts() []count { return make([]count, len(t.actions)) }

// dayOf is the day of a time, since 1970 in UTC.
func dayOf(micros int64) int64 { return micros / (24 * time.Hour).Microseconds() }

// add counts a hit.
func (t *tally) add(h *backtest.Hit) {
	if t.scans == nil {
		t.scans = make([]*scanHits, h.Project.Scans)
	}
	day := dayOf(h.EndedAt)
	scan := t.scans[h.ScanNumber]
	if scan == nil {
		scan = &scanHits{make([]bool, len(t.policies)), make([]bool, len(t.actions)), day}
		t.scans[h.ScanNumber] = scan
	}
	onDay, ofRule := t.counted(t.byDay, day), t.counted(t.byRule, h.Rule)
	for _, p := range h.Policies {
		scan.policies[p] = true
		t.keepExample(p, h)
		for _, a := range t.of[p] {
			scan.actions[a] = true
			t.byPolicy[p][a].addFinding(h.Finding)
			t.total[a].addFinding(h.Finding)
			t.project[a].addFinding(h.Finding)
			onDay[a].addFinding(h.Finding)
			ofRule[a].addFinding(h.Finding)
		}
	}
}

func (t *tally) counted(of map[int64][]count, key int64) []count {
	if of[key] == nil {
		of[key] = t.counts()
	}
	return of[key]
}

// keepExample keeps the latest hits of a policy, of different findings.
func (t *tally) keepExample(policy int, h *backtest.Hit) {
	kept := t.latest[policy]
	if len(kept) == mostExamples && kept[len(kept)-1].EndedAt >= h.EndedAt {
		return
	}
	if at := slices.IndexFunc(kept, func(of backtest.Hit) bool { return of.Finding == h.Finding }); at >= 0 {
		if kept[at].EndedAt >= h.EndedAt {
			return
		}
		kept = slices.Delete(kept, at, at+1)
	}
	at, _ := slices.BinarySearchFunc(kept, *h, laterFirst)
	kept = slices.Insert(kept, at, *h)
	t.latest[policy] = kept[:min(len(kept), mostExamples)]
}

func laterFirst(a, b backtest.Hit) int {
	return cmp.Or(cmp.Compare(b.EndedAt, a.EndedAt), cmp.Compare(a.Finding, b.Finding))
}

// endProject counts the scans of a project.
func (t *tally) endProject(p *backtest.Project) {
	for _, scan := range t.scans {
		if scan == nil {
			continue
		}
		for a, applies := range scan.actions {
			if applies {
				t.total[a].scans++
				t.project[a].scans++
				t.byDay[scan.day][a].scans++
			}
		}
		for policy, applies := range scan.policies {
			if applies {
				for _, a := range t.of[policy] {
					t.byPolicy[policy][a].scans++
				}
			}
		}
	}
	if t.scans != nil {
		t.projects = append(t.projects, &policiesv1.BackTestProject{ProjectId: p.ID, Project: p.Name, Actions: t.list(t.project)})
	}
	t.scans, t.project = nil, t.counts()
}

// list writes counts, by action, without zeros.
func (t *tally) list(counts []count) (list []*policiesv1.BackTestCount) {
	for a, c := range counts {
		if c.findings > 0 {
			list = append(list, &policiesv1.BackTestCount{Action: t.actions[a], Scans: c.scans, Findings: c.findings})
		}
	}
	return list
}

// write writes the counts into an answer.
func (t *tally) write(summary *backtest.Summary, into *policiesv1.BackTestRemediationPoliciesResponse) {
	into.Scans, into.Findings = int32(summary.Scans), int32(summary.Findings) //nolint:gosec // bounded by the replay
	into.Actions = t.list(t.total)
	for _, day := range slices.Sorted(maps.Keys(t.byDay)) {
		into.Days = append(into.Days, &policiesv1.BackTestDay{Day: dayText(day), Actions: t.list(t.byDay[day])})
	}
	slices.SortStableFunc(t.projects, func(a, b *policiesv1.BackTestProject) int {
		return cmp.Or(cmp.Compare(mostScans(b.GetActions()), mostScans(a.GetActions())), cmp.Compare(a.GetProjectId(), b.GetProjectId()))
	})
	into.Projects = t.projects[:min(len(t.projects), mostListed)]
	into.ProjectsOmitted = int32(len(t.projects) - len(into.GetProjects())) //nolint:gosec // a deployment has fewer projects
	for i := range t.policies {
		into.Policies = append(into.Policies, &policiesv1.BackTestPolicy{Slug: t.policies[i].Slug(), Name: t.policies[i].Name(), Actions: t.list(t.byPolicy[i])})
	}
	t.writeRules(summary, into)
	t.writeExamples(summary, into)
}

func mostScans(counts []*policiesv1.BackTestCount) (most int32) {
	for _, c := range counts {
		most = max(most, c.GetScans())
	}
	return most
}

// writeRules writes the rules with the most findings.
func (t *tally) writeRules(summary *backtest.Summary, into *policiesv1.BackTestRemediationPoliciesResponse) {
	most := func(counts []count) (n int32) {
		for _, c := range counts {
			n = max(n, c.findings)
		}
		return n
	}
	ids := slices.SortedFunc(maps.Keys(t.byRule), func(a, b int64) int {
		return cmp.Or(cmp.Compare(most(t.byRule[b]), most(t.byRule[a])), cmp.Compare(summary.RuleNames[a], summary.RuleNames[b]), cmp.Compare(a, b))
	})
	into.RulesOmitted = int32(len(ids) - min(len(ids), mostListed)) //nolint:gosec // fewer than findings
	for _, id := range ids[:min(len(ids), mostListed)] {
		rule := &policiesv1.BackTestRule{Rule: summary.RuleNames[id]}
		for _, c := range t.list(t.byRule[id]) {
			rule.Actions = append(rule.Actions, &policiesv1.BackTestRuleCount{Action: c.GetAction(), Findings: c.GetFindings()})
		}
		into.Rules = append(into.Rules, rule)
	}
}

// writeExamples takes examples of each policy in turn.
func (t *tally) writeExamples(summary *backtest.Summary, into *policiesv1.BackTestRemediationPoliciesResponse) {
	for turn := range mostExamples {
		for p, kept := range t.latest {
			if turn >= len(kept) || len(into.GetExamples()) == mostExamples {
				continue
			}
			h := kept[turn]
			into.Examples = append(into.Examples, &policiesv1.BackTestExample{
				FindingId: h.Finding, ScanId: h.Scan, Project: h.Project.Name, Ref: h.Ref, Rule: summary.RuleNames[h.Rule],
				PolicySlug: t.policies[p].Slug(), Actions: t.policies[p].Actions(), Day: dayText(dayOf(h.EndedAt)),
			})
		}
	}
}

func dayText(day int64) string {
	return store.Time(day * (24 * time.Hour).Microseconds()).Format(time.DateOnly)
}
