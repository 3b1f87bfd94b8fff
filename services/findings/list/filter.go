package list

import (
	"context"
	"math"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
)

// Filter selects findings of one deployment and issue type. An empty field selects all findings. A field that the
// contract defines for some issue types only is ignored for the others, unless the filter is strict.
type Filter struct {
	DeploymentID int64
	IssueType    string
	Since        float64 // seconds since 1970
	// Strict applies every field to every issue type. Writes need this: an ignored field would widen what they change.
	Strict bool

	Repos         []string // case-insensitive
	RepositoryIDs []int64
	ProjectTags   []string
	Visibilities  []string
	Refs          []string

	Statuses      []string
	TriageReasons []string // apply to findings with status ignored, if the filter names this status
	Severities    []string
	ComponentTags []string

	Policies    []string // sast
	Rules       []string // sast, secrets
	Categories  []string // sast
	Confidences []string // sast
	Verdicts    []string // sast

	Exposures      []string // sca
	Transitivities []string // sca
	Dependencies   []string // sca
	EPSS           []string // sca
	Malicious      *bool    // sca
	KnownExploit   *bool    // sca
	ClickToFix     []string // sast, sca

	SecretTypes       []string // secrets
	ValidationStates  []string // secrets
	IncludeHistorical bool     // secrets
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
func (f *Filter) plain(list []issuefilter.Condition) []predicate.Finding {
	where := make([]predicate.Finding, 0, len(list)+2)
	where = append(where, finding.DeploymentID(f.DeploymentID), finding.IssueType(f.IssueType))
	for _, c := range list {
		where = append(where, c.Where)
	}
	return where
}

// conditions returns all conditions except the deployment and the issue type. It resolves names of projects and rules
// to ids first, so that the indexes by project and by rule apply.
func (f *Filter) conditions(ctx context.Context, db *ent.Client) (list []issuefilter.Condition, err error) {
	list = f.byStatus()
	if f.Since != 0 {
		list = append(list, issuefilter.Condition{Column: finding.FieldRelevantSince, Where: finding.RelevantSinceGTE(microseconds(f.Since))})
	}
	projects, err := issuefilter.InProjects(ctx, db.Project, f.RepositoryIDs, issuefilter.ProjectNames{
		Names: f.Repos, Visibilities: f.Visibilities, Tags: f.ProjectTags,
	})
	if err != nil {
		return nil, err
	}
	list = append(list, projects...)
	list = addIn(list, finding.FieldSeverity, f.Severities)
	list = addIn(list, finding.FieldComponentTag, f.ComponentTags)
	list = append(list, issuefilter.Refs(f.DeploymentID, f.Refs)...)
	rules, err := issuefilter.OfRules(ctx, db.Rule, f.rules())
	if err != nil {
		return nil, err
	}
	list = append(list, rules...)
	return append(list, f.forIssueType()...), nil
}

// byStatus returns the conditions on the status and the reason to ignore. Findings that are ignored in code have no
// stored reason; filters call that no_triage_reason.
func (f *Filter) byStatus() (list []issuefilter.Condition) {
	if len(f.Statuses) == 0 {
		return []issuefilter.Condition{{Column: finding.FieldStatus, Where: finding.StatusNEQ(lifecycle.Removed)}}
	}
	list = addIn(list, finding.FieldStatus, f.Statuses)
	if !slices.Contains(f.Statuses, lifecycle.Ignored) || len(f.TriageReasons) == 0 {
		return list
	}
	reasons := issuefilter.OneOf(finding.FieldTriageReason, f.TriageReasons...)
	without := func(where predicate.Finding) issuefilter.Condition {
		return issuefilter.Condition{Column: finding.FieldTriageReason, Where: where}
	}
	if slices.Contains(f.TriageReasons, lifecycle.NoTriageReason) {
		reasons = without(finding.Or(reasons.Where, finding.TriageReasonIsNil()))
	}
	others := slices.DeleteFunc(distinct(f.Statuses), func(s string) bool { return s == lifecycle.Ignored })
	if len(others) > 0 {
		reasons = without(finding.Or(store.OneOf(finding.FieldStatus, others), reasons.Where))
	}
	return append(list, reasons)
}

// rules returns the names of rules for the issue type. Categories and confidence apply to sast, and the types of
// secrets to secrets.
func (f *Filter) rules() issuefilter.RuleNames {
	if f.Strict {
		return issuefilter.RuleNames{Names: f.Rules, Categories: f.Categories, Confidences: f.Confidences, SecretTypes: f.SecretTypes}
	}
	switch f.IssueType {
	case vocabulary.SAST:
		return issuefilter.RuleNames{Names: f.Rules, Categories: f.Categories, Confidences: f.Confidences}
	case vocabulary.Secrets:
		return issuefilter.RuleNames{Names: f.Rules, SecretTypes: f.SecretTypes}
	}
	return issuefilter.RuleNames{}
}

// forIssueType returns the conditions that apply to some issue types only.
func (f *Filter) forIssueType() (list []issuefilter.Condition) {
	applies := func(issueType string) bool { return f.Strict || f.IssueType == issueType }
	if applies(vocabulary.SAST) {
		if len(f.Policies) > 0 {
			list = append(list, issuefilter.Policies(f.DeploymentID, f.Policies))
		}
		list = addIn(list, finding.FieldAutotriageVerdict, f.Verdicts)
	}
	if applies(vocabulary.SCA) {
		list = addIn(list, finding.FieldExposure, f.Exposures)
		list = addIn(list, finding.FieldTransitivity, f.Transitivities)
		list = addIn(list, finding.FieldPackage, f.Dependencies)
		list = addIn(list, finding.FieldEpssProbability, f.EPSS)
		if f.Malicious != nil {
			list = append(list, issuefilter.Malicious(f.DeploymentID, *f.Malicious))
		}
		if f.KnownExploit != nil {
			list = append(list, issuefilter.KnownExploit(f.DeploymentID, *f.KnownExploit))
		}
	}
	if applies(vocabulary.Secrets) {
		list = addIn(list, finding.FieldValidationState, f.ValidationStates)
	}
	if f.IssueType == vocabulary.Secrets && !f.IncludeHistorical {
		list = append(list, issuefilter.NotHistorical(f.DeploymentID))
	}
	if applies(vocabulary.SAST) || applies(vocabulary.SCA) {
		list = addIn(list, finding.FieldClickToFixState, f.ClickToFix)
	}
	return list
}

func addIn(list []issuefilter.Condition, column string, values []string) []issuefilter.Condition {
	if len(values) == 0 {
		return list
	}
	return append(list, issuefilter.OneOf(column, values...))
}

func microseconds(seconds float64) int64 {
	return int64(math.Round(math.Max(-1e12, math.Min(1e12, seconds)) * 1e6))
}
