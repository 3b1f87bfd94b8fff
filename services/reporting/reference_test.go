package reporting_test

import (
	"context"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/reporting/bucket"
)

// reference computes reports by definition: for each finding, event and bucket.
type reference struct {
	filters  *reportingv1.ReportFilters
	projects map[int64]*ent.Project
	rules    map[int64]*ent.Rule
	tags     map[int64][]string // by project
	teams    map[int64][]string // names and ids of a project's teams and their parents
	findings []replay
	period   bucket.Period
	buckets  []bucket.Period
}

type replay struct {
	*ent.Finding
	events []change
}

func newReference(t testing.TB, s *apitest.Server, deploymentID int64, f *reportingv1.ReportFilters) *reference {
	t.Helper()
	ctx, db := s.System(t), s.Store.Reader
	r := &reference{filters: f, projects: map[int64]*ent.Project{}, rules: map[int64]*ent.Rule{}, tags: map[int64][]string{}, teams: map[int64][]string{}}
	for _, p := range db.Project.Query().Where(project.DeploymentID(deploymentID)).AllX(ctx) {
		r.projects[p.ID] = p
	}
	for _, x := range db.Rule.Query().Where(rule.DeploymentID(deploymentID)).AllX(ctx) {
		r.rules[x.ID] = x
	}
	for _, link := range db.ProjectTag.Query().AllX(ctx) {
		r.tags[link.ProjectID] = append(r.tags[link.ProjectID], db.Tag.GetX(ctx, link.TagID).Name)
	}
	for _, link := range db.TeamProject.Query().AllX(ctx) {
		for id := &link.TeamID; id != nil; {
			team := db.Team.GetX(ctx, *id)
			r.teams[link.ProjectID] = append(r.teams[link.ProjectID], team.Name, strconv.FormatInt(team.ID, 10))
			id = team.ParentID
		}
	}
	r.readFindings(ctx, db, deploymentID)
	size := map[reportingv1.TimeBucketSize]bucket.Size{1: bucket.Day, 2: bucket.Week, 3: bucket.Month}[f.GetTimeBucketSize()]
	r.period = bucket.Period{Since: f.GetTimePeriod().GetSince().AsTime(), Until: f.GetTimePeriod().GetUntil().AsTime()}
	var err error
	if r.buckets, err = bucket.Make(r.period.Since, r.period.Until, size); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *reference) readFindings(ctx context.Context, db *ent.Client, deploymentID int64) {
	events := map[int64][]change{}
	for _, e := range db.FindingEvent.Query().Where(findingevent.DeploymentID(deploymentID)).Order(ent.Asc(findingevent.FieldID)).AllX(ctx) {
		at := e.At
		if list := events[e.FindingID]; len(list) > 0 {
			at = max(at, list[len(list)-1].at) // clocks differ: the order of events counts
		}
		events[e.FindingID] = append(events[e.FindingID], change{at, e.ToStatus})
	}
	for _, f := range db.Finding.Query().Where(finding.DeploymentID(deploymentID)).Order(ent.Asc(finding.FieldID)).AllX(ctx) {
		r.findings = append(r.findings, replay{f, events[f.ID]})
	}
}

func open(status string) bool {
	return slices.Contains([]string{"open", "reviewing", "fixing"}, status)
}

// at is the status before a time; "" before the finding was found.
func (f replay) at(end time.Time) (status string) {
	for _, e := range f.events {
		if e.at < end.UnixMicro() {
			status = e.to
		}
	}
	return status
}

// age is the age in seconds of a finding that is open at a time.
func (f replay) age(end time.Time) int {
	var opened int64
	before := ""
	for _, e := range f.events {
		if e.at < end.UnixMicro() {
			if open(e.to) && !open(before) {
				opened = e.at
			}
			before = e.to
		}
	}
	return int((end.UnixMicro() - opened/1_000_000*1_000_000) / 1_000_000)
}

func (f replay) product() string {
	return map[string]string{"sast": "code", "ai_sast": "code", "sca": "sca", "secrets": "secrets"}[f.IssueType]
}

