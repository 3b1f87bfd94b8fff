package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// WebhookReceipt records a received webhook, to detect duplicates.
type WebhookReceipt struct{ ent.Schema }

// Mixin of a webhook receipt.
func (WebhookReceipt) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a webhook receipt.
func (WebhookReceipt) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("webhook_key").Immutable(),
		field.String("delivery_id").Immutable().Comment("hash of the body, because hosts do not sign their ids"),
		timestamp("received_at").Immutable(),
	}
}

// Indexes of a webhook receipt.
func (WebhookReceipt) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "webhook_key", "delivery_id").Unique().StorageKey("webhook_receipts_by_delivery"),
		index.Fields("received_at").StorageKey("webhook_receipts_by_time"),
	}
}
