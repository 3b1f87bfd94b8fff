package findings

import (
	"context"
	"math"
	"strings"

	"entgo.io/ent/dialect"
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
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
)

// Issue types.
const (
	sast    = "sast"
	sca     = "sca"
	aiSast  = "ai_sast"
	secrets = "secrets"
)

// monitored is the policy mode of findings that no policy names.
const monitored = "rule-board-audit"

// filter chooses findings. Empty fields choose all; fields that the contract gives for some issue types only are passed
// over for the others.
type filter struct {
	deploymentID int64
	issueType    string
	since        float64 // seconds since 1970
	ids          []int64

	repos         []string // without regard to case
	repositoryIDs []int64
	projectTags   []string
	visibilities  []string
	ref           string

	status        string
	triageReasons []string // looked at only with status ignored
	severities    []string
	componentTags []string

	policies   []string // sast
	rules      []string // sast, secrets
	categories []string // sast
	confidence string   // sast
	verdict    string   // sast

	exposures      []string // sca
	transitivities []string // sca
	dependencies   []string // sca
	epss           []string // sca
	malicious      *bool    // sca
	clickToFix     []string // sast, sca

	secretTypes       []string // secrets
	validationStates  []string // secrets
	includeHistorical bool     // secrets
}

// predicates turns the filter into conditions on findings. Names of projects and rules are looked up first, so that the
// conditions can use the indexes by project and by rule.
func (f *filter) predicates(ctx context.Context, db *ent.Client) ([]predicate.Finding, error) {
	where := []predicate.Finding{
		finding.DeploymentID(f.deploymentID),
		finding.IssueType(f.issueType),
	}
	if f.status != "" {
		where = append(where, finding.Status(f.status))
	} else {
		where = append(where, finding.StatusNEQ(lifecycle.Removed))
	}
	if f.since != 0 {
		where = append(where, finding.RelevantSinceGTE(microseconds(f.since)))
	}
	if len(f.ids) > 0 {
		where = append(where, withIDs(f.ids))
	}
	projects, err := f.projects(ctx, db.Project)
	if err != nil {
		return nil, err
	}
	where = append(where, projects...)
	if f.status == lifecycle.Ignored {
		where = addIn(where, finding.FieldTriageReason, f.triageReasons)
	}
	where = addIn(where, finding.FieldSeverity, f.severities)
	where = addIn(where, finding.FieldComponentTag, f.componentTags)
	switch f.ref {
	case "":
	case gitref.Default:
		where = append(where, issuefilter.OnPrimaryBranch(f.deploymentID))
	default:
		where = append(where, onRef(gitref.Full(f.ref), len(projects) > 0))
	}
	rules, err := f.byRule(ctx, db.Rule)
	if err != nil {
		return nil, err
	}
	where = append(where, rules...)
	return append(where, f.forIssueType()...), nil
}

// forIssueType gives the conditions that apply to some issue types only.
func (f *filter) forIssueType() (where []predicate.Finding) {
	switch f.issueType {
	case sast:
		where = addPolicies(where, f.policies)
		if f.verdict != "" {
			where = append(where, finding.AutotriageVerdict(f.verdict))
		}
	case sca:
		where = addIn(where, finding.FieldExposure, f.exposures)
		where = addIn(where, finding.FieldTransitivity, f.transitivities)
		where = addIn(where, finding.FieldPackage, f.dependencies)
		where = addIn(where, finding.FieldEpssProbability, f.epss)
		if f.malicious != nil && *f.malicious {
			where = append(where, issuefilter.IsMalicious)
		} else if f.malicious != nil {
			where = append(where, finding.MaliciousIsNil())
		}
	case secrets:
		where = addIn(where, finding.FieldValidationState, f.validationStates)
		if !f.includeHistorical {
			where = append(where, finding.HistoricalIsNil())
		}
	}
	if f.issueType == sast || f.issueType == sca {
		where = addIn(where, finding.FieldClickToFixState, f.clickToFix)
	}
	return where
}

// projects gives the conditions on the project of a finding.
func (f *filter) projects(ctx context.Context, db *ent.ProjectClient) (where []predicate.Finding, err error) {
	if len(f.repositoryIDs) > 0 {
		where = append(where, finding.ProjectIDIn(f.repositoryIDs...))
	}
	if len(f.repos) == 0 && len(f.projectTags) == 0 && len(f.visibilities) == 0 {
		if len(f.repositoryIDs) > 0 {
			return where, nil
		}
		return ofFewProjects(ctx, db)
	}
	query := db.Query()
	if len(f.repos) > 0 {
		keys := make([]string, len(f.repos))
		for i, name := range f.repos {
			keys[i] = strings.ToLower(name)
		}
		query.Where(project.NameKeyIn(keys...))
	}
	if len(f.visibilities) > 0 {
		query.Where(project.VisibilityIn(f.visibilities...))
	}
	if len(f.projectTags) > 0 {
		query.Where(tagged(f.deploymentID, f.projectTags))
	}
	ids, err := query.IDs(ctx)
	if err != nil {
		return nil, err
	}
	return append(where, inProjects(ids)), nil
}

