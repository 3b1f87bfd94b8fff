package supplychain

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
)

// defaultAdvised is the default page size of the projects of an advisory (contract facts, section 6).
const defaultAdvised = 25

// advised is a project with findings of an advisory.
type advised struct {
	ProjectID int64  `sql:"project_id"`
	Name      string `sql:"name"`
	Findings  int32  `sql:"findings"`
}

// ListFindingsForAdvisory counts the findings of an advisory by project and branch. Archived projects do not count.
func (s *SupplyChain) ListFindingsForAdvisory(ctx context.Context, r *supplychainv1.ListFindingsForAdvisoryRequest) (*supplychainv1.ListFindingsForAdvisoryResponse, error) {
	size := pageSize(r.PageSize, defaultAdvised)
	where := []predicate.Finding{finding.Advisory(strings.ToUpper(r.GetAdvisoryId())), finding.IssueType(vocabulary.SCA),
		finding.StatusIn(lifecycle.Open, lifecycle.Reviewing, lifecycle.Fixing)}
	var groups []advised
	err := s.store.Reader.Finding.Query().Where(where...).Modify(func(sel *entsql.Selector) {
		p := entsql.Dialect(sel.Dialect()).Table(project.Table)
		sel.Join(p).On(p.C(project.FieldID), sel.C(finding.FieldProjectID)).Where(entsql.IsNull(p.C(project.FieldArchivedAt))).
			Select(sel.C(finding.FieldProjectID), p.C(project.FieldName)).AppendSelectExprAs(entsql.Raw("COUNT(*)"), "findings").
			GroupBy(sel.C(finding.FieldProjectID), p.C(project.FieldName)).OrderExpr(entsql.Raw("COUNT(*) DESC, " + p.C(project.FieldName))).Limit(size + 1)
		if after := r.GetCursorProjectName(); after != "" {
			sel.Having(entsql.P(func(b *entsql.Builder) {
				b.WriteString("COUNT(*) < ").Arg(r.GetCursorFindingCount())
				b.WriteString(" OR COUNT(*) = ").Arg(r.GetCursorFindingCount())
				b.WriteString(" AND " + p.C(project.FieldName) + " > ").Arg(after)
			}))
		}
	}).Scan(ctx, &groups)
	if err != nil || len(groups) == 0 {
		return &supplychainv1.ListFindingsForAdvisoryResponse{}, err
	}
	out := &supplychainv1.ListFindingsForAdvisoryResponse{HasMore: len(groups) > size}
	if out.HasMore {
		groups = groups[:size]
		out.CursorFindingCount, out.CursorProjectName = groups[size-1].Findings, groups[size-1].Name
	}
	if err := s.addBranches(ctx, out, groups, where); err != nil {
		return nil, err
	}
	newest, err := s.store.Reader.Finding.Query().Where(where...).Aggregate(ent.Max(finding.FieldRuleID)).Int(ctx)
	out.RuleId = strconv.Itoa(newest)
	return out, err
}

// addBranches adds the projects with their branches.
func (s *SupplyChain) addBranches(ctx context.Context, out *supplychainv1.ListFindingsForAdvisoryResponse, groups []advised, where []predicate.Finding) error {
	ids := make([]int64, len(groups))
	for i, g := range groups {
		ids[i] = g.ProjectID
	}
	var branches []struct {
		ProjectID int64  `sql:"project_id"`
		Ref       string `sql:"ref"`
		Findings  int32  `sql:"findings"`
	}
	err := s.store.Reader.Finding.Query().Where(where...).Where(store.OneOf(finding.FieldProjectID, ids)).Modify(func(sel *entsql.Selector) {
		sel.Select(sel.C(finding.FieldProjectID), sel.C(finding.FieldRef)).AppendSelectExprAs(entsql.Raw("COUNT(*)"), "findings").
			GroupBy(sel.C(finding.FieldProjectID), sel.C(finding.FieldRef))
	}).Scan(ctx, &branches)
	if err != nil {
		return err
	}
	for _, g := range groups {
		summary := &supplychainv1.ProjectFindingSummary{ProjectName: g.Name, TotalFindingCount: g.Findings}
		for _, b := range branches {
			if b.ProjectID == g.ProjectID {
				summary.BranchFindings = append(summary.BranchFindings, &supplychainv1.BranchFindingSummary{BranchName: b.Ref, FindingCount: b.Findings})
			}
		}
		slices.SortFunc(summary.GetBranchFindings(), func(a, b *supplychainv1.BranchFindingSummary) int {
			return cmp.Or(cmp.Compare(b.GetFindingCount(), a.GetFindingCount()), cmp.Compare(a.GetBranchName(), b.GetBranchName()))
		})
		out.Projects = append(out.Projects, summary)
	}
	return nil
}
