package list

import (
	"context"
	"math"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
)

// monitored is the policy mode of findings without a policy.
const monitored = "rule-board-audit"

// Filter selects findings of one deployment and issue type. An empty field selects all findings. A field that the
// contract defines for some issue types only is ignored for the others.
type Filter struct {
	DeploymentID int64
	IssueType    string
	Since        float64 // seconds since 1970

	Repos         []string // case-insensitive
	RepositoryIDs []int64
	ProjectTags   []string
	Visibilities  []string
	Ref           string

	Status        string
	TriageReasons []string // used with status ignored only
	Severities    []string
	ComponentTags []string

	Policies   []string // sast
	Rules      []string // sast, secrets
	Categories []string // sast
	Confidence string   // sast
	Verdict    string   // sast

	Exposures      []string // sca
	Transitivities []string // sca
	Dependencies   []string // sca
	EPSS           []string // sca
	Malicious      *bool    // sca
	ClickToFix     []string // sast, sca

	SecretTypes       []string // secrets
	ValidationStates  []string // secrets
	IncludeHistorical bool     // secrets
}

// condition is one condition of a filter, with the facts that merges need.
type condition struct {
	where  predicate.Finding
	column string
	// numValues is how many values of the column the condition selects; 0 if it cannot drive an index.
	numValues int
	values    any  // []string, []int64 or true
	none      bool // it selects nothing, because the object that it names does not exist
}

// isOneOf selects findings with one of the values in the column.
func isOneOf(column string, values ...string) condition {
	c := condition{column: column, numValues: len(values), values: values}
	if len(values) == 1 {
		c.where = entsql.FieldEQ(column, values[0])
	} else {
		c.where = store.OneOf(column, values)
	}
	return c
}

// hasID selects findings by the ids of their rule or project. where is the condition on the ids.
func hasID(column string, ids []int64, where predicate.Finding) condition {
	return condition{where: where, column: column, numValues: len(ids), values: ids, none: len(ids) == 0}
}

// Predicates returns the filter as predicates on findings. It looks up the names of projects and rules. The database
// chooses the driving index.
func (f *Filter) Predicates(ctx context.Context, db *ent.Client) ([]predicate.Finding, error) {
	list, err := f.conditions(ctx, db)
	if err != nil {
		return nil, err
	}
	return f.plain(list), nil
}

// plain returns the conditions without a merge.
func (f *Filter) plain(list []condition) []predicate.Finding {
	where := make([]predicate.Finding, 0, len(list)+2)
	where = append(where, finding.DeploymentID(f.DeploymentID), finding.IssueType(f.IssueType))
	for _, c := range list {
		where = append(where, c.where)
	}
	return where
}

// conditions returns all conditions except the deployment and the issue type. It resolves names of projects and rules
// to ids first, so that the indexes by project and by rule apply.
func (f *Filter) conditions(ctx context.Context, db *ent.Client) (list []condition, err error) {
	if f.Status != "" {
		list = append(list, isOneOf(finding.FieldStatus, f.Status))
	} else {
		list = append(list, condition{where: finding.StatusNEQ(lifecycle.Removed), column: finding.FieldStatus})
	}
	if f.Since != 0 {
		since := finding.RelevantSinceGTE(microseconds(f.Since))
		list = append(list, condition{where: since, column: finding.FieldRelevantSince})
	}
	projects, err := f.projects(ctx, db.Project)
	if err != nil {
		return nil, err
	}
	list = append(list, projects...)
	if f.Status == lifecycle.Ignored {
		list = addIn(list, finding.FieldTriageReason, f.TriageReasons)
	}
	list = addIn(list, finding.FieldSeverity, f.Severities)
	list = addIn(list, finding.FieldComponentTag, f.ComponentTags)
	switch f.Ref {
	case "":
	case gitref.Default:
		list = append(list, condition{where: issuefilter.OnPrimaryBranch(f.DeploymentID), column: finding.FieldRef})
	default:
		list = append(list, isOneOf(finding.FieldRef, gitref.Full(f.Ref)))
	}
	rules, err := f.byRule(ctx, db.Rule)
	if err != nil {
		return nil, err
	}
	list = append(list, rules...)
	return append(list, f.forIssueType()...), nil
}

// forIssueType returns the conditions that apply to some issue types only.
func (f *Filter) forIssueType() (list []condition) {
	switch f.IssueType {
	case vocabulary.SAST:
		list = addPolicies(list, f.Policies)
		if f.Verdict != "" {
			list = append(list, isOneOf(finding.FieldAutotriageVerdict, f.Verdict))
		}
	case vocabulary.SCA:
		list = addIn(list, finding.FieldExposure, f.Exposures)
		list = addIn(list, finding.FieldTransitivity, f.Transitivities)
		list = addIn(list, finding.FieldPackage, f.Dependencies)
		list = addIn(list, finding.FieldEpssProbability, f.EPSS)
		if f.Malicious != nil && *f.Malicious {
			is := issuefilter.IsMalicious
			list = append(list, condition{where: is, column: finding.FieldMalicious, numValues: 1, values: true})
		} else if f.Malicious != nil {
			list = append(list, condition{where: finding.MaliciousIsNil(), column: finding.FieldMalicious})
		}
	case vocabulary.Secrets:
		list = addIn(list, finding.FieldValidationState, f.ValidationStates)
		if !f.IncludeHistorical {
			list = append(list, condition{where: finding.HistoricalIsNil(), column: finding.FieldHistorical})
		}
	}
	if f.IssueType == vocabulary.SAST || f.IssueType == vocabulary.SCA {
		list = addIn(list, finding.FieldClickToFixState, f.ClickToFix)
	}
	return list
}

