package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// WebhookEvent is a webhook of a source-code host with a valid signature. It is stored before the response, processed
// by jobs, and then kept without its content to detect duplicates.
type WebhookEvent struct{ ent.Schema }

// Mixin of a webhook event.
func (WebhookEvent) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a webhook event.
func (WebhookEvent) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("webhook_key").Immutable(),
		field.String("delivery_id").Immutable().Comment("the host's id if it is signed, else the hash of the body"),
		field.String("subject").Immutable().Comment("the pull request or application; its events are processed in order"),
		timestamp("happened_at").Immutable().Comment("by the host's clock; received_at if the host gives no time or its clock is ahead"),
		timestamp("received_at").Immutable(),
		timestamp("due_at").Optional().Nillable().Comment("time of the next attempt, or lease of the current one; null when finished"),
		field.Int("attempts").Default(0).Comment("number of failed attempts"),
		field.Bool("failed").Default(false).Comment("given up; the same delivery is accepted again"),
		field.Bytes("event").Optional().Comment("content and sender, as JSON; null when finished"),
	}
}

// Indexes of a webhook event.
func (WebhookEvent) Indexes() []ent.Index {
	waiting := entsql.IndexWhere("due_at IS NOT NULL")
	return []ent.Index{
		index.Fields("deployment_id", "webhook_key", "delivery_id").Unique().StorageKey("webhook_events_by_delivery"),
		index.Fields("deployment_id", "due_at").StorageKey("webhook_events_due").Annotations(waiting),
		index.Fields("deployment_id", "subject", "happened_at", "id").StorageKey("webhook_events_of_subject").Annotations(waiting),
		index.Fields("received_at").StorageKey("webhook_events_by_time"),
	}
}
