package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// WebhookEvent is what a source-code host told by a webhook whose signature was right: stored before it is answered,
// acted on by jobs, and then kept without its content, so that the same delivery is not taken twice.
type WebhookEvent struct{ ent.Schema }

// Mixin of a webhook event.
func (WebhookEvent) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a webhook event.
func (WebhookEvent) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("webhook_key").Immutable(),
		field.String("delivery_id").Immutable().Comment("the host's id where the host signs it, else the hash of the body"),
		field.String("subject").Immutable().Comment("the pull request or application: its events are acted on one after the other"),
		timestamp("happened_at").Immutable().Comment("by the host's clock; received_at where that says nothing, or is ahead of ours"),
		timestamp("received_at").Immutable(),
		timestamp("due_at").Optional().Nillable().Comment("it waits, or is worked on until then; null when it is over"),
		field.Int("attempts").Default(0).Comment("how often acting on it has failed"),
		field.Bool("failed").Default(false).Comment("given up; the same delivery is taken again"),
		field.Bytes("event").Optional().Comment("what it told and who sent it, as JSON; null when it is over"),
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
