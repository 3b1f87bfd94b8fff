package policies

import (
	"context"

	"entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tag"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/rules/ruleset"
	"github.com/palisade/palisade/services/scans/blocking"
)

// alike are open findings that no policy tells apart.
type alike struct {
	ProjectID  int64   `sql:"project_id"`
	RuleID     int64   `sql:"rule_id"`
	Product    string  `sql:"issue_type"`
	Severity   string  `sql:"severity"`
	Exposure   *string `sql:"exposure"`
	Validation *string `sql:"validation_state"`
	Verdict    *string `sql:"autotriage_verdict"`
	Tool       string  `sql:"tool"`
	Category   string  `sql:"analysis_category"`
	PolicyMode *string `sql:"policy_mode"`
	// Uploaded matters for findings of scanners without a policy mode only; 0 for others.
	Uploaded int   `sql:"uploaded"`
	Findings int32 `sql:"findings"`
}

// touched are the policies before and after a change that apply to findings; nil if there is none.
type touched struct {
	entry         *policiesv1.RemediationPolicyDiffEntry
	before, after *remediation.Policy
	// sameActions says that only the findings count that one of them applies to, but not the other.
	sameActions bool
}

// countTouched sets how many open findings each change of a dry run touches.
func countTouched(ctx context.Context, reader *ent.Client, changes ...[]*policiesv1.RemediationPolicyDiffEntry) error {
	var list []touched
	for _, entries := range changes {
		for _, entry := range entries {
			one, err := touchedBy(entry)
			if err != nil {
				return err
			}
			if one.before != nil || one.after != nil {
				list = append(list, one)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	groups, err := openGroups(ctx, reader)
	if err != nil || len(groups) == 0 {
		return err
	}
	facts, err := factsOf(ctx, reader, groups)
	if err != nil {
		return err
	}
	for i := range groups {
		if facts[i] == nil {
			continue
		}
		for _, one := range list {
			before, after := one.before != nil && one.before.Applies(facts[i]), one.after != nil && one.after.Applies(facts[i])
			if before != after || before && !one.sameActions {
				one.entry.OpenFindings += groups[i].Findings
			}
		}
	}
	return nil
}

// touchedBy compiles what a change concerns.
func touchedBy(entry *policiesv1.RemediationPolicyDiffEntry) (one touched, err error) {
	one.entry = entry
	if one.before, err = active(entry.GetBefore()); err != nil {
		return one, err
	}
	if one.after, err = active(entry.GetAfter()); err != nil {
		return one, err
	}
	actions := func(of *policiesv1.RemediationPolicy) *policiesv1.RemediationPolicy {
		return &policiesv1.RemediationPolicy{Actions: remediation.Canonical(of).GetActions()}
	}
	one.sameActions = proto.Equal(actions(entry.GetBefore()), actions(entry.GetAfter()))
	return one, nil
}

// active compiles a policy; nil if it does nothing.
func active(of *policiesv1.RemediationPolicy) (*remediation.Policy, error) {
	compiled, err := remediation.CompileActive([]*policiesv1.RemediationPolicy{of})
	if err != nil || len(compiled) == 0 {
		return nil, err
	}
	return &compiled[0], nil
}

// openGroups counts the open findings on primary branches by what policies compare.
func openGroups(ctx context.Context, reader *ent.Client) (groups []alike, err error) {
	open := []string{lifecycle.Open, lifecycle.Reviewing, lifecycle.Fixing, lifecycle.ProvisionallyIgnored}
	err = reader.Finding.Query().Where(store.OneOf(finding.FieldStatus, open)).Modify(onPrimaryBranch, func(f *sql.Selector) {
		columns := []string{
			f.C(finding.FieldProjectID), f.C(finding.FieldRuleID), f.C(finding.FieldIssueType), f.C(finding.FieldSeverity), f.C(finding.FieldExposure),
			f.C(finding.FieldValidationState), f.C(finding.FieldAutotriageVerdict), f.C(finding.FieldTool), f.C(finding.FieldAnalysisCategory),
			f.C(finding.FieldPolicyMode),
		}
		uploads := sql.Dialect(f.Dialect()).Table(scan.Table).As("uploads")
		uploaded := sql.ExprFunc(func(b *sql.Builder) {
			first := sql.Dialect(f.Dialect()).Select(uploads.C(scan.FieldID)).From(uploads).Where(sql.And(
				sql.ColumnsEQ(uploads.C(scan.FieldID), f.C(finding.FieldFirstSeenScanID)), sql.IsNull(uploads.C(scan.FieldUniqueID))))
			b.WriteString("CASE WHEN ").Ident(f.C(finding.FieldPolicyMode)).WriteString(" IS NULL AND ").Ident(f.C(finding.FieldTool)).
				WriteString(" = '" + ruleset.Tool + "' AND ").Ident(f.C(finding.FieldAnalysisCategory)).WriteString(" = '' AND EXISTS (").
				Join(first).WriteString(") THEN 1 ELSE 0 END")
		})
		f.Select(columns...).AppendSelectExprAs(uploaded, "uploaded").AppendSelect(sql.As(sql.Count("*"), "findings"))
		f.GroupBy(append(columns, "uploaded")...)
	}).Scan(ctx, &groups)
	return groups, err
}

// onPrimaryBranch selects the findings on the primary branch of each project, or on all refs while it has none.
func onPrimaryBranch(f *sql.Selector) {
	owner := sql.Table(project.Table).As("owner")
	f.Join(owner).On(f.C(finding.FieldProjectID), owner.C(project.FieldID))
	f.Where(sql.P(func(b *sql.Builder) {
		b.WriteString("COALESCE(NULLIF(" + owner.C(project.FieldPrimaryBranch) + ", ''), " + owner.C(project.FieldDefaultBranch) +
			") IN ('', " + f.C(finding.FieldRef) + ")")
	}))
}

// factsOf returns what policies compare of findings, in canonical words; nil for findings that they do not count.
func factsOf(ctx context.Context, reader *ent.Client, groups []alike) ([]*remediation.Facts, error) {
	ruleIDs, projectIDs := make([]int64, len(groups)), make([]int64, len(groups))
	for i, g := range groups {
		ruleIDs[i], projectIDs[i] = g.RuleID, g.ProjectID
	}
	rules, projects, tags := map[int64]*ent.Rule{}, map[int64]*ent.Project{}, map[int64][]string{}
	ruleRows, err := reader.Rule.Query().Where(store.WithIDs[predicate.Rule](ruleIDs)).
		Select(rule.FieldID, rule.FieldName, rule.FieldCategory, rule.FieldConfidence).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range ruleRows {
		rules[row.ID] = row
	}
	projectRows, err := reader.Project.Query().Where(store.WithIDs[predicate.Project](projectIDs)).Select(project.FieldID, project.FieldName).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range projectRows {
		projects[row.ID] = row
	}
	links, err := reader.ProjectTag.Query().Where(store.OneOf(projecttag.FieldProjectID, projectIDs)).All(ctx)
	if err != nil {
		return nil, err
	}
	if len(links) > 0 {
		names, err := reader.Tag.Query().Select(tag.FieldID, tag.FieldName).All(ctx)
		if err != nil {
			return nil, err
		}
		byID := map[int64]string{}
		for _, row := range names {
			byID[row.ID] = row.Name
		}
		for _, link := range links {
			tags[link.ProjectID] = append(tags[link.ProjectID], byID[link.TagID])
		}
	}
	facts := make([]*remediation.Facts, len(groups))
	for i, g := range groups {
		f := &ent.Finding{
			IssueType: g.Product, Severity: g.Severity, Exposure: g.Exposure, ValidationState: g.Validation, AutotriageVerdict: g.Verdict,
			Tool: g.Tool, AnalysisCategory: g.Category, PolicyMode: g.PolicyMode,
		}
		if projects[g.ProjectID] == nil || !blocking.Counts(f, g.Uploaded != 0) {
			continue
		}
		of := remediation.FactsOf(f, rules[g.RuleID])
		of.Project, of.Tags, of.Status = projects[g.ProjectID].Name, tags[g.ProjectID], lifecycle.Open
		canonical := of.Canonical()
		facts[i] = &canonical
	}
	return facts, nil
}
