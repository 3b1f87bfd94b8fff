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

func replaceTags(ctx context.Context, tx *ent.Tx, projectID int64, names []string) error {
	if _, err := tx.ProjectTag.Delete().Where(projecttag.ProjectID(projectID)).Exec(ctx); err != nil {
		return err
	}
	return addTags(ctx, tx, projectID, names)
}

// addTags links tags to a project and creates missing ones.
func addTags(ctx context.Context, tx *ent.Tx, projectID int64, names []string) error {
	wanted := make([]string, 0, len(names))
	for _, name := range names {
		if name = strings.TrimSpace(name); name != "" {
			wanted = append(wanted, name)
		}
	}
	slices.Sort(wanted)
	if wanted = slices.Compact(wanted); len(wanted) == 0 {
		return nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	created := make([]*ent.TagCreate, len(wanted))
	for i, name := range wanted {
		created[i] = tx.Tag.Create().SetDeploymentID(deploymentID).SetName(name).SetCreatedAt(store.Now())
	}
	for part := range slices.Chunk(created, store.RowsAtOnce) {
		if err := tx.Tag.CreateBulk(part...).OnConflictColumns(tag.FieldDeploymentID, tag.FieldName).Ignore().Exec(ctx); err != nil {
			return err
		}
	}
	ids, err := tx.Tag.Query().Where(store.OneOf(tag.FieldName, wanted)).IDs(ctx)
	if err != nil {
		return err
	}
	links := make([]*ent.ProjectTagCreate, len(ids))
	for i, id := range ids {
		links[i] = tx.ProjectTag.Create().SetDeploymentID(deploymentID).SetProjectID(projectID).SetTagID(id)
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
