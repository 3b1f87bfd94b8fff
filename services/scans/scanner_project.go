package scans

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/byname"
)

// scanProject finds or creates the project of a scan. It does not lock it, so that scans can begin while the results of
// another scan of the project are stored.
func (s *ScannerProtocol) scanProject(ctx context.Context, tx *ent.Tx, r scanRequest, name string) (*ent.Project, error) {
	repoURL := webURL(r.GetProjectMetadata().GetRepoUrl())
	row, err := tx.Project.Query().Where(byname.Is(ctx, name)).Only(ctx)
	deploymentID, _ := tenant.FromContext(ctx)
	if ent.IsNotFound(err) {
		if name, err = newName(name); err != nil {
			return nil, err
		}
		if err := lockName(ctx, s.store, tx, deploymentID, name); err != nil {
			return nil, err
		}
		row, err = tx.Project.Query().Where(byname.Is(ctx, name)).Only(ctx)
	}
	if ent.IsNotFound(err) {
		now := store.Now()
		err = tx.Project.Create().SetDeploymentID(deploymentID).SetName(name).SetNameKey(strings.ToLower(name)).SetURL(repoURL).SetCreatedAt(now).
			SetNillableCreatorID(creator(ctx)).
			OnConflictColumns(project.FieldDeploymentID, project.FieldName).Ignore().Exec(ctx)
		if err != nil {
			return nil, err
		}
		if err := access.JoinDefaultTeams(ctx, tx, now, name); err != nil {
			return nil, err
		}
		row, err = tx.Project.Query().Where(byname.Is(ctx, name)).Only(ctx)
	}
	if err == nil {
		err = checkUpload(ctx, tx.Client(), row)
	}
	if err != nil || row.URL != "" || repoURL == "" {
		return row, err
	}
	return row.Update().SetURL(repoURL).Save(ctx)
}

// webURL returns a URL that may be shown as a link: http or https, without credentials. It returns "" for anything
// else.
func webURL(text string) string {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return ""
	}
	u.User = nil
	return u.String()
}

// replaceScannedTags sets the tags of a project from its configuration file. A file without tags changes nothing.
func replaceScannedTags(ctx context.Context, tx *ent.Tx, projectID int64, names []string) error {
	if len(names) == 0 {
		return nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	created := make([]*ent.TagCreate, len(names))
	for i, name := range names {
		created[i] = tx.Tag.Create().SetDeploymentID(deploymentID).SetName(name).SetCreatedAt(store.Now())
	}
	for part := range slices.Chunk(created, store.RowsAtOnce) {
		if err := tx.Tag.CreateBulk(part...).OnConflictColumns(tag.FieldDeploymentID, tag.FieldName).Ignore().Exec(ctx); err != nil {
			return err
		}
	}
	ids, err := tx.Tag.Query().Where(store.OneOf(tag.FieldName, names)).Order(ent.Asc(tag.FieldID)).IDs(ctx)
	if err != nil {
		return err
	}
	links, err := tx.ProjectTag.Query().Where(projecttag.ProjectID(projectID)).All(ctx)
	if err != nil {
		return err
	}
	had := make([]int64, len(links))
	for i, link := range links {
		had[i] = link.TagID
	}
	if slices.Sort(had); slices.Equal(had, ids) {
		return nil
	}
	if _, err := tx.ProjectTag.Delete().Where(projecttag.ProjectID(projectID), store.NoneOf(projecttag.FieldTagID, ids)).Exec(ctx); err != nil {
		return err
	}
	fresh := make([]*ent.ProjectTagCreate, len(ids))
	for i, id := range ids {
		fresh[i] = tx.ProjectTag.Create().SetDeploymentID(deploymentID).SetProjectID(projectID).SetTagID(id)
	}
	for part := range slices.Chunk(fresh, store.RowsAtOnce) {
		err := tx.ProjectTag.CreateBulk(part...).
			OnConflictColumns(projecttag.FieldDeploymentID, projecttag.FieldProjectID, projecttag.FieldTagID).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}
