// Package catalog marks transactions that change the data of rules and projects shown in lists of findings. The last
// statement of such a transaction increments the catalog revision of the deployment. Nodes cache this data until the
// revision changes, so every change is visible at once on all nodes.
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

// Change records that the transaction changes the catalog of the context's deployment, or of all deployments if the
// context acts for the server itself.
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
