package deployments

import (
	"context"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/detectionexception"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/tag"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
)

// auditTag is the object kind of tags in the audit trail.
const auditTag = "deployment_tag"

// DeploymentTags is the service group "deployment tags".
type DeploymentTags struct {
	deploymentsv1.UnimplementedDeploymentTagServiceServer
	store *store.Store
}

// NewDeploymentTags serves tags from the store.
func NewDeploymentTags(st *store.Store) *DeploymentTags { return &DeploymentTags{store: st} }

// GetDeploymentTag returns a tag.
func (s *DeploymentTags) GetDeploymentTag(ctx context.Context, r *deploymentsv1.GetDeploymentTagRequest) (*deploymentsv1.GetDeploymentTagResponse, error) {
	row, err := findTag(ctx, s.store.Reader, r.GetRepositoryTag())
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.GetDeploymentTagResponse{DeploymentId: row.DeploymentID, RepositoryTag: row.Name}, nil
}

// ListDeploymentTags lists the names of all tags.
func (s *DeploymentTags) ListDeploymentTags(ctx context.Context, r *deploymentsv1.ListDeploymentTagsRequest) (*deploymentsv1.ListDeploymentTagsResponse, error) {
	names, err := s.store.Reader.Tag.Query().Order(tag.ByName()).Select(tag.FieldName).Strings(ctx)
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.ListDeploymentTagsResponse{DeploymentId: r.GetDeploymentId(), RepositoryTags: names}, nil
}

// FindDeploymentTags lists all tags. If requested, one more query counts their projects.
func (s *DeploymentTags) FindDeploymentTags(ctx context.Context, r *deploymentsv1.FindDeploymentTagsRequest) (*deploymentsv1.FindDeploymentTagsResponse, error) {
	rows, err := s.store.Reader.Tag.Query().Order(tag.ByName()).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &deploymentsv1.FindDeploymentTagsResponse{}
	byID := make(map[int64]*deploymentsv1.DeploymentTagInfo, len(rows))
	for _, row := range rows {
		byID[row.ID] = convertTag(row)
		response.Tags = append(response.Tags, byID[row.ID])
	}
	if !r.GetIncludeCounts() {
		return response, nil
	}
	var counts []struct {
		TagID int64 `sql:"tag_id"`
		Count int64 `sql:"count"`
	}
	err = s.store.Reader.ProjectTag.Query().GroupBy(projecttag.FieldTagID).Aggregate(ent.Count()).Scan(ctx, &counts)
	if err != nil {
		return nil, err
	}
	for _, info := range response.GetTags() {
		info.ProjectCount = new(int64)
	}
	for _, c := range counts {
		if info := byID[c.TagID]; info != nil {
			info.ProjectCount = &c.Count
		}
	}
	return response, nil
}

// UpdateDeploymentTag creates or renames a tag. Renaming is idempotent, so that a client may repeat its request.
func (s *DeploymentTags) UpdateDeploymentTag(ctx context.Context, r *deploymentsv1.UpdateDeploymentTagRequest) (*deploymentsv1.UpdateDeploymentTagResponse, error) {
	from, to := strings.TrimSpace(r.GetRepositoryTag()), strings.TrimSpace(r.GetName())
	if from == "" {
		return nil, apierr.InvalidArgument("repositoryTag", "repositoryTag must not be blank")
	}
	if to == "" {
		if r.GetName() != "" {
			return nil, apierr.InvalidArgument("name", "name must not be blank: leave it out to keep the name of the tag")
		}
		to = from
	}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error { return s.put(ctx, tx, from, to) })
	if ent.IsConstraintError(err) { // a concurrent request won
		err = errTagExists(to)
	}
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.UpdateDeploymentTagResponse{DeploymentId: r.GetDeploymentId(), RepositoryTag: to}, nil
}

func (s *DeploymentTags) put(ctx context.Context, tx *ent.Tx, from, to string) error {
	rows, err := tx.Tag.Query().Where(tag.NameIn(from, to)).All(ctx)
	if err != nil {
		return err
	}
	var old, target *ent.Tag
	for _, row := range rows {
		if row.Name == from {
			old = row
		}
		if row.Name == to {
			target = row
		}
	}
	switch {
	case old != nil && target != nil && old.ID != target.ID:
		return errTagExists(to)
	case target != nil:
		return nil
	case old == nil:
		row, err := tx.Tag.Create().SetName(to).SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		audit.Change(ctx, auditTag, row.ID, nil, convertTag(row))
		return nil
	default:
		row, err := old.Update().SetName(to).Save(ctx)
		if err != nil {
			return err
		}
		audit.Change(ctx, auditTag, row.ID, convertTag(old), convertTag(row))
		return remediation.Renaming{Of: remediation.RefTag, From: from, To: to}.Apply(ctx, s.store, tx)
	}
}

// DeleteDeploymentTag deletes a tag and removes it from all projects.
func (s *DeploymentTags) DeleteDeploymentTag(ctx context.Context, r *deploymentsv1.DeleteDeploymentTagRequest) (*deploymentsv1.DeleteDeploymentTagResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := findTag(ctx, tx.Client(), r.GetRepositoryTag())
		if err != nil {
			return err
		}
		if _, err := tx.ProjectTag.Delete().Where(projecttag.TagID(row.ID)).Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.DetectionException.Delete().Where(detectionexception.TagID(row.ID)).Exec(ctx); err != nil {
			return err
		}
		if err := tx.Tag.DeleteOneID(row.ID).Exec(ctx); err != nil {
			return err
		}
		audit.Change(ctx, auditTag, row.ID, convertTag(row), nil)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.DeleteDeploymentTagResponse{}, nil
}

func findTag(ctx context.Context, db *ent.Client, name string) (*ent.Tag, error) {
	row, err := db.Tag.Query().Where(tag.Name(strings.TrimSpace(name))).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("tag %s not found", apierr.Quote(name))
	}
	return row, err
}

func convertTag(row *ent.Tag) *deploymentsv1.DeploymentTagInfo {
	return &deploymentsv1.DeploymentTagInfo{Id: row.ID, Name: row.Name}
}

func errTagExists(name string) error {
	return apierr.AlreadyExists("the deployment has a tag %s already", apierr.Quote(name))
}
