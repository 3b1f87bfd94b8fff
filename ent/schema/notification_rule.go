package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// NotificationRule defines which events are sent to which receiver.
type NotificationRule struct{ ent.Schema }

// Mixin of a notification rule.
func (NotificationRule) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a notification rule.
func (NotificationRule) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("channel").Comment("CHANNEL_*"),
		field.String("name"),
		field.JSON("config", map[string]string{}).Comment("keys of the channel that are not secret"),
		field.Bytes("secrets").Optional().Sensitive().Comment("encrypted: JSON of the secret keys"),
		field.Bool("is_enabled").Default(false),
		field.JSON("policy_slugs", []string{}).Comment("empty: all"),
		field.Bool("use_network_broker").Default(false),
		field.Bool("send_scan_completion").Default(true),
		field.Bool("send_held_closes").Default(false),
		field.Bool("send_rule_alerts").Default(false),
		field.Bool("send_freshness").Default(false),
		field.Bool("send_findings").Default(true),
		field.Bytes("send_report").Optional().Comment("palisade.reporting.v1.ReportSchedule; empty: none"),
		timestamp("next_report_at").Optional().Nillable().Comment("of an enabled rule with a report"),
		timestamp("last_report_at").Optional().Nillable(),
		field.Bytes("digest").Optional().Comment("palisade.notifications.v1.DigestSchedule; empty: findings of each scan are sent at once"),
		timestamp("next_digest_at").Optional().Nillable().Comment("of an enabled rule with a digest"),
		field.Bytes("quiet_hours").Optional().Comment("palisade.notifications.v1.QuietHours; empty: none"),
		field.JSON("refused_recipients", map[string]string{}).Optional().Comment("for e-mail: addresses that the mail server refused, with its response"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a notification rule.
func (NotificationRule) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "id").StorageKey("notification_rules_list"),
		index.Fields("deployment_id", "channel", "id").StorageKey("notification_rules_by_channel"),
		index.Fields("next_report_at", "id").StorageKey("notification_rules_reports").
			Annotations(entsql.IndexWhere("next_report_at IS NOT NULL")),
		index.Fields("next_digest_at", "id").StorageKey("notification_rules_digests").
			Annotations(entsql.IndexWhere("next_digest_at IS NOT NULL")),
	}
}
