package projects

import (
	"context"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// tagsOf reads the names of the tags of projects, sorted, in two queries for any number of projects.
func tagsOf(ctx context.Context, db *ent.Client, projects ...*ent.Project) (map[int64][]string, error) {
	ids := make([]int64, len(projects))
	for i, p := range projects {
		ids[i] = p.ID
	}
	links, err := db.ProjectTag.Query().Where(store.OneOf(projecttag.FieldProjectID, ids)).All(ctx)
	if err != nil || len(links) == 0 {
		return nil, err
	}
	tagIDs := make([]int64, len(links))
	for i, l := range links {
		tagIDs[i] = l.TagID
	}
	slices.Sort(tagIDs)
	rows, err := db.Tag.Query().Where(store.OneOf(tag.FieldID, slices.Compact(tagIDs))).All(ctx)
	if err != nil {
		return nil, err
	}
	names := map[int64]string{}
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	of := map[int64][]string{}
	for _, l := range links {
		of[l.ProjectID] = append(of[l.ProjectID], names[l.TagID])
	}
	for _, list := range of {
		slices.Sort(list)
	}
	return of, nil
}

func replaceTags(ctx context.Context, tx *ent.Tx, projectIDs []int64, names []string) error {
	ids, err := createTags(ctx, tx, names)
	if err != nil {
		return err
	}
	_, err = tx.ProjectTag.Delete().Where(store.OneOf(projecttag.FieldProjectID, projectIDs), store.NoneOf(projecttag.FieldTagID, ids)).Exec(ctx)
	if err != nil {
		return err
	}
	return linkTags(ctx, tx, projectIDs, ids)
}

// addTags links tags to projects and creates missing ones.
func addTags(ctx context.Context, tx *ent.Tx, projectIDs []int64, names []string) error {
	ids, err := createTags(ctx, tx, names)
	if err != nil {
		return err
	}
	return linkTags(ctx, tx, projectIDs, ids)
}

// removeTags removes tags from one project only; unknown tags are ignored.
func removeTags(ctx context.Context, tx *ent.Tx, projectID int64, names []string) error {
	ids, err := tx.Tag.Query().Where(store.OneOf(tag.FieldName, names)).IDs(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	_, err = tx.ProjectTag.Delete().Where(projecttag.ProjectID(projectID), store.OneOf(projecttag.FieldTagID, ids)).Exec(ctx)
	return err
}

// createTags returns the ids of tags and creates missing ones.
func createTags(ctx context.Context, tx *ent.Tx, names []string) ([]int64, error) {
	wanted := make([]string, 0, len(names))
	for _, name := range names {
		if name = strings.TrimSpace(name); name != "" {
			wanted = append(wanted, name)
		}
	}
	slices.Sort(wanted)
	if wanted = slices.Compact(wanted); len(wanted) == 0 {
		return nil, nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	created := make([]*ent.TagCreate, len(wanted))
	for i, name := range wanted {
		created[i] = tx.Tag.Create().SetDeploymentID(deploymentID).SetName(name).SetCreatedAt(store.Now())
	}
	for part := range slices.Chunk(created, store.RowsAtOnce) {
		if err := tx.Tag.CreateBulk(part...).OnConflictColumns(tag.FieldDeploymentID, tag.FieldName).Ignore().Exec(ctx); err != nil {
			return nil, err
		}
	}
	return tx.Tag.Query().Where(store.OneOf(tag.FieldName, wanted)).IDs(ctx)
}

// linkTags adds each tag to each project.
func linkTags(ctx context.Context, tx *ent.Tx, projectIDs, tagIDs []int64) error {
	deploymentID, _ := tenant.FromContext(ctx)
	var links []*ent.ProjectTagCreate
	for _, projectID := range projectIDs {
		for _, id := range tagIDs {
			links = append(links, tx.ProjectTag.Create().SetDeploymentID(deploymentID).SetProjectID(projectID).SetTagID(id))
		}
	}
	for part := range slices.Chunk(links, store.RowsAtOnce) {
		err := tx.ProjectTag.CreateBulk(part...).
			OnConflictColumns(projecttag.FieldDeploymentID, projecttag.FieldProjectID, projecttag.FieldTagID).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}
