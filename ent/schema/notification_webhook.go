package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// NotificationWebhook is a receiver of webhooks that notification rules refer to.
type NotificationWebhook struct{ ent.Schema }

// Mixin of a notification webhook.
func (NotificationWebhook) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a notification webhook.
func (NotificationWebhook) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("name").NotEmpty(),
		field.String("url").Comment("masked if it contains a secret; sealed_url has the URL then"),
		field.Bytes("sealed_url").Optional().Sensitive().Comment("encrypted: the URL, if knowing it is enough to post"),
		field.Bytes("secret").Optional().Sensitive().Comment("encrypted: signing secret of deliveries"),
		field.Bool("use_network_broker").Default(false),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a notification webhook.
func (NotificationWebhook) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "name").Unique().StorageKey("notification_webhooks_by_name")}
}
