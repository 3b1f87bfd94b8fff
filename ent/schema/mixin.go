// Package schema declares the tables. Every tenant's table has the TenantMixin. Times are microseconds since 1970 UTC,
// exact and equal on both databases.
package schema

import (
	"context"
	"fmt"

	"entgo.io/ent"
	"entgo.io/ent/dialect/sql"
	"entgo.io/ent/entql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/mixin"

	gen "github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/privacy"
	"github.com/palisade/palisade/ent/tenant"
)

// timestamp is a time column in microseconds since 1970 UTC.
var timestamp = field.Int64

// TenantMixin isolates the rows of a table by deployment. Queries, updates and deletes are limited to the deployment of
// the context, and a create gets this deployment. Without a deployment everything is denied. HasXWith predicates and
// subqueries are not covered: they must repeat the condition.
type TenantMixin struct{ mixin.Schema }

// Fields of every tenant's table.
func (TenantMixin) Fields() []ent.Field {
	return []ent.Field{field.Int64("deployment_id").Immutable()}
}

// Policy of every tenant's table.
func (TenantMixin) Policy() ent.Policy {
	policy := wall(func(deploymentID int64, filter privacy.Filter) error {
		rows, ok := filter.(interface{ WhereDeploymentID(entql.Int64P) })
		if !ok {
			return privacy.Denyf("%T has no deployment_id", filter)
		}
		rows.WhereDeploymentID(entql.Int64EQ(deploymentID))
		return privacy.Skip
	})
	rule := policy.(privacy.Policy)
	rule.Mutation = privacy.MutationPolicy{ofKeys{rule.Mutation}}
	return rule
}

// ofKeys is the same rule for changes of rows that are named by their primary keys (tenant.ByKey). The condition has a
// unary plus before the column, which keeps both databases from choosing an index by that column.
type ofKeys struct{ privacy.MutationRule }

// EvalMutation limits a mutation to the deployment of the context.
func (r ofKeys) EvalMutation(ctx context.Context, m ent.Mutation) error {
	id, ok := tenant.FromContext(ctx)
	rows, can := m.(interface{ WhereP(...func(*sql.Selector)) })
	if !ok || !can || !tenant.IsByKey(ctx) || tenant.IsSystem(ctx) || m.Op().Is(ent.OpCreate) {
		return r.MutationRule.EvalMutation(ctx, m)
	}
	rows.WhereP(func(s *sql.Selector) {
		s.Where(sql.P(func(b *sql.Builder) { b.WriteString("+" + s.C("deployment_id") + " = ").Arg(id) }))
	})
	return privacy.Skip
}

// Hooks of every tenant's table.
func (TenantMixin) Hooks() []ent.Hook { return []ent.Hook{setDeployment} }

// Policy of deployments: a context sees its own deployment.
func (Deployment) Policy() ent.Policy {
	return wall(func(deploymentID int64, filter privacy.Filter) error {
		filter.(*gen.DeploymentFilter).WhereID(entql.Int64EQ(deploymentID))
		return privacy.Skip
	})
}

// Policy of users: only the server itself reads and writes them, after its own permission checks.
func (User) Policy() ent.Policy { return systemOnly }

// Policy of signing keys: only the server itself.
func (SigningKey) Policy() ent.Policy { return systemOnly }

// Policy of settings: only the server itself.
func (Setting) Policy() ent.Policy { return systemOnly }

// Policy of sessions: only the server itself.
func (Session) Policy() ent.Policy { return systemOnly }

// Policy of console links: only the server itself.
func (ConsoleLink) Policy() ent.Policy { return systemOnly }

var systemOnly = wall(func(int64, privacy.Filter) error {
	return privacy.Denyf("this table belongs to the server, not to a deployment")
})

// wall allows the server itself, denies a context without a deployment, and applies limit to all other contexts.
func wall(limit func(deploymentID int64, filter privacy.Filter) error) ent.Policy {
	rule := privacy.FilterFunc(func(ctx context.Context, filter privacy.Filter) error {
		if tenant.IsSystem(ctx) {
			return privacy.Allow
		}
		id, ok := tenant.FromContext(ctx)
		if !ok {
			return privacy.Denyf("no deployment in the context")
		}
		return limit(id, filter)
	})
	return privacy.Policy{Query: privacy.QueryPolicy{rule}, Mutation: privacy.MutationPolicy{rule}}
}

// setDeployment sets the context's deployment on a new row and refuses any other. A policy cannot do this: it filters
// existing rows, but cannot stop a create with a foreign tenant.
func setDeployment(next ent.Mutator) ent.Mutator {
	return ent.MutateFunc(func(ctx context.Context, m ent.Mutation) (ent.Value, error) {
		if id, ok := tenant.FromContext(ctx); ok && m.Op().Is(ent.OpCreate) {
			if named, set := m.Field("deployment_id"); set && named != id {
				return nil, fmt.Errorf("create %s in deployment %v from deployment %d: %w", m.Type(), named, id, privacy.Deny)
			}
			if err := m.SetField("deployment_id", id); err != nil {
				return nil, err
			}
		}
		return next.Mutate(ctx, m)
	})
}