func word(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// chosen reports whether a finding matches the filters and its ref is part of the report.
func (r *reference) chosen(f replay, pulls bool) bool {
	p := r.projects[f.ProjectID]
	if p == nil || p.ArchivedAt != nil {
		return false
	}
	branch := p.PrimaryBranch
	if branch == "" {
		branch = p.DefaultBranch
	}
	if pulls && (branch == "" || f.Ref == branch) || !pulls && branch != "" && f.Ref != branch {
		return false
	}
	q, x := r.filters, r.rules[f.RuleID]
	named := slices.ContainsFunc(q.GetProjects(), func(name string) bool { return strings.EqualFold(name, p.Name) })
	if len(q.GetProjects())+len(q.GetProjectIds()) > 0 && !named && !slices.Contains(q.GetProjectIds(), p.ID) {
		return false
	}
	some := func(wanted []string, have ...string) bool {
		return len(wanted) == 0 || slices.ContainsFunc(have, func(h string) bool { return slices.Contains(wanted, h) })
	}
	reach, valid, verdict := word(f.Exposure), word(f.ValidationState), word(f.AutotriageVerdict)
	if reach == "" || reach == "unknown" {
		reach = "NO_REACHABILITY_ANALYSIS"
	}
	if valid == "" {
		valid = "no_validator"
	}
	if verdict == "" {
		verdict = "no_verdict"
	}
	return some(q.GetTags(), r.tags[p.ID]...) && some(q.GetTeams(), r.teams[p.ID]...) &&
		some(q.GetRuleIds(), x.Name, strconv.FormatInt(x.ID, 10)) && some(q.GetFindingCategories(), x.Category) &&
		enums(q.GetConfidence(), "FINDING_CONFIDENCE_", x.Confidence) && enums(q.GetFindingTypes(), "FINDING_TYPE_", f.product()) &&
		enums(q.GetFindingSeverities(), "FINDING_SEVERITY_", f.Severity) && enums(q.GetReachability(), "FINDING_REACHABILITY_", reach) &&
		enums(q.GetValidity(), "FINDING_VALIDITY_", valid) && enums(q.GetAiVerdicts(), "VERDICT_", verdict) &&
		enums(q.GetDeploymentStatuses(), "DEPLOYMENT_STATUS_", "UNKNOWN") && enums(q.GetPublicExposures(), "PUBLIC_EXPOSURE_", "UNKNOWN")
}

// each calls fn for each matching finding.
func (r *reference) each(pulls bool, fn func(replay)) {
	for _, f := range r.findings {
		if r.chosen(f, pulls) {
			fn(f)
		}
	}
}

// medians by group at the end of each bucket.
func (r *reference) medians(group func(replay) string) []map[string]int32 {
	list := make([]map[string]int32, len(r.buckets))
	for i, b := range r.buckets {
		ages := map[string][]int{}
		r.each(false, func(f replay) {
			if open(f.at(b.Until)) {
				ages[group(f)] = append(ages[group(f)], f.age(b.Until))
			}
		})
		list[i] = map[string]int32{}
		for name, of := range ages {
			sort.Ints(of)
			list[i][name] = int32((of[(len(of)-1)/2] + of[len(of)/2]) / 2 / int(day.Seconds()))
		}
	}
	return list
}

// backlog by group at the end of each bucket.
func (r *reference) backlog(group func(replay) string) []map[string]int32 {
	list := make([]map[string]int32, len(r.buckets))
	for i, b := range r.buckets {
		list[i] = map[string]int32{}
		r.each(false, func(f replay) {
			if open(f.at(b.Until)) {
				list[i][group(f)]++
			}
		})
	}
	return list
}

// moves counts the moves of a period by kind.
func (r *reference) moves(p bucket.Period) map[string]int32 {
	n := map[string]int32{}
	r.each(false, func(f replay) {
		for kind, count := range f.moves(p) {
			n[kind] += count
		}
	})
	n["net"] = n["opened"] - n["ignored"] - n["fixed"] - n["removed"] - n["provisionally_ignored"]
	return n
}

func (f replay) moves(p bucket.Period) map[string]int32 {
	n, before := map[string]int32{}, ""
	for _, e := range f.events {
		if p.Contains(time.UnixMicro(e.at)) && open(before) != open(e.to) {
			if open(e.to) {
				n["opened"]++
			} else {
				n[e.to]++
			}
		}
		before = e.to
	}
	return n
}

// appeared counts the outcomes of pull request findings that appeared in a bucket.
func (r *reference) appeared(p bucket.Period) map[string]int32 {
	n := map[string]int32{}
	r.each(true, func(f replay) {
		if !p.Contains(time.UnixMicro(f.events[0].at)) {
			return
		}
		became := "open"
		for _, e := range f.events {
			if e.at < p.Until.UnixMicro() && e.to != "removed" {
				became = map[string]string{"fixed": "fixed", "ignored": "ignored", "provisionally_ignored": "provisionally_ignored"}[e.to]
			}
		}
		if mode := word(f.PolicyMode); mode == "" || mode == "rule-board-audit" {
			became = "silenced"
		} else if became == "" {
			became = "open"
		}
		n[became]++
		n["all"]++
	})
	return n
}

func timePeriod(b bucket.Period) *reportingv1.TimePeriod {
	return &reportingv1.TimePeriod{Since: timestamppb.New(b.Since), Until: timestamppb.New(b.Until)}
}
