package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Deployment is an organization: the tenant that owns everything else.
type Deployment struct{ ent.Schema }

// Fields of a deployment.
func (Deployment) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("slug").NotEmpty().Immutable(),
		field.String("name").NotEmpty(),
		field.String("default_role").Default("ORG_ROLE_ADMIN").Comment("ORG_ROLE_* of users who join by single sign-on"),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a deployment.
func (Deployment) Indexes() []ent.Index {
	return []ent.Index{index.Fields("slug").Unique().StorageKey("deployments_by_slug")}
}