// projects returns the conditions on the project of a finding.
func (f *Filter) projects(ctx context.Context, db *ent.ProjectClient) (list []condition, err error) {
	if len(f.RepositoryIDs) > 0 {
		list = append(list, inProjects(f.RepositoryIDs))
	}
	if len(f.Repos) == 0 && len(f.ProjectTags) == 0 && len(f.Visibilities) == 0 {
		if len(f.RepositoryIDs) > 0 {
			return list, nil
		}
		return visibleProjects(ctx, db)
	}
	query := db.Query()
	if len(f.Repos) > 0 {
		keys := make([]string, len(f.Repos))
		for i, name := range f.Repos {
			keys[i] = strings.ToLower(name)
		}
		query.Where(store.OneOf(project.FieldNameKey, keys))
	}
	if len(f.Visibilities) > 0 {
		query.Where(store.OneOf(project.FieldVisibility, f.Visibilities))
	}
	if len(f.ProjectTags) > 0 {
		query.Where(tagged(f.DeploymentID, f.ProjectTags))
	}
	ids, err := query.IDs(ctx)
	if err != nil {
		return nil, err
	}
	return append(list, inProjects(ids)), nil
}

// visibleProjects returns a condition on the projects that the caller sees, if they are few. The index by project then
// drives the query. The privacy policy alone hides their number from the planner, which would scan the findings of all
// projects until the page is full.
func visibleProjects(ctx context.Context, db *ent.ProjectClient) ([]condition, error) {
	if _, limited := tenant.Teams(ctx); !limited {
		return nil, nil
	}
	const few = 50
	ids, err := db.Query().Limit(few + 1).IDs(ctx)
	if err != nil || len(ids) > few {
		return nil, err
	}
	return []condition{inProjects(ids)}, nil
}

// inProjects limits findings to projects. Many ids become one parameter: databases cap the number of parameters.
func inProjects(ids []int64) condition {
	const few = 1000
	if len(ids) <= few {
		return hasID(finding.FieldProjectID, ids, store.OneOf(finding.FieldProjectID, ids))
	}
	return condition{column: finding.FieldProjectID, where: func(s *entsql.Selector) {
		s.Where(store.InIDs(s.C(finding.FieldProjectID), ids))
	}}
}

// byRule returns the condition on the rule of a finding. Categories and confidence apply to sast. The types of secrets,
// which are rule names, apply to secrets.
func (f *Filter) byRule(ctx context.Context, db *ent.RuleClient) ([]condition, error) {
	where := []predicate.Rule{rule.DeploymentID(f.DeploymentID)}
	add := func(field string, words []string) {
		if len(words) > 0 {
			where = append(where, store.OneOf(field, words))
		}
	}
	switch f.IssueType {
	case vocabulary.SAST:
		add(rule.FieldName, f.Rules)
		add(rule.FieldCategory, f.Categories)
		if f.Confidence != "" {
			add(rule.FieldConfidence, []string{f.Confidence})
		}
	case vocabulary.Secrets:
		add(rule.FieldName, f.Rules)
		add(rule.FieldName, f.SecretTypes)
	}
	if len(where) == 1 {
		return nil, nil
	}
	// A few rules use the index by rule. Many rules match most of the list, so scanning it in its order until the page is
	// full is cheaper.
	const few = 50
	ids, err := db.Query().Where(where...).Limit(few + 1).IDs(ctx)
	if err != nil {
		return nil, err
	}
	if len(ids) <= few {
		return []condition{hasID(finding.FieldRuleID, ids, store.OneOf(finding.FieldRuleID, ids))}, nil
	}
	return []condition{{column: finding.FieldRuleID, where: func(s *entsql.Selector) {
		rules := entsql.Dialect(s.Dialect()).Select(rule.FieldID).From(entsql.Table(rule.Table))
		for _, p := range where {
			p(rules)
		}
		s.Where(entsql.In(s.C(finding.FieldRuleID), rules))
	}}}, nil
}

// addPolicies adds the condition on the policy mode. Findings without a policy count as monitored.
func addPolicies(list []condition, modes []string) []condition {
	if !slices.Contains(modes, monitored) {
		return addIn(list, finding.FieldPolicyMode, modes)
	}
	named := store.OneOf(finding.FieldPolicyMode, distinct(modes))
	return append(list, condition{column: finding.FieldPolicyMode, where: finding.Or(named, finding.PolicyModeIsNil())})
}

func addIn(list []condition, column string, values []string) []condition {
	if len(values) == 0 {
		return list
	}
	return append(list, isOneOf(column, distinct(values)...))
}

// tagged limits projects to the ones with any of the tags.
func tagged(deploymentID int64, names []string) predicate.Project {
	return func(s *entsql.Selector) {
		link, label := entsql.Table(projecttag.Table), entsql.Table(tag.Table)
		s.Where(entsql.In(s.C(project.FieldID), entsql.Dialect(s.Dialect()).Select(link.C(projecttag.FieldProjectID)).
			From(link).Join(label).On(label.C(tag.FieldID), link.C(projecttag.FieldTagID)).
			Where(entsql.And(
				entsql.EQ(link.C(projecttag.FieldDeploymentID), deploymentID),
				entsql.EQ(label.C(tag.FieldDeploymentID), deploymentID),
				store.In(label.C(tag.FieldName), names),
			))))
	}
}

func microseconds(seconds float64) int64 {
	return int64(math.Round(math.Max(-1e12, math.Min(1e12, seconds)) * 1e6))
}
