package deployments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gosimple/slug"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/tenant"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/deployments/details"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// maxSlug is the maximum length of a slug, including its number.
	maxSlug = 63
	// slugAttempts is the number of retries if a concurrent request takes the slug.
	slugAttempts = 5
)

// CreateDeployment creates a deployment with the caller as administrator. Its default role for new users is
// administrator (contract facts, 3.15). The caller must be an administrator of some deployment: the contract states no
// condition, and without one every user of a server could create deployments.
func (s *Deployment) CreateDeployment(ctx context.Context, r *deploymentsv1.CreateDeploymentRequest) (*deploymentsv1.CreateDeploymentResponse, error) {
	principal, _ := access.FromContext(ctx)
	if !slices.ContainsFunc(principal.Grants, func(g access.Grant) bool { return g.Role == access.RoleAdmin }) {
		return nil, apierr.PermissionDenied("only an administrator of a deployment may create another: the role %s in one is required", access.RoleAdmin)
	}
	name := strings.TrimSpace(r.GetDeploymentName())
	base := cutSlug(slug.Make(name), maxSlug)
	if base == "" {
		return nil, apierr.InvalidArgument("deploymentName",
			"deploymentName must have a letter or a digit, which the name in paths is made of, got %s", apierr.Quote(name))
	}
	var out *deploymentsv1.DeploymentDetails
	var err error
	for range slugAttempts {
		err = s.store.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) (err error) {
			out, err = s.create(ctx, tx, name, base, principal.UserID)
			return err
		})
		if !ent.IsConstraintError(err) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.CreateDeploymentResponse{Deployment: out}, nil
}

func (s *Deployment) create(ctx context.Context, tx *ent.Tx, name, base string, adminID int64) (*deploymentsv1.DeploymentDetails, error) {
	taken, err := tx.Deployment.Query().Where(deployment.SlugHasPrefix(cutSlug(base, maxSlug-slugNumber))).
		Select(deployment.FieldSlug).Strings(ctx)
	if err != nil {
		return nil, err
	}
	create := tx.Deployment.Create().SetSlug(freeSlug(base, taken)).SetName(name).SetCreatedAt(store.Now())
	if s.policiesMigrated {
		create.SetPoliciesMigratedAt(store.Now())
	}
	row, err := create.Save(ctx)
	if err != nil {
		return nil, err
	}
	// From here on the call acts in the new deployment, for tenant isolation and the audit trail.
	ctx = tenant.NewContext(ctx, row.ID)
	err = tx.Membership.Create().SetUserID(adminID).SetRole(string(access.RoleAdmin)).SetCreatedAt(store.Now()).Exec(ctx)
	if err != nil {
		return nil, err
	}
	out, err := details.Of(row)
	if err != nil {
		return nil, err
	}
	audit.Change(ctx, auditDeployment, row.ID, nil, out)
	return out, nil
}

// slugNumber is the space reserved for the number of a slug.
const slugNumber = len("-999999")

// freeSlug returns the slug, if needed with the first number from 2 that makes it unique.
func freeSlug(base string, taken []string) string {
	if !slices.Contains(taken, base) {
		return base
	}
	for n := 2; ; n++ {
		if numbered := fmt.Sprintf("%s-%d", cutSlug(base, maxSlug-slugNumber), n); !slices.Contains(taken, numbered) {
			return numbered
		}
	}
}

// cutSlug shortens a slug so that it still ends in a letter or digit.
func cutSlug(s string, length int) string {
	return strings.Trim(s[:min(len(s), length)], "-_")
}
