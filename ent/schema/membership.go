package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Membership gives a user a role in a deployment.
type Membership struct{ ent.Schema }

// Mixin of a membership.
func (Membership) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a membership.
func (Membership) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("user_id").Immutable(),
		field.String("role").Comment("ORG_ROLE_*"),
		field.Bool("from_claims").Optional().Comment("created and updated by claims of the user's ID tokens"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at").Optional().Nillable().Comment("last change of the role; null before the first"),
	}
}

// Indexes of a membership.
func (Membership) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "user_id").Unique().StorageKey("memberships_by_user"),
		index.Fields("user_id").StorageKey("memberships_of_user"),
	}
}
