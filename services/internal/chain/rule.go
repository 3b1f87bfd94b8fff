package chain

import (
	"context"

	"github.com/palisade/palisade/services/internal/access"
)

// applyRule checks the caller and its role in the deployment against the rule of the RPC.
func applyRule(audit *auditor) Link {
	return check(func(ctx context.Context, c *call) (context.Context, error) {
		if err := access.Authorize(c.rule, c.principal, c.grant); err != nil {
			audit.denied(ctx, c, err)
			return nil, err
		}
		return ctx, nil
	}).link("access rule")
}
