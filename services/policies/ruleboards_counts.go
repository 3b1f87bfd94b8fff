package policies

import (
	"context"
	"slices"
	"strings"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/ruleboardproject"
	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// ruleCount is the number of findings of a rule in one status.
type ruleCount struct {
	Rule     string `sql:"name"`
	Status   string `sql:"status"`
	Findings int64  `sql:"findings"`
}

// GetRuleboardFindingCounts counts the findings of each rule in the board's projects, with one query for the findings.
func (s *Ruleboards) GetRuleboardFindingCounts(ctx context.Context, r *policiesv1.GetRuleboardFindingCountsRequest) (*policiesv1.GetRuleboardFindingCountsResponse, error) {
	b, err := boardBySlug(ctx, s.store.Reader, r.GetRuleboardSlug())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.Finding.Query().Where(finding.IssueType(b.product), b.inProjects(ctx))
	if r.GetSince() != nil {
		query.Where(finding.RelevantSinceGTE(store.Micros(r.GetSince().AsTime())))
	}
	if r.GetUntil() != nil {
		query.Where(finding.RelevantSinceLT(store.Micros(r.GetUntil().AsTime())))
	}
	deploymentID, _ := tenant.FromContext(ctx)
	var counts []ruleCount
	err = query.Modify(func(f *sql.Selector) {
		of := sql.Table(rule.Table).As("checked")
		f.Join(of).On(f.C(finding.FieldRuleID), of.C(rule.FieldID))
		f.Where(sql.EQ(of.C(rule.FieldDeploymentID), deploymentID))
		f.Select(of.C(rule.FieldName), f.C(finding.FieldStatus), sql.As(sql.Count("*"), "findings"))
		f.GroupBy(of.C(rule.FieldName), f.C(finding.FieldStatus))
	}).Scan(ctx, &counts)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(counts, func(a, b ruleCount) int { return strings.Compare(a.Rule, b.Rule) })
	response := &policiesv1.GetRuleboardFindingCountsResponse{}
	var item *policiesv1.RuleFindingCounts
	var fixed, ignored int64
	for _, count := range counts {
		if item == nil || item.GetRuleName() != count.Rule {
			item, fixed, ignored = &policiesv1.RuleFindingCounts{RuleName: count.Rule}, 0, 0
			response.Items = append(response.Items, item)
		}
		item.Total += count.Findings
		switch count.Status {
		case lifecycle.Open, lifecycle.Reviewing, lifecycle.Fixing:
			item.Open += count.Findings
		case lifecycle.Fixed:
			fixed += count.Findings
		case lifecycle.Ignored, lifecycle.ProvisionallyIgnored:
			ignored += count.Findings
		}
		item.FixRate, item.IgnoreRate = float64(fixed)/float64(item.GetTotal()), float64(ignored)/float64(item.GetTotal())
	}
	return response, nil
}

// inProjects selects the findings of the board's projects. A default board has all projects without another board of
// its product.
func (b board) inProjects(ctx context.Context) func(*sql.Selector) {
	return func(f *sql.Selector) {
		deploymentID, _ := tenant.FromContext(ctx)
		link := sql.Dialect(f.Dialect()).Table(ruleboardproject.Table)
		which := sql.And(sql.EQ(link.C(ruleboardproject.FieldDeploymentID), deploymentID), sql.EQ(link.C(ruleboardproject.FieldProduct), b.product))
		if !b.isDefault() {
			which = sql.And(which, sql.EQ(link.C(ruleboardproject.FieldRuleboardID), b.rowID))
		}
		assigned := sql.Dialect(f.Dialect()).Select(link.C(ruleboardproject.FieldProjectID)).From(link).Where(which)
		if b.isDefault() {
			f.Where(sql.NotIn(f.C(finding.FieldProjectID), assigned))
		} else {
			f.Where(sql.In(f.C(finding.FieldProjectID), assigned))
		}
	}
}
