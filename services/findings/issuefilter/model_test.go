package issuefilter_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/ai/memory"
	"github.com/palisade/palisade/services/internal/apitest"
)

var (
	paths     = []string{"", "src/app", "src/app/a.py", "src/application/b.py", "Src/app/c%.py", "a_b.py"}
	ages      = []time.Duration{0, hour, 2 * day, 8 * day, 40 * day, 400 * day}
	refs      = []string{"refs/heads/main", "refs/heads/release", "refs/pull/7/merge"}
	verdicts  = []string{"", "true_positive", "false_positive"}
	kinds     = []string{"sast", "sca", "secrets", "ai_sast"}
	states    = []string{"unresolved", "muted", "fixed", "removed"}
	decisions = []string{"untriaged", "ignored", "reopened", "reviewing", "fixing", "provisionally_ignored"}
	reasons   = []string{"", "false_positive", "no_time"}
	policies  = []string{"", "rule-board-audit", "rule-board-block"}
	severity  = []string{"low", "medium", "high", "critical"}
)

func drawFacts(t *rapid.T) []fact {
	one := func(name string, of []string) string { return rapid.SampledFrom(of).Draw(t, name) }
	facts := make([]fact, rapid.IntRange(1, 25).Draw(t, "findings"))
	for i := range facts {
		f := &facts[i]
		*f = fact{
			label: fmt.Sprintf("f%02d", i), kind: one("kind", kinds), project: one("project", []string{"acme/Web", "acme/api", "acme/old"}),
			rule: one("rule", []string{"py.sqli", "py.style", "npm.left"}), ref: one("ref", refs), path: one("path", paths),
			severity: one("severity", severity), state: one("state", states), triage: one("triage", decisions), reason: one("reason", reasons),
			policy: one("policy", policies), verdict: one("verdict", verdicts), age: rapid.SampledFrom(ages).Draw(t, "age"),
		}
		f.print = f.label
		if i > 0 && rapid.Bool().Draw(t, "again") && facts[i-1].ref != f.ref {
			f.print, f.project = facts[i-1].print, facts[i-1].project
		}
		for _, other := range facts[:i] {
			if other.print == f.print && other.ref == f.ref && other.project == f.project {
				f.print = f.label
			}
		}
	}
	return facts
}

// condition is one field of a filter, and its meaning.
type condition struct {
	set   func(w *world, f *findingsv1.IssuesFilter)
	means func(f fact) bool
}

