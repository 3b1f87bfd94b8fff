package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ProductFeedback is the feedback of a user who enabled or disabled a product.
type ProductFeedback struct{ ent.Schema }

// Mixin of product feedback.
func (ProductFeedback) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of product feedback.
func (ProductFeedback) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("feature_action").Immutable(),
		field.String("feedback").Immutable(),
		field.String("actor_kind").Immutable().Comment("user, token"),
		field.Int64("actor_id").Immutable(),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of product feedback.
func (ProductFeedback) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "created_at").StorageKey("product_feedback_by_time")}
}
