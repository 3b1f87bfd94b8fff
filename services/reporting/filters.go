package reporting

import (
	"context"
	"slices"
	"strconv"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/teamproject"
	"github.com/palisade/palisade/ent/tenant"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/internal/store"
)

// refScope selects the refs of a project for a report.
type refScope int

const (
	// primary: the primary branch; all refs of a project without one.
	primary refScope = iota
	// others: refs other than the primary branch; none of a project without one.
	others
)

// chosen is the result of a request's filters.
type chosen struct {
	columns.Filter
	projects map[int64]*ent.Project
}

// choose looks up the filters' names. It reads projects with the caller's policies, so invisible projects are not
// selected.
func (s *Reports) choose(ctx context.Context, f *reportingv1.ReportFilters, refs refScope, columnsOf *columns.Snapshot) (*chosen, error) {
	projects, err := s.projects(ctx, f)
	if err != nil {
		return nil, err
	}
	c := &chosen{projects: projects}
	if c.Rules, err = s.rules(ctx, f, columnsOf.Rules()); err != nil {
		return nil, err
	}
	c.Places = make([]bool, len(columnsOf.Places()))
	for i, place := range columnsOf.Places() {
		if p, ok := projects[place.Project]; ok {
			c.Places[i] = inScope(p, place.Ref, refs)
		}
	}
	c.Attrs = attrsOf(f)
	return c, nil
}

// inScope reports whether a report includes a ref of a project.
func inScope(p *ent.Project, ref string, refs refScope) bool {
	branch := p.PrimaryBranch
	if branch == "" {
		branch = p.DefaultBranch
	}
	if refs == others {
		return branch != "" && ref != branch
	}
	return branch == "" || ref == branch
}

// projects returns the projects that match the filters and that the caller may see, by id, without archived ones.
func (s *Reports) projects(ctx context.Context, f *reportingv1.ReportFilters) (map[int64]*ent.Project, error) {
	query := s.store.Reader.Project.Query().Where(project.ArchivedAtIsNil())
	var named []predicate.Project
	if len(f.GetProjectIds()) > 0 {
		named = append(named, inIDs(f.GetProjectIds()))
	}
	if len(f.GetProjects()) > 0 {
		keys := make([]string, len(f.GetProjects())) // in any letter case, like the filters of findings
		for i, name := range f.GetProjects() {
			keys[i] = strings.ToLower(name)
		}
		named = append(named, store.OneOf(project.FieldNameKey, keys))
	}
	if len(named) > 0 {
		query.Where(project.Or(named...))
	}
	if len(f.GetTags()) > 0 {
		ids, err := s.tagged(ctx, f.GetTags())
		if err != nil {
			return nil, err
		}
		query.Where(inIDs(ids))
	}
	if len(f.GetTeams()) > 0 {
		ids, err := s.ofTeams(ctx, f.GetTeams())
		if err != nil {
			return nil, err
		}
		query.Where(inIDs(ids))
	}
	rows, err := query.Select(project.FieldID, project.FieldName, project.FieldPrimaryBranch, project.FieldDefaultBranch).All(ctx)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*ent.Project, len(rows))
	for _, row := range rows {
		byID[row.ID] = row
	}
	return byID, nil
}

// inIDs filters projects by any number of ids.
func inIDs(ids []int64) predicate.Project {
	return func(s *entsql.Selector) { s.Where(store.InIDs(s.C(project.FieldID), ids)) }
}

// tagged returns the projects with at least one of the tags.
func (s *Reports) tagged(ctx context.Context, names []string) ([]int64, error) {
	tags, err := s.store.Reader.Tag.Query().Where(store.OneOf(tag.FieldName, names)).IDs(ctx)
	if err != nil || len(tags) == 0 {
		return nil, err
	}
	var ids []int64
	err = s.store.Reader.ProjectTag.Query().Where(store.OneOf(projecttag.FieldTagID, tags)).Select(projecttag.FieldProjectID).Scan(ctx, &ids)
	return ids, err
}

// ofTeams returns the projects of teams, given by id or name, and of their subteams. Teams that the caller may not know
// of are like missing ones.
func (s *Reports) ofTeams(ctx context.Context, names []string) ([]int64, error) {
	teams, err := s.store.Reader.Team.Query().Select(team.FieldID, team.FieldName, team.FieldParentID).All(ctx)
	if err != nil {
		return nil, err
	}
	if seen, limited := tenant.Teams(ctx); limited {
		teams = slices.DeleteFunc(teams, func(t *ent.Team) bool { return !slices.Contains(seen, t.ID) })
	}
	wanted := map[int64]bool{}
	for _, t := range teams {
		if slices.Contains(names, t.Name) || slices.Contains(names, strconv.FormatInt(t.ID, 10)) {
			wanted[t.ID] = true
		}
	}
	for grown := true; grown; { // at most three levels
		grown = false
		for _, t := range teams {
			if t.ParentID != nil && wanted[*t.ParentID] && !wanted[t.ID] {
				wanted[t.ID], grown = true, true
			}
		}
	}
	ids := make([]int64, 0, len(wanted))
	for id := range wanted {
		ids = append(ids, id)
	}
	var projects []int64
	err = s.store.Reader.TeamProject.Query().Where(func(q *entsql.Selector) {
		q.Where(store.InIDs(q.C(teamproject.FieldTeamID), ids))
	}).Select(teamproject.FieldProjectID).Scan(ctx, &projects)
	return projects, err
}

