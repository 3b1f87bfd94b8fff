package deployments

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/deployments/details"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// auditProducts is the object kind of the product configuration in the audit trail.
const auditProducts = "deployment_products"

// DeploymentProducts is the service group "deployment products".
type DeploymentProducts struct {
	deploymentsv1.UnimplementedDeploymentProductsServiceServer
	store *store.Store
}

// NewDeploymentProducts serves the configuration of the products from the store.
func NewDeploymentProducts(st *store.Store) *DeploymentProducts {
	return &DeploymentProducts{store: st}
}

// GetDeploymentProductConfig returns the configuration of all products.
func (s *DeploymentProducts) GetDeploymentProductConfig(ctx context.Context, _ *deploymentsv1.GetDeploymentProductConfigRequest) (*deploymentsv1.GetDeploymentProductConfigResponse, error) {
	row, err := s.store.Reader.Deployment.Query().Only(ctx)
	if err != nil {
		return nil, err
	}
	products, err := details.Products(row)
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.GetDeploymentProductConfigResponse{Products: products}, nil
}

// GetDeploymentAdminProductConfig returns the operators' settings: none, because this server does not suspend scans.
func (s *DeploymentProducts) GetDeploymentAdminProductConfig(context.Context, *deploymentsv1.GetDeploymentAdminProductConfigRequest) (*deploymentsv1.GetDeploymentAdminProductConfigResponse, error) {
	return &deploymentsv1.GetDeploymentAdminProductConfigResponse{Products: &deploymentsv1.DeploymentAdminProductConfig{
		Sast: &deploymentsv1.AdminProductConfig{}, Sca: &deploymentsv1.AdminProductConfig{},
		Secrets: &deploymentsv1.AdminProductConfig{}, Engine: &deploymentsv1.AdminEngineConfig{},
	}}, nil
}

// PutDeploymentProductConfig replaces the products named in the request.
func (s *DeploymentProducts) PutDeploymentProductConfig(ctx context.Context, r *deploymentsv1.PutDeploymentProductConfigRequest) (*deploymentsv1.PutDeploymentProductConfigResponse, error) {
	var after *deploymentsv1.DeploymentProductConfig
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := lock(ctx, s.store, tx)
		if err != nil {
			return err
		}
		before, err := details.Stored(row)
		if err != nil {
			return err
		}
		after = replaceProducts(before, r)
		blob, err := proto.Marshal(after)
		if err != nil {
			return err
		}
		details.Complete(before)
		details.Complete(after)
		if err := row.Update().SetProducts(blob).Exec(ctx); err != nil {
			return err
		}
		audit.Change(ctx, auditProducts, row.ID, before, after)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.PutDeploymentProductConfigResponse{Products: after}, nil
}

func replaceProducts(before *deploymentsv1.DeploymentProductConfig, r *deploymentsv1.PutDeploymentProductConfigRequest) *deploymentsv1.DeploymentProductConfig {
	after := proto.CloneOf(before)
	if r.GetAi() != nil {
		after.Ai = proto.CloneOf(r.GetAi())
	}
	if r.GetSast() != nil {
		after.Sast = proto.CloneOf(r.GetSast())
	}
	if r.GetSca() != nil {
		after.Sca = proto.CloneOf(r.GetSca())
	}
	if r.GetSecrets() != nil {
		after.Secrets = proto.CloneOf(r.GetSecrets())
	}
	if r.ApproversTag != nil {
		after.ApproversTag = strings.TrimSpace(r.GetApproversTag())
	}
	if r.HasDeveloperTriage != nil {
		after.HasDeveloperTriage = r.GetHasDeveloperTriage()
	}
	return after
}
