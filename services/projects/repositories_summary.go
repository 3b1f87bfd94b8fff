package projects

import (
	"context"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/freshness"
	"github.com/palisade/palisade/ent/project"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/watch/judge"
)

// summarize adds the open findings and the freshness of a page of repositories, with one query for each.
func (s *Repositories) summarize(ctx context.Context, repos []*projectsv1.Repository) error {
	if len(repos) == 0 {
		return nil
	}
	ids, of := make([]int64, len(repos)), make(map[int64]*projectsv1.Repository, len(repos))
	for i, repo := range repos {
		ids[i], of[repo.GetId()] = repo.GetId(), repo
		repo.Findings = &projectsv1.RepositoryFindings{}
	}
	counts, err := openFindings(ctx, s.store.Reader, ids)
	if err != nil {
		return err
	}
	for id, found := range counts {
		of[id].Findings = found
	}
	var states []struct {
		ProjectID int64 `sql:"project_id"`
		State     int   `sql:"state"`
	}
	err = s.store.Reader.Freshness.Query().Where(store.OneOf(freshness.FieldProjectID, ids)).Modify(func(f *sql.Selector) {
		f.Select(f.C(freshness.FieldProjectID), sql.As(sql.Max(f.C(freshness.FieldState)), "state")).GroupBy(f.C(freshness.FieldProjectID))
	}).Scan(ctx, &states)
	for _, worst := range states {
		of[worst.ProjectID].Freshness = judge.State(worst.State).String()
	}
	return err
}

// openFindings counts the open findings of projects on their primary branch, with one query.
func openFindings(ctx context.Context, db *ent.Client, ids []int64) (map[int64]*projectsv1.RepositoryFindings, error) {
	var counts []struct {
		ProjectID int64  `sql:"project_id"`
		Severity  string `sql:"severity"`
		Count     int64  `sql:"count"`
	}
	err := db.Finding.Query().Where(store.OneOf(finding.FieldProjectID, ids), finding.Status(lifecycle.Open)).Modify(func(f *sql.Selector) {
		p := sql.Table(project.Table).As("owner")
		f.Join(p).On(p.C(project.FieldID), f.C(finding.FieldProjectID)).Where(onPrimary(p, f)).
			Select(f.C(finding.FieldProjectID), f.C(finding.FieldSeverity), sql.As(sql.Count("*"), "count")).
			GroupBy(f.C(finding.FieldProjectID), f.C(finding.FieldSeverity))
	}).Scan(ctx, &counts)
	found := map[int64]*projectsv1.RepositoryFindings{}
	for _, group := range counts {
		if found[group.ProjectID] == nil {
			found[group.ProjectID] = &projectsv1.RepositoryFindings{}
		}
		addCount(found[group.ProjectID], group.Severity, group.Count)
	}
	return found, err
}

// onPrimary selects findings on the primary branch of their project, or on all refs while it has none.
func onPrimary(p *sql.SelectTable, f *sql.Selector) *sql.Predicate {
	return sql.P(func(b *sql.Builder) {
		b.WriteString("COALESCE(NULLIF(" + p.C(project.FieldPrimaryBranch) + ", ''), " + p.C(project.FieldDefaultBranch) + ") IN ('', " + f.C(finding.FieldRef) + ")")
	})
}

func addCount(to *projectsv1.RepositoryFindings, severity string, count int64) {
	switch severity {
	case "critical":
		to.Critical += count
	case "high":
		to.High += count
	case "medium":
		to.Medium += count
	case "low":
		to.Low += count
	}
}