// drawCondition draws a field of the filter with a value. The meanings follow the contract, independently of the SQL.
func drawCondition(t *rapid.T, facts []fact) condition {
	pick := func(of []string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 1, 2, rapid.ID[string]).Draw(t, "values")
	}
	primary := map[string]string{"acme/Web": "refs/heads/main", "acme/api": "refs/heads/release", "acme/old": "refs/heads/main"}
	switch rapid.IntRange(0, 11).Draw(t, "field") {
	case 0:
		words := pick(severity)
		return condition{func(_ *world, f *findingsv1.IssuesFilter) {
			for _, word := range words {
				f.Severities = append(f.Severities, findingsv1.Severity(findingsv1.Severity_value["SEVERITY_"+strings.ToUpper(word)]))
			}
		}, func(f fact) bool { return slices.Contains(words, f.severity) }}
	case 1:
		words := pick(states)
		return condition{func(_ *world, f *findingsv1.IssuesFilter) {
			for _, word := range words {
				f.Status = append(f.Status, findingsv1.IssueStatus(findingsv1.IssueStatus_value["ISSUE_STATUS_"+strings.ToUpper(word)]))
			}
		}, func(f fact) bool { return slices.Contains(words, f.state) }}
	case 2:
		words := pick([]string{"OPEN", "FIXED", "REMOVED", "IGNORED_APP", "IGNORED_CODE", "REVIEWING", "FIXING", "PROVISIONALLY_IGNORED_APP"})
		return condition{func(_ *world, f *findingsv1.IssuesFilter) { f.AggregateIssueStates = aggregates(words...) },
			func(f fact) bool { return slices.Contains(words, stands(f)) }}
	case 3:
		tab := rapid.SampledFrom([]string{"OPEN", "IGNORED", "CLOSED", "REVIEWING", "FIXING", "PROVISIONALLY_IGNORED"}).Draw(t, "tab")
		return condition{func(_ *world, f *findingsv1.IssuesFilter) {
			f.Tab = findingsv1.IssueTab(findingsv1.IssueTab_value["ISSUE_TAB_"+tab])
		},
			func(f fact) bool {
				s := stands(f)
				return s == tab || tab == "CLOSED" && s == "FIXED" || tab == "PROVISIONALLY_IGNORED" && s == tab+"_APP" ||
					tab == "IGNORED" && (s == "IGNORED_APP" || s == "IGNORED_CODE")
			}}
	case 4:
		names := pick([]string{"acme/web", "ACME/api", "acme/none"})
		return condition{func(_ *world, f *findingsv1.IssuesFilter) { f.RepositoryNames = names },
			func(f fact) bool {
				return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, f.project) })
			}}
	case 5:
		names := pick([]string{"main", "refs/heads/release", "refs/pull/7/merge", "_default"})
		return condition{func(_ *world, f *findingsv1.IssuesFilter) { f.Refs = names }, func(f fact) bool {
			return slices.ContainsFunc(names, func(n string) bool {
				return n == f.ref || "refs/heads/"+n == f.ref || n == "_default" && f.ref == primary[f.project]
			})
		}}
	case 6:
		words := pick([]string{"TRUE_POSITIVE", "FALSE_POSITIVE", "NO_VERDICT"})
		return condition{func(_ *world, f *findingsv1.IssuesFilter) {
			for _, word := range words {
				f.AiVerdicts = append(f.AiVerdicts, findingsv1.Verdict(findingsv1.Verdict_value["VERDICT_"+word]))
			}
		}, func(f fact) bool { return slices.Contains(words, strings.ToUpper(cmp.Or(f.verdict, "no_verdict"))) }}
	case 7:
		slugs := pick([]string{"rule-board-audit", "rule-board-block", "other"})
		return condition{func(_ *world, f *findingsv1.IssuesFilter) { f.PolicySlugs = slugs },
			func(f fact) bool { return slices.Contains(slugs, cmp.Or(f.policy, "rule-board-audit")) }}
	case 8:
		part := rapid.SampledFrom([]string{"SRC/app", "%", "_", ".py", "b.PY"}).Draw(t, "part")
		return condition{func(_ *world, f *findingsv1.IssuesFilter) { f.FilePaths = []string{part, "not looked at"} },
			func(f fact) bool { return strings.Contains(strings.ToLower(f.path), strings.ToLower(part)) }}
	case 9:
		since, until := rapid.SampledFrom(ages).Draw(t, "since"), rapid.SampledFrom(ages).Draw(t, "until")
		return condition{func(_ *world, f *findingsv1.IssuesFilter) {
			f.Since, f.Until = timestamppb.New(now.Add(-since)), timestamppb.New(now.Add(-until))
		}, func(f fact) bool { return f.age <= since && f.age >= until }}
	case 10:
		of := rapid.SampledFrom(facts).Draw(t, "parent")
		return condition{func(w *world, f *findingsv1.IssuesFilter) { f.IssueParentIds = w.ids(of.label) },
			func(f fact) bool { return f.print == of.print && f.project == of.project }}
	}
	names, categories := pick([]string{"py.sqli", "py.style", "npm.left"}), pick([]string{"security", "best-practice"})
	return condition{func(_ *world, f *findingsv1.IssuesFilter) { f.Rules, f.Categories = names, categories },
		func(f fact) bool {
			return slices.Contains(names, f.rule) && slices.Contains(categories, checks[f.rule].GetCategory())
		}}
}

// stands is the aggregate state of a finding, in the filter's spelling.
func stands(f fact) string {
	switch {
	case f.state == "fixed" || f.state == "removed":
		return strings.ToUpper(f.state)
	case f.triage == "ignored":
		return "IGNORED_APP"
	case f.triage == "provisionally_ignored":
		return "PROVISIONALLY_IGNORED_APP"
	case f.triage == "reviewing" || f.triage == "fixing":
		return strings.ToUpper(f.triage)
	case f.state == "muted" && f.triage != "reopened":
		return "IGNORED_CODE"
	}
	return "OPEN"
}

