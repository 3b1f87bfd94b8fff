// Package ignores serves the patterns of paths that a deployment ignores, and applies them to stored findings
// (docs/policies.md). Package pathignore has what scans need of them.
package ignores

import (
	"context"
	"fmt"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/pathignore"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	policy "github.com/palisade/palisade/services/policies/pathignore"
)

// auditIgnores is the object kind in the audit trail. The id is the product.
const auditIgnores = "path_ignores"

// maxPatterns bounds the patterns of a product.
const maxPatterns = 500

// products are the products, in the order of answers.
var products = []struct {
	word  string
	value scansv1.Product
}{
	{vocabulary.SAST, scansv1.Product_PRODUCT_SAST}, {vocabulary.SCA, scansv1.Product_PRODUCT_SCA},
	{vocabulary.Secrets, scansv1.Product_PRODUCT_SECRETS}, {vocabulary.AISAST, scansv1.Product_PRODUCT_AI_SAST},
}

// wordOf is the stored word of a product; empty if it is not set.
func wordOf(value scansv1.Product) string {
	for _, p := range products {
		if p.value == value {
			return p.word
		}
	}
	return ""
}

// Ignores is the service group "global ignores".
type Ignores struct {
	policiesv1.UnimplementedIgnoresServiceServer
	store *store.Store
	jobs  *jobs.Jobs
}

// New serves the patterns from the store. Background applies them.
func New(st *store.Store, queue *jobs.Jobs) *Ignores { return &Ignores{store: st, jobs: queue} }

