package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// NotificationEvent is an event that receivers have not been notified of yet. It is written in the transaction of the
// change that it describes, and deleted when all its deliveries are in the ledger.
type NotificationEvent struct{ ent.Schema }

// Mixin of a notification event.
func (NotificationEvent) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a notification event.
func (NotificationEvent) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("scan_id").Immutable().Comment("a scan that ended"),
		field.Int64("after_finding_id").Default(0).Comment("findings up to this id are in the ledger"),
		field.Bytes("digest").Optional().Comment("JSON: what messages to people need of the findings up to after_finding_id"),
		timestamp("not_before").Comment("later than created_at after a failure"),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a notification event.
func (NotificationEvent) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "scan_id").Unique().StorageKey("notification_events_of_scan"),
		index.Fields("deployment_id", "not_before", "id").StorageKey("notification_events_turns"),
	}
}