// rules reports for each rule of the columns whether it matches the filters; nil means all.
func (s *Reports) rules(ctx context.Context, f *reportingv1.ReportFilters, known []int64) ([]bool, error) {
	var where []predicate.Rule
	if names := f.GetRuleIds(); len(names) > 0 {
		where = append(where, rule.Or(store.OneOf(rule.FieldName, names), store.OneOf(rule.FieldID, numbers(names))))
	}
	if categories := f.GetFindingCategories(); len(categories) > 0 {
		where = append(where, store.OneOf(rule.FieldCategory, categories))
	}
	if words := given(f.GetConfidence(), confidences); len(words) > 0 {
		where = append(where, store.OneOf(rule.FieldConfidence, words))
	}
	if len(where) == 0 {
		return nil, nil
	}
	ids, err := s.store.Reader.Rule.Query().Where(where...).IDs(ctx)
	if err != nil {
		return nil, err
	}
	chosen := make(map[int64]bool, len(ids))
	for _, id := range ids {
		chosen[id] = true
	}
	list := make([]bool, len(known))
	for i, id := range known {
		list[i] = chosen[id]
	}
	return list, nil
}

// numbers returns the words that are ids.
func numbers(words []string) []int64 {
	ids := []int64{}
	for _, word := range words {
		if id, err := strconv.ParseInt(word, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// Maps from the contract's words to the tables'; "" stands for unknown.
var (
	confidences = map[reportingv1.FindingConfidence]string{
		reportingv1.FindingConfidence_FINDING_CONFIDENCE_LOW: "low", reportingv1.FindingConfidence_FINDING_CONFIDENCE_MEDIUM: "medium",
		reportingv1.FindingConfidence_FINDING_CONFIDENCE_HIGH: "high",
	}
	severities = map[reportingv1.FindingSeverity]string{
		reportingv1.FindingSeverity_FINDING_SEVERITY_LOW: "low", reportingv1.FindingSeverity_FINDING_SEVERITY_MEDIUM: "medium",
		reportingv1.FindingSeverity_FINDING_SEVERITY_HIGH: "high", reportingv1.FindingSeverity_FINDING_SEVERITY_CRITICAL: "critical",
	}
	reachabilities = map[reportingv1.FindingReachability]string{
		reportingv1.FindingReachability_FINDING_REACHABILITY_REACHABLE:                "reachable",
		reportingv1.FindingReachability_FINDING_REACHABILITY_ALWAYS_REACHABLE:         "always_reachable",
		reportingv1.FindingReachability_FINDING_REACHABILITY_CONDITIONALLY_REACHABLE:  "conditionally_reachable",
		reportingv1.FindingReachability_FINDING_REACHABILITY_UNREACHABLE:              "unreachable",
		reportingv1.FindingReachability_FINDING_REACHABILITY_NO_REACHABILITY_ANALYSIS: "",
	}
	validities = map[reportingv1.FindingValidity]string{
		reportingv1.FindingValidity_FINDING_VALIDITY_VALID: "valid", reportingv1.FindingValidity_FINDING_VALIDITY_INVALID: "invalid",
		reportingv1.FindingValidity_FINDING_VALIDITY_ERROR: "error", reportingv1.FindingValidity_FINDING_VALIDITY_NO_VALIDATOR: "",
	}
	verdicts = map[reportingv1.Verdict]string{
		reportingv1.Verdict_VERDICT_TRUE_POSITIVE: "true_positive", reportingv1.Verdict_VERDICT_FALSE_POSITIVE: "false_positive",
		reportingv1.Verdict_VERDICT_NO_VERDICT: "",
	}
	products = map[reportingv1.FindingType]columns.Product{
		reportingv1.FindingType_FINDING_TYPE_CODE: columns.Code, reportingv1.FindingType_FINDING_TYPE_SCA: columns.SCA,
		reportingv1.FindingType_FINDING_TYPE_SECRETS: columns.Secrets,
	}
)

// given translates the words of a filter and skips UNSPECIFIED.
func given[W, T comparable](words []W, table map[W]T) []T {
	var list []T
	for _, word := range words {
		if translated, ok := table[word]; ok {
			list = append(list, translated)
		}
	}
	return list
}

// attrsOf reports for each value of an Attr whether it matches the filters.
func attrsOf(f *reportingv1.ReportFilters) *[columns.Attrs]bool {
	chosen := new([columns.Attrs]bool)
	if impossible(f) {
		return chosen
	}
	types, severe := given(f.GetFindingTypes(), products), given(f.GetFindingSeverities(), severities)
	reachable, valid := given(f.GetReachability(), reachabilities), given(f.GetValidity(), validities)
	said := given(f.GetAiVerdicts(), verdicts)
	for i := range chosen {
		attr := columns.Attr(i)
		if len(types)+len(severe)+len(reachable)+len(valid)+len(said) == 0 {
			chosen[i] = true
			continue
		}
		words := attr.Words()
		chosen[i] = either(types, attr.Product()) && either(severe, words.Severity) && either(reachable, words.Exposure) &&
			either(valid, words.Validation) && either(said, words.Verdict)
	}
	return chosen
}

// either reports whether a filter is empty or contains the word.
func either[T comparable](words []T, word T) bool {
	return len(words) == 0 || slices.Contains(words, word)
}

// impossible reports whether the filters match no finding: all values are UNKNOWN.
func impossible(f *reportingv1.ReportFilters) bool {
	return onlyKnown(f.GetDeploymentStatuses(), reportingv1.DeploymentStatus_DEPLOYMENT_STATUS_UNKNOWN) ||
		onlyKnown(f.GetPublicExposures(), reportingv1.PublicExposure_PUBLIC_EXPOSURE_UNKNOWN)
}

// onlyKnown reports whether there are words other than UNSPECIFIED (0), and none of them is the value unknown.
func onlyKnown[W ~int32](words []W, unknown W) bool {
	return slices.ContainsFunc(words, func(w W) bool { return w != 0 }) && !slices.Contains(words, unknown)
}
