package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Notification is a message from the server to the users of a deployment.
type Notification struct{ ent.Schema }

// Mixin of a notification.
func (Notification) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a notification.
func (Notification) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("dedup_key").Immutable().Comment("deduplication key"),
		field.String("title").Immutable(),
		field.String("description").Immutable(),
		field.String("severity").Immutable().Comment("SEVERITY_*"),
		field.Bool("admin_only").Immutable(),
		field.String("link").Immutable(),
		field.Bool("is_external_link").Immutable(),
		field.String("link_text").Immutable(),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a notification.
func (Notification) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "dedup_key").Unique().StorageKey("notifications_by_key"),
		index.Fields("deployment_id", "created_at", "id").StorageKey("notifications_list"),
	}
}

// NotificationSeen records that a user has seen a notification.
type NotificationSeen struct{ ent.Schema }

// Mixin of a seen notification.
func (NotificationSeen) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a seen notification.
func (NotificationSeen) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("notification_id").Immutable(),
		field.Int64("user_id").Immutable(),
		timestamp("at").Immutable(),
	}
}

// Indexes of a seen notification.
func (NotificationSeen) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "user_id", "notification_id").Unique().StorageKey("notifications_seen_by_user")}
}
