package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ReviewCommentContent is text that a deployment adds to the review comments of a product.
type ReviewCommentContent struct{ ent.Schema }

// Mixin of review comment content.
func (ReviewCommentContent) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of review comment content.
func (ReviewCommentContent) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("content_type").Comment("REVIEW_COMMENT_CONTENT_TYPE_*"),
		field.String("product_type").Comment("PRODUCT_*"),
		field.String("content"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of review comment content.
func (ReviewCommentContent) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "content_type", "product_type").Unique().StorageKey("review_comment_contents_by_product")}
}
