package policies

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/ruleboardproject"
	"github.com/palisade/palisade/ent/tag"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/byname"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// assign replaces the projects of a stored board and returns their names. They leave their other boards of the product.
func (b board) assign(ctx context.Context, tx *ent.Tx, named []string) ([]string, error) {
	rows, err := findProjects(ctx, tx.Client(), named)
	if err != nil {
		return nil, err
	}
	ids, names := make([]int64, len(rows)), make([]string, len(rows))
	for i, row := range rows {
		ids[i], names[i] = row.ID, row.Name
	}
	_, err = tx.RuleboardProject.Delete().Where(ruleboardproject.Or(
		ruleboardproject.RuleboardID(b.rowID),
		ruleboardproject.And(ruleboardproject.Product(b.product), store.OneOf(ruleboardproject.FieldProjectID, ids)),
	)).Exec(ctx)
	if err != nil {
		return nil, err
	}
	creates := make([]*ent.RuleboardProjectCreate, len(ids))
	for i, id := range ids {
		creates[i] = tx.RuleboardProject.Create().SetRuleboardID(b.rowID).SetProjectID(id).SetProduct(b.product)
	}
	for part := range slices.Chunk(creates, store.RowsAtOnce) {
		if err := tx.RuleboardProject.CreateBulk(part...).Exec(ctx); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// findProjects returns projects by name or numeric id, sorted by name.
func findProjects(ctx context.Context, db *ent.Client, names []string) ([]*ent.Project, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var ids []int64
	for _, name := range names {
		if id, err := strconv.ParseInt(name, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	byName, err := byname.All(ctx, db, names)
	if err != nil {
		return nil, err
	}
	rows, err := db.Project.Query().Where(store.WithIDs[predicate.Project](ids)).Select(project.FieldID, project.FieldName).All(ctx)
	if err != nil {
		return nil, err
	}
	byID := map[string]*ent.Project{}
	for _, row := range rows {
		byID[strconv.FormatInt(row.ID, 10)] = row
	}
	found := map[int64]*ent.Project{}
	for _, name := range names {
		row := byName[name]
		if row == nil {
			row = byID[name]
		}
		if row == nil {
			return nil, apierr.InvalidArgument("assigned_repos", "assigned_repos: there is no project %s", apierr.Quote(name))
		}
		found[row.ID] = row
	}
	list := make([]*ent.Project, 0, len(found))
	for _, row := range found {
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b *ent.Project) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// assignedNames returns the names of the projects of boards, by the row of the board.
func assignedNames(ctx context.Context, db *ent.Client, boards []board) (map[int64][]string, error) {
	ids := make([]int64, 0, len(boards))
	for _, b := range boards {
		ids = append(ids, b.rowID)
	}
	links, err := db.RuleboardProject.Query().Where(store.OneOf(ruleboardproject.FieldRuleboardID, ids)).All(ctx)
	if err != nil || len(links) == 0 {
		return nil, err
	}
	rows, err := db.Project.Query().Where(store.WithIDs[predicate.Project](projectsOf(links))).
		Order(ent.Asc(project.FieldName)).Select(project.FieldID, project.FieldName).All(ctx)
	if err != nil {
		return nil, err
	}
	at := make(map[int64][]int64, len(links))
	for _, link := range links {
		at[link.ProjectID] = append(at[link.ProjectID], link.RuleboardID)
	}
	names := map[int64][]string{}
	for _, row := range rows {
		for _, id := range at[row.ID] {
			names[id] = append(names[id], row.Name)
		}
	}
	return names, nil
}

func projectsOf(links []*ent.RuleboardProject) []int64 {
	ids := make([]int64, len(links))
	for i, link := range links {
		ids[i] = link.ProjectID
	}
	return ids
}

// GetRuleboardOverview returns a board and its projects.
func (s *Ruleboards) GetRuleboardOverview(ctx context.Context, r *policiesv1.GetRuleboardOverviewRequest) (*policiesv1.GetRuleboardOverviewResponse, error) {
	b, err := boardBySlug(ctx, s.store.Reader, r.GetRuleboardSlug())
	if err != nil {
		return nil, err
	}
	response := &policiesv1.GetRuleboardOverviewResponse{Name: b.name, Slug: b.slug, Default: b.isDefault()}
	if b.isDefault() {
		return response, nil
	}
	links, err := s.store.Reader.RuleboardProject.Query().Where(ruleboardproject.RuleboardID(b.rowID)).All(ctx)
	if err != nil || len(links) == 0 {
		return response, err
	}
	rows, err := s.store.Reader.Project.Query().Where(store.WithIDs[predicate.Project](projectsOf(links))).Order(ent.Asc(project.FieldName)).
		Select(project.FieldID, project.FieldName, project.FieldScmType).All(ctx)
	if err != nil {
		return nil, err
	}
	tags, err := tagNames(ctx, s.store.Reader, projectsOf(links))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		response.AssignedRepoItems = append(response.AssignedRepoItems, &policiesv1.RuleboardRepoItem{
			Id: row.ID, Name: row.Name, Tags: tags[row.ID], ScmType: scmv1.ScmType(scmv1.ScmType_value[row.ScmType]),
		})
	}
	return response, nil
}

// tagNames returns the names of the tags of projects, sorted, by project.
func tagNames(ctx context.Context, db *ent.Client, projectIDs []int64) (map[int64][]string, error) {
	links, err := db.ProjectTag.Query().Where(store.OneOf(projecttag.FieldProjectID, projectIDs)).All(ctx)
	if err != nil || len(links) == 0 {
		return nil, err
	}
	of := map[int64][]int64{}
	ids := make([]int64, len(links))
	for i, link := range links {
		ids[i] = link.TagID
		of[link.TagID] = append(of[link.TagID], link.ProjectID)
	}
	slices.Sort(ids)
	rows, err := db.Tag.Query().Where(store.WithIDs[predicate.Tag](slices.Compact(ids))).Order(ent.Asc(tag.FieldName)).All(ctx)
	names := map[int64][]string{}
	for _, row := range rows {
		for _, projectID := range of[row.ID] {
			names[projectID] = append(names[projectID], row.Name)
		}
	}
	return names, err
}

// UpdateRuleboardOverview changes the name and the projects of a board. Its slug stays.
func (s *Ruleboards) UpdateRuleboardOverview(ctx context.Context, r *policiesv1.UpdateRuleboardOverviewRequest) (*policiesv1.UpdateRuleboardOverviewResponse, error) {
	name := strings.TrimSpace(r.GetName())
	if name == "" {
		return nil, apierr.InvalidArgument("name", "name must not be blank")
	}
	response := &policiesv1.UpdateRuleboardOverviewResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now, err := ruleset.BeginChange(ctx, s.store, tx)
		if err != nil {
			return err
		}
		b, err := boardBySlug(ctx, tx.Client(), r.GetRuleboardSlug())
		if err != nil {
			return err
		}
		if b.isDefault() {
			return errDefault(b, "renamed, and it has the projects without another board")
		}
		projects, err := assignedNames(ctx, tx.Client(), []board{b})
		if err != nil {
			return err
		}
		before := b.overview(projects[b.rowID])
		if err := tx.Ruleboard.UpdateOneID(b.rowID).SetName(name).SetUpdatedAt(now).Exec(ctx); err != nil {
			return err
		}
		b.name = name
		names, err := b.assign(ctx, tx, r.GetAssignedRepos())
		if err != nil {
			return err
		}
		audit.Change(ctx, auditBoard, b.slug, before, b.overview(names))
		response = &policiesv1.UpdateRuleboardOverviewResponse{Name: name, Slug: b.slug, Default: b.isDefault(), AssignedRepos: names}
		return touchRules(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}