// GetDeploymentProductIgnores lists the products that have patterns.
func (s *Ignores) GetDeploymentProductIgnores(
	ctx context.Context, _ *policiesv1.GetDeploymentProductIgnoresRequest,
) (*policiesv1.GetDeploymentProductIgnoresResponse, error) {
	stored, err := policy.Read(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	response := &policiesv1.GetDeploymentProductIgnoresResponse{}
	for _, p := range products {
		if message := messageOf(p.value, stored[p.word]); message != nil {
			response.ProductIgnores = append(response.ProductIgnores, message)
		}
	}
	return response, nil
}

// messageOf is nil without patterns.
func messageOf(product scansv1.Product, patterns []string) *policiesv1.ProductIgnores {
	if len(patterns) == 0 {
		return nil
	}
	return &policiesv1.ProductIgnores{Product: product, Ignores: patterns}
}

// CreateDeploymentProductIgnores appends patterns.
func (s *Ignores) CreateDeploymentProductIgnores(
	ctx context.Context, r *policiesv1.CreateDeploymentProductIgnoresRequest,
) (*policiesv1.CreateDeploymentProductIgnoresResponse, error) {
	given, err := check(r.GetProductIgnores())
	if err != nil {
		return nil, err
	}
	return &policiesv1.CreateDeploymentProductIgnoresResponse{}, s.change(ctx, func(stored policy.Policy) (policy.Policy, error) {
		wanted := policy.Policy{}
		for product, patterns := range given {
			wanted[product] = slices.Clone(stored[product])
			for _, pattern := range patterns {
				if !slices.Contains(wanted[product], pattern) {
					wanted[product] = append(wanted[product], pattern)
				}
			}
			if n := len(wanted[product]); n > maxPatterns {
				return nil, apierr.InvalidArgument("productIgnores", "a product has at most %d patterns; %s would have %d", maxPatterns, product, n)
			}
		}
		return wanted, nil
	})
}

// UpdateDeploymentProductIgnores replaces the patterns of the products in the request.
func (s *Ignores) UpdateDeploymentProductIgnores(
	ctx context.Context, r *policiesv1.UpdateDeploymentProductIgnoresRequest,
) (*policiesv1.UpdateDeploymentProductIgnoresResponse, error) {
	given, err := check(r.GetProductIgnores())
	if err != nil {
		return nil, err
	}
	return &policiesv1.UpdateDeploymentProductIgnoresResponse{}, s.change(ctx, func(policy.Policy) (policy.Policy, error) { return given, nil })
}

// DeleteDeploymentProductIgnores removes the patterns of one product, or of all.
func (s *Ignores) DeleteDeploymentProductIgnores(
	ctx context.Context, r *policiesv1.DeleteDeploymentProductIgnoresRequest,
) (*policiesv1.DeleteDeploymentProductIgnoresResponse, error) {
	wanted := policy.Policy{}
	for _, p := range products {
		if r.GetProduct() == scansv1.Product_PRODUCT_UNSPECIFIED || r.GetProduct() == p.value {
			wanted[p.word] = nil
		}
	}
	return &policiesv1.DeleteDeploymentProductIgnoresResponse{}, s.change(ctx, func(policy.Policy) (policy.Policy, error) { return wanted, nil })
}

// check returns the patterns of a request by product, each pattern once.
func check(lists []*policiesv1.ProductIgnores) (policy.Policy, error) {
	given := policy.Policy{}
	for i, list := range lists {
		product := wordOf(list.GetProduct())
		if _, twice := given[product]; twice {
			return nil, apierr.InvalidArgument(fmt.Sprintf("productIgnores[%d].product", i), "productIgnores has two lists of %s", list.GetProduct())
		}
		if bad := policy.Check(list.GetIgnores()); bad != nil {
			field := fmt.Sprintf("productIgnores[%d].ignores[%d]", i, bad.Index)
			return nil, apierr.InvalidArgument(field, "%s must be a pattern of a .gitignore file: %v; got %s", field, bad.Err,
				apierr.Quote(list.GetIgnores()[bad.Index]))
		}
		given[product] = lastOfEach(list.GetIgnores())
	}
	return given, nil
}

// lastOfEach leaves out patterns that come again: the last one decides.
func lastOfEach(patterns []string) []string {
	kept := []string{}
	for i, pattern := range patterns {
		if !slices.Contains(patterns[i+1:], pattern) {
			kept = append(kept, pattern)
		}
	}
	return kept
}

// change stores the patterns of some products, and enqueues the job that applies them.
func (s *Ignores) change(ctx context.Context, wantedOf func(stored policy.Policy) (policy.Policy, error)) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		owner, err := s.store.LockDeployment(ctx, tx)
		if err != nil {
			return err
		}
		stored, err := policy.Read(ctx, tx.Client())
		if err != nil {
			return err
		}
		wanted, err := wantedOf(stored)
		if err != nil {
			return err
		}
		changed := false
		for _, p := range products {
			patterns, named := wanted[p.word]
			if !named || slices.Equal(patterns, stored[p.word]) {
				continue
			}
			changed = true
			if err := put(ctx, tx, p.word, patterns); err != nil {
				return err
			}
			note(ctx, p.word, p.value, stored[p.word], patterns)
		}
		if !changed {
			return nil
		}
		return s.jobs.Enqueue(ctx, policy.Apply{DeploymentID: owner.ID}, nil)
	})
}

// put stores the patterns of a product; none deletes the row.
func put(ctx context.Context, tx *ent.Tx, product string, patterns []string) error {
	if len(patterns) == 0 {
		_, err := tx.PathIgnore.Delete().Where(pathignore.Product(product)).Exec(ctx)
		return err
	}
	return tx.PathIgnore.Create().SetProduct(product).SetPatterns(patterns).SetUpdatedAt(store.Now()).
		OnConflictColumns(pathignore.FieldDeploymentID, pathignore.FieldProduct).
		Update(func(u *ent.PathIgnoreUpsert) { u.UpdatePatterns().UpdateUpdatedAt() }).Exec(ctx)
}

func note(ctx context.Context, word string, product scansv1.Product, before, after []string) {
	was, is := messageOf(product, before), messageOf(product, after)
	switch {
	case was == nil:
		audit.Change(ctx, auditIgnores, word, nil, is)
	case is == nil:
		audit.Change(ctx, auditIgnores, word, was, nil)
	default:
		audit.Change(ctx, auditIgnores, word, was, is)
	}
}
