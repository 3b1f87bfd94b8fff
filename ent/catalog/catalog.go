// Package catalog tells which transactions change what lists of findings show of rules and projects. Such a transaction
// counts up the revision of the deployment as its last statement, so that a node may keep what it has read of them for
// as long as that revision stays the same: a change shows at once, whichever node made it.
package catalog

import (
	"context"

	"github.com/palisade/palisade/ent/tenant"
)

type key struct{}

// Changes are those of one transaction. They are not safe for concurrent use, as a transaction is not.
type Changes struct {
	all         bool
	deployments map[int64]bool
}

// NewContext returns a context that collects the changes made with it.
func NewContext(ctx context.Context) (context.Context, *Changes) {
	c := &Changes{deployments: map[int64]bool{}}
	return context.WithValue(ctx, key{}, c), c
}

// Change notes that the deployment of the context changes its catalog; all deployments do when the server itself acts.
func Change(ctx context.Context) {
	c, ok := ctx.Value(key{}).(*Changes)
	if !ok {
		return
	}
	if id, ok := tenant.FromContext(ctx); ok {
		c.deployments[id] = true
		return
	}
	c.all = true
}

// Deployments returns the deployments whose catalog changed; all is true when any may have.
func (c *Changes) Deployments() (ids []int64, all bool) {
	for id := range c.deployments {
		ids = append(ids, id)
	}
	return ids, c.all
}
