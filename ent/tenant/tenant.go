// Package tenant carries the deployment of a database call in the context. The policies of the schema read it: without
// a deployment, every query and every change of a tenant's rows is denied.
package tenant

import "context"

type key struct{}

// scope is what a context may access: one deployment, or (system) all of them.
type scope struct {
	deploymentID int64
	system       bool
}

// NewContext limits database calls to the rows of one deployment.
func NewContext(ctx context.Context, deploymentID int64) context.Context {
	return context.WithValue(ctx, key{}, scope{deploymentID: deploymentID})
}

// System removes the limit to a deployment. Use it only for bootstrapping, for authentication (the tenant is not known
// yet) and for maintenance.
func System(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, scope{system: true})
}

// FromContext returns the deployment of the context; ok is false when there is none.
func FromContext(ctx context.Context) (deploymentID int64, ok bool) {
	s, _ := ctx.Value(key{}).(scope)
	return s.deploymentID, s.deploymentID != 0
}

// IsSystem reports whether the context acts for the server itself.
func IsSystem(ctx context.Context) bool {
	s, _ := ctx.Value(key{}).(scope)
	return s.system
}