// Any filter selects the findings that a loop over all findings selects.
func TestFilterAgainstModel(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		tenants, hits := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			facts := drawFacts(rt)
			tenants++
			w := newWorld(t, s, s.AddTenant(t, fmt.Sprintf("model%d", tenants)))
			w.seed(t, facts...)
			for range 10 {
				f, archived := &findingsv1.IssuesFilter{}, rapid.IntRange(0, 5).Draw(rt, "archived") == 0
				f.IncludeArchived = archived
				conditions := make([]condition, rapid.IntRange(0, 3).Draw(rt, "conditions"))
				for i := range conditions {
					conditions[i] = drawCondition(rt, facts)
				}
				// If a field is drawn twice, the first value counts.
				used := map[string]bool{}
				conditions = slices.DeleteFunc(conditions, func(c condition) bool {
					alone := &findingsv1.IssuesFilter{}
					c.set(w, alone)
					name := fieldsOf(alone)
					defer func() { used[name] = true }()
					return used[name]
				})
				for _, c := range conditions {
					c.set(w, f)
				}
				var want []string
				for _, one := range facts {
					if one.state != "removed" && (one.project == "acme/old") == archived && !slices.ContainsFunc(conditions, func(c condition) bool { return !c.means(one) }) {
						want = append(want, one.label)
					}
				}
				hits += len(want)
				if got := w.chosen(t, f); got != strings.Join(want, " ") {
					rt.Fatalf("%v:\n got %s\nwant %s\nof %+v", f, got, strings.Join(want, " "), facts)
				}
			}
		})
		if hits == 0 {
			t.Error("nothing was chosen: the test is worth nothing")
		}
	})
}

func fieldsOf(f *findingsv1.IssuesFilter) (name string) {
	m := f.ProtoReflect()
	for i := range m.Descriptor().Fields().Len() {
		if field := m.Descriptor().Fields().Get(i); m.Has(field) {
			name += string(field.Name()) + " "
		}
	}
	return name
}

// memoryIdInScope and memory.InScope agree.
func TestScopeInSQLAndInGo(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		tenants := 0
		rapid.Check(t, func(rt *rapid.T) {
			facts := drawFacts(rt)
			tenants++
			w := newWorld(t, s, s.AddTenant(t, fmt.Sprintf("scope%d", tenants)))
			w.seed(t, facts...)
			for range 5 {
				m := w.drawMemory(t, rt)
				var want []string
				for _, f := range facts {
					about := memory.Facts{RuleID: w.rules[f.rule], ProjectID: w.projects[f.project], Path: f.path, VulnerabilityClasses: checks[f.rule].GetVulnerabilityClasses()}
					if f.project == "acme/Web" {
						about.ProjectTagIDs = []int64{w.tags["pci"]}
					}
					if f.state != "removed" && f.project != "acme/old" && memory.InScope(m, about) {
						want = append(want, f.label)
					}
				}
				if got := w.chosen(t, &findingsv1.IssuesFilter{MemoryIdInScope: fmt.Sprint(m.ID)}); got != strings.Join(want, " ") {
					rt.Fatalf("%v:\n got %s\nwant %s", m, got, strings.Join(want, " "))
				}
			}
		})
	})
}

func (w *world) drawMemory(t testing.TB, rt *rapid.T) (m *ent.AiMemory) {
	t.Helper()
	some := func(name string) bool { return rapid.IntRange(0, 2).Draw(rt, name) == 0 }
	w.write(t, func(ctx context.Context, tx *ent.Tx) (err error) {
		create := tx.AiMemory.Create().SetDeploymentID(w.DeploymentID).SetContent("x").SetContext([]string{}).SetCreatedAt(1).SetUpdatedAt(1).
			SetStage(rapid.SampledFrom([]string{"live", "suggested", "deleted"}).Draw(rt, "stage")).SetPathPrefixes([]string{})
		if some("rule") {
			create.SetRuleID(w.rules["py.sqli"])
		}
		if some("project") {
			create.SetProjectID(w.projects["acme/Web"])
		}
		if some("tag") {
			create.SetProjectTagID(w.tags["pci"])
		}
		if some("class") {
			create.SetVulnerabilityClass(rapid.SampledFrom([]string{"SQL Injection", "XPath Injection", "Injection", "SQL"}).Draw(rt, "class"))
		}
		if some("paths") {
			create.SetPathPrefixes(rapid.SliceOfN(rapid.SampledFrom([]string{"src", "src/app", "Src", "a_b.py", "a%", "b.py"}), 1, 2).Draw(rt, "prefixes"))
		}
		m, err = create.Save(ctx)
		return err
	})
	return m
}
