package policies

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/palisade/palisade/ent"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/etag"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// Products with a detection policy.
const (
	productCode        = "code"
	productSecrets     = "secrets"
	productSupplyChain = "supply-chain"
)

// ruleProducts are the products of rules, by the words of detection policies.
var ruleProducts = map[string]string{productCode: "sast", productSecrets: "secrets", productSupplyChain: "sca"}

// checkProduct refuses a product without a detection policy.
func checkProduct(product string) error {
	if ruleProducts[product] != "" {
		return nil
	}
	return apierr.New(codes.NotFound, errorsv1.Reason_REASON_PRODUCT_NOT_ENABLED,
		"there is no detection policy for the product "+apierr.Quote(product)+": there are "+strings.Join([]string{productCode, productSecrets, productSupplyChain}, ", "))
}

// GetDetectionPolicySummary returns the policies of code and secrets.
func (s *PoliciesV2) GetDetectionPolicySummary(ctx context.Context, _ *policiesv1.GetDetectionPolicySummaryRequest) (*policiesv1.GetDetectionPolicySummaryResponse, error) {
	code, err := s.detection(ctx, productCode)
	if err != nil {
		return nil, err
	}
	secrets, err := s.detection(ctx, productSecrets)
	if err != nil {
		return nil, err
	}
	return &policiesv1.GetDetectionPolicySummaryResponse{
		DeploymentSlug: code.bundle.GetDeploymentSlug(),
		Code:           &policiesv1.DetectionPolicyState{Bundle: code.bundle, StateVersion: code.version},
		Secrets:        &policiesv1.DetectionPolicyState{Bundle: secrets.bundle, StateVersion: secrets.version},
	}, nil
}

// detection reads the policy of a product.
func (s *PoliciesV2) detection(ctx context.Context, product string) (*detection, error) {
	if err := ruleset.EnsureStarter(ctx, s.store); err != nil {
		return nil, err
	}
	organization, err := s.store.Reader.Deployment.Query().Only(ctx)
	if err != nil {
		return nil, err
	}
	return loadDetection(ctx, s.store.Reader, organization.Slug, product)
}

// GetDetectionPolicy returns the policy of a product.
func (s *PoliciesV2) GetDetectionPolicy(ctx context.Context, r *policiesv1.GetDetectionPolicyRequest) (*policiesv1.GetDetectionPolicyResponse, error) {
	if err := checkProduct(r.GetProduct()); err != nil {
		return nil, err
	}
	current, err := s.detection(ctx, r.GetProduct())
	if err != nil {
		return nil, err
	}
	if known, err := etag.Unchanged(ctx, quoted(current.version)); err != nil || known {
		return &policiesv1.GetDetectionPolicyResponse{}, err
	}
	return &policiesv1.GetDetectionPolicyResponse{Bundle: current.bundle, StateVersion: current.version}, nil
}

// DryRunDetectionPolicy compares the bundle with the stored policy.
func (s *PoliciesV2) DryRunDetectionPolicy(ctx context.Context, r *policiesv1.DryRunDetectionPolicyRequest) (*policiesv1.DryRunDetectionPolicyResponse, error) {
	if err := checkProduct(r.GetProduct()); err != nil {
		return nil, err
	}
	current, err := s.detection(ctx, r.GetProduct())
	if err != nil {
		return nil, err
	}
	wanted, problems, err := current.check(ctx, s.store.Reader, r.GetBundle())
	if err != nil {
		return nil, err
	}
	response := &policiesv1.DryRunDetectionPolicyResponse{StateVersion: current.version, ValidationErrors: problems}
	if len(problems) > 0 {
		return response, nil
	}
	changes := current.compare(wanted)
	if err := changes.count(ctx, s.store.Reader); err != nil {
		return nil, err
	}
	response.Creates, response.Updates, response.Deletes = changes.entries()
	response.Warnings = wanted.warnings
	return response, nil
}

// ApplyDetectionPolicy replaces the stored policy by the bundle.
func (s *PoliciesV2) ApplyDetectionPolicy(ctx context.Context, r *policiesv1.ApplyDetectionPolicyRequest) (*policiesv1.ApplyDetectionPolicyResponse, error) {
	expected, err := expectedVersion(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkProduct(r.GetProduct()); err != nil {
		return nil, err
	}
	if err := ruleset.EnsureStarter(ctx, s.store); err != nil {
		return nil, err
	}
	var after *detection
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now, err := ruleset.BeginChange(ctx, s.store, tx)
		if err != nil {
			return err
		}
		organization, err := tx.Deployment.Query().Only(ctx)
		if err != nil {
			return err
		}
		current, err := loadDetection(ctx, tx.Client(), organization.Slug, r.GetProduct())
		if err != nil {
			return err
		}
		if err := checkVersion(expected, current.version); err != nil {
			return err
		}
		wanted, problems, err := current.check(ctx, tx.Client(), r.GetBundle())
		if err != nil {
			return err
		}
		if len(problems) > 0 {
			return bundleError(problems)
		}
		if err := current.replace(ctx, tx, wanted, now); err != nil {
			return err
		}
		after = wanted
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &policiesv1.ApplyDetectionPolicyResponse{Bundle: after.bundle, StateVersion: after.version}, nil
}

// expectedVersion returns the header If-Match.
func expectedVersion(ctx context.Context) (string, error) {
	expected := strings.TrimSpace(strings.Join(metadata.ValueFromIncomingContext(ctx, ifMatch), ","))
	if expected == "" {
		return "", apierr.PreconditionRequired("the header If-Match is required: send the state_version that the bundle was made from")
	}
	return expected, nil
}

// checkVersion refuses a change that was made for another state.
func checkVersion(expected, current string) error {
	if expected == current || etag.MatchesStrongly(expected, quoted(current)) {
		return nil
	}
	if strings.HasPrefix(expected, "W/") {
		return apierr.Stale(current, "If-Match must not be a weak tag, because these match nothing: send the state_version, which is %s; got %s",
			current, apierr.Quote(expected))
	}
	return apierr.Stale(current, "the policies have changed: If-Match names %s, the state_version is %s; read them again", apierr.Quote(expected), current)
}
