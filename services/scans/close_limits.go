package scans

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/projects/byname"
	"github.com/palisade/palisade/services/scans/ingest"
)

// auditCloseLimits is the object kind of the limits in the audit trail. The id is the id of the project, or 0.
const auditCloseLimits = "close_limits"

// GetCloseLimits returns the limits of the deployment or of a project.
func (s *HeldCloses) GetCloseLimits(ctx context.Context, r *scansv1.GetCloseLimitsRequest) (*scansv1.GetCloseLimitsResponse, error) {
	owner, err := s.store.Reader.Deployment.Query().Only(ctx)
	if err != nil {
		return nil, err
	}
	var of *ent.Project
	if r.GetProject() != "" {
		if of, err = findProject(ctx, s.store.Reader, r.GetProject()); err != nil {
			return nil, err
		}
	}
	own, effective, err := limitsOf(owner, of)
	return &scansv1.GetCloseLimitsResponse{Own: own, Effective: effective}, err
}

// limitsOf returns the limits that are set for a project, or for the deployment without a project, and those in effect.
func limitsOf(owner *ent.Deployment, of *ent.Project) (own, effective *scansv1.CloseLimits, err error) {
	stored := owner.CloseLimits
	var ofProject []byte
	if of != nil {
		stored, ofProject = of.CloseLimits, of.CloseLimits
	}
	if own, err = ingest.DecodeLimits(stored); err != nil {
		return nil, nil, err
	}
	effective, err = ingest.EffectiveLimits(ofProject, owner.CloseLimits)
	return own, effective, err
}

// UpdateCloseLimits changes the limits of the deployment or of a project.
func (s *HeldCloses) UpdateCloseLimits(ctx context.Context, r *scansv1.UpdateCloseLimitsRequest) (*scansv1.UpdateCloseLimitsResponse, error) {
	if !r.GetReset_() && proto.Size(r.GetLimits()) == 0 {
		return nil, apierr.InvalidArgument("limits", "limits must have at least one of off, all_of, share and share_of, unless reset is true")
	}
	out := &scansv1.UpdateCloseLimitsResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		owner, of, err := s.lockLimits(ctx, tx, r.GetProject())
		if err != nil {
			return err
		}
		before, _, err := limitsOf(owner, of)
		if err != nil {
			return err
		}
		after := proto.CloneOf(before)
		if r.GetReset_() {
			proto.Reset(after)
		}
		proto.Merge(after, r.GetLimits())
		stored, err := proto.Marshal(after)
		if err != nil {
			return err
		}
		id := int64(0)
		if of != nil {
			id = of.ID
			of, err = of.Update().SetCloseLimits(stored).Save(ctx)
		} else {
			owner, err = owner.Update().SetCloseLimits(stored).Save(ctx)
		}
		if err != nil {
			return err
		}
		audit.Change(ctx, auditCloseLimits, id, before, after)
		out.Own, out.Effective, err = limitsOf(owner, of)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// lockLimits reads the deployment and, if it is named, the project. It locks the one whose limits change.
func (s *HeldCloses) lockLimits(ctx context.Context, tx *ent.Tx, name string) (owner *ent.Deployment, of *ent.Project, err error) {
	query := tx.Deployment.Query()
	if name == "" && s.store.Postgres() {
		query.ForUpdate()
	}
	if owner, err = query.Only(ctx); err != nil || name == "" {
		return owner, nil, err
	}
	of, err = lockProject(ctx, s.store, tx, byname.Is(ctx, name))
	if ent.IsNotFound(err) {
		err = apierr.NotFound("project %q not found", name)
	}
	return owner, of, err
}