// onRef chooses the findings on a ref. Among those of a few projects they are found along the index by project, which holds
// the ref as well: the plus keeps SQLite from indexes by project and ref that are in no order. It would take these because
// refs of pull requests are small, and then sort all findings of a main branch for one page.
func onRef(ref string, amongProjects bool) predicate.Finding {
	if !amongProjects {
		return finding.Ref(ref)
	}
	return func(s *entsql.Selector) {
		column := s.C(finding.FieldRef)
		if s.Dialect() == dialect.SQLite {
			column = "+" + column
		}
		s.Where(entsql.P(func(b *entsql.Builder) { b.WriteString(column).WriteOp(entsql.OpEQ).Arg(ref) }))
	}
}

// ofFewProjects names the projects of callers who see few: their findings are then read along the index by project. The
// policy that limits the callers to them does not tell the database how few they are, which would read the findings of
// all projects in the order of the list until the page is full.
func ofFewProjects(ctx context.Context, db *ent.ProjectClient) ([]predicate.Finding, error) {
	if _, limited := tenant.Teams(ctx); !limited {
		return nil, nil
	}
	const few = 50
	ids, err := db.Query().Limit(few + 1).IDs(ctx)
	if err != nil || len(ids) > few {
		return nil, err
	}
	return []predicate.Finding{finding.ProjectIDIn(ids...)}, nil
}

// inProjects limits findings to projects, however many: databases cap the number of parameters.
func inProjects(ids []int64) predicate.Finding {
	const few = 1000
	if len(ids) <= few {
		return finding.ProjectIDIn(ids...)
	}
	return func(s *entsql.Selector) { s.Where(store.InIDs(s.C(finding.FieldProjectID), ids)) }
}

// byRule gives the condition on the rule of a finding. Categories and confidence are for sast, the types of secrets (the
// names of their rules) for secrets.
func (f *filter) byRule(ctx context.Context, db *ent.RuleClient) ([]predicate.Finding, error) {
	where := []predicate.Rule{rule.DeploymentID(f.deploymentID)}
	add := func(field string, words []string) {
		if len(words) > 0 {
			where = append(where, entsql.FieldIn(field, words...))
		}
	}
	switch f.issueType {
	case sast:
		add(rule.FieldName, f.rules)
		add(rule.FieldCategory, f.categories)
		if f.confidence != "" {
			add(rule.FieldConfidence, []string{f.confidence})
		}
	case secrets:
		add(rule.FieldName, f.rules)
		add(rule.FieldName, f.secretTypes)
	}
	if len(where) == 1 {
		return nil, nil
	}
	// The findings of a few rules are read along the index by rule. Those of many are most of the list: it is read in its
	// order instead, and stops when the page is full.
	const few = 50
	ids, err := db.Query().Where(where...).Limit(few + 1).IDs(ctx)
	if err != nil {
		return nil, err
	}
	if len(ids) <= few {
		return []predicate.Finding{finding.RuleIDIn(ids...)}, nil
	}
	return []predicate.Finding{func(s *entsql.Selector) {
		rules := entsql.Dialect(s.Dialect()).Select(rule.FieldID).From(entsql.Table(rule.Table))
		for _, p := range where {
			p(rules)
		}
		s.Where(entsql.In(s.C(finding.FieldRuleID), rules))
	}}, nil
}

// addPolicies counts findings that no policy names as monitored.
func addPolicies(where []predicate.Finding, modes []string) []predicate.Finding {
	if len(modes) == 0 {
		return where
	}
	named := finding.PolicyModeIn(modes...)
	for _, mode := range modes {
		if mode == monitored {
			return append(where, finding.Or(named, finding.PolicyModeIsNil()))
		}
	}
	return append(where, named)
}

func addIn(where []predicate.Finding, field string, values []string) []predicate.Finding {
	switch len(values) {
	case 0:
		return where
	case 1:
		return append(where, entsql.FieldEQ(field, values[0]))
	}
	return append(where, entsql.FieldIn(field, values...))
}

// tagged limits projects to those that carry any of the tags.
func tagged(deploymentID int64, names []string) predicate.Project {
	return func(s *entsql.Selector) {
		link, label := entsql.Table(projecttag.Table), entsql.Table(tag.Table)
		s.Where(entsql.In(s.C(project.FieldID), entsql.Dialect(s.Dialect()).Select(link.C(projecttag.FieldProjectID)).
			From(link).Join(label).On(label.C(tag.FieldID), link.C(projecttag.FieldTagID)).
			Where(entsql.And(
				entsql.EQ(link.C(projecttag.FieldDeploymentID), deploymentID),
				entsql.EQ(label.C(tag.FieldDeploymentID), deploymentID),
				entsql.In(label.C(tag.FieldName), anys(names)...),
			))))
	}
}

// withIDs limits findings to ids, however many.
func withIDs(ids []int64) predicate.Finding {
	return func(s *entsql.Selector) { s.Where(store.InIDs(s.C(finding.FieldID), ids)) }
}

func microseconds(seconds float64) int64 {
	return int64(math.Round(math.Max(-1e12, math.Min(1e12, seconds)) * 1e6))
}

func anys(words []string) []any {
	list := make([]any, len(words))
	for i, w := range words {
		list[i] = w
	}
	return list
}
