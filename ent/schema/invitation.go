package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Invitation invites a person, by e-mail address, to join a deployment.
type Invitation struct{ ent.Schema }

// Mixin of an invitation.
func (Invitation) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an invitation.
func (Invitation) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("email").Immutable().Comment("lower case"),
		field.Int64("invited_by").Immutable().Comment("user"),
		timestamp("created_at").Immutable(),
		timestamp("accepted_at").Optional().Nillable(),
	}
}

// Indexes of an invitation.
func (Invitation) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "email").Unique().StorageKey("invitations_by_email"),
		index.Fields("email").StorageKey("invitations_of_email"),
	}
}
