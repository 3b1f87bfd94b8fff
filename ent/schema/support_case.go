package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// SupportCase is a request of a user to the operator of the installation.
type SupportCase struct{ ent.Schema }

// Mixin of a support case.
func (SupportCase) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a support case.
func (SupportCase) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("number").Immutable().Comment("in the deployment, from 1"),
		field.Int64("user_id").Immutable().Comment("who opened it"),
		field.String("kind").Immutable().Comment("feature_request, bug_fix, question"),
		field.String("priority").Immutable().Comment("urgent, high, medium, low"),
		field.String("subject").Immutable(),
		field.String("description").Immutable(),
		field.String("email").Immutable().Comment("for the answer"),
		field.String("status").Comment("open, in_progress, closed"),
		field.String("owner").Default("").Comment("who works on it"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a support case.
func (SupportCase) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "number").Unique().StorageKey("support_cases_by_number"),
		index.Fields("deployment_id", "user_id", "number").StorageKey("support_cases_of_user"),
	}
}
