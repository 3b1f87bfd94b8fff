package scans

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/byname"
)

// failPackages fails the rules of open findings about packages that the tool could not look at. A rule of such a tool
// is an advisory about a package.
func (s *ReportUploads) failPackages(ctx context.Context, u *upload) error {
	u.report.failedRules = map[int][]string{}
	for n, notes := range u.report.notes {
		if len(notes.FailedPackages) == 0 || n >= len(u.report.report.Runs) {
			continue
		}
		of, err := s.store.Reader.Project.Query().Where(byname.Is(ctx, u.target.GetProject())).Only(ctx)
		if ent.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		analysis, ids := u.report.groupOf(u.report.report.Runs[n]), []int64(nil)
		err = s.store.Reader.Finding.Query().Where(finding.ProjectID(of.ID), finding.Ref(u.ref), finding.Tool(analysis.Tool),
			finding.AnalysisCategory(analysis.Category), finding.StateIn(lifecycle.Unresolved, lifecycle.Muted), store.OneOf(finding.FieldPackage, notes.FailedPackages)).
			Unique(true).Select(finding.FieldRuleID).Scan(ctx, &ids)
		if err != nil {
			return err
		}
		names, err := s.store.Reader.Rule.Query().Where(func(q *entsql.Selector) { q.Where(store.InIDs(q.C(rule.FieldID), ids)) }).Select(rule.FieldName).Strings(ctx)
		if err != nil {
			return err
		}
		u.report.failedRules[n] = names
	}
	return nil
}
