package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Delivery is one message to one receiver. The table is the ledger of notifications.
type Delivery struct{ ent.Schema }

// Mixin of a delivery.
func (Delivery) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a delivery.
func (Delivery) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("rule_id").Immutable(),
		field.String("event_id").Immutable().Comment("the same in every attempt and replay"),
		field.String("kind").Immutable().Comment("findings, scan, held_closes, rule_alert, freshness, report, workflow, test"),
		field.Int64("project_id").Immutable().Default(0),
		field.Int64("scan_id").Immutable().Default(0),
		field.Bytes("payload").Immutable().Comment("body, as signed"),
		field.String("state").Comment("pending, delivered, abandoned, canceled"),
		field.Int32("attempts").Default(0),
		timestamp("next_attempt_at"),
		timestamp("locked_until").Default(0).Comment("lease of the node that works on it"),
		timestamp("give_up_at"),
		field.Int32("last_status").Default(0).Comment("HTTP status; 0 without one"),
		field.String("last_error").Default(""),
		field.JSON("delivered_to", []string{}).Optional().Comment("for an e-mail that was not delivered to all addresses: the addresses that received it"),
		field.Int64("replay_of").Immutable().Optional().Nillable(),
		timestamp("created_at").Immutable(),
		timestamp("finished_at").Optional().Nillable(),
	}
}

// Indexes of a delivery.
func (Delivery) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "id").StorageKey("deliveries_list"),
		index.Fields("deployment_id", "rule_id", "id").StorageKey("deliveries_of_rule"),
		index.Fields("deployment_id", "state", "id").StorageKey("deliveries_by_state"),
		index.Fields("deployment_id", "event_id").StorageKey("deliveries_by_event"),
		index.Fields("deployment_id", "scan_id", "rule_id").StorageKey("deliveries_of_scan"),
		index.Fields("deployment_id", "rule_id", "next_attempt_at", "id").StorageKey("deliveries_turns").
			Annotations(entsql.IndexWhere("finished_at IS NULL")),
		index.Fields("finished_at", "id").StorageKey("deliveries_finished").
			Annotations(entsql.IndexWhere("finished_at IS NOT NULL")),
	}
}

// DeliveryAttempt is one attempt to deliver.
type DeliveryAttempt struct{ ent.Schema }

// Mixin of a delivery attempt.
func (DeliveryAttempt) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a delivery attempt.
func (DeliveryAttempt) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("delivery_id").Immutable(),
		field.Int32("status").Immutable().Comment("HTTP status; 0 without one"),
		field.String("error").Immutable(),
		field.Int64("duration_us").Immutable(),
		timestamp("at").Immutable(),
	}
}

// Indexes of a delivery attempt.
func (DeliveryAttempt) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "delivery_id", "id").StorageKey("delivery_attempts_of_delivery")}
}
