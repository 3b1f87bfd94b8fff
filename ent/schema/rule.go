package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Rule is a check of a tool. Findings refer to it, so that its text is stored once.
type Rule struct{ ent.Schema }

// Mixin of a rule.
func (Rule) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Hooks of a rule: findings show its content.
func (Rule) Hooks() []ent.Hook { return []ent.Hook{inCatalog("content")} }

// Fields of a rule.
func (Rule) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("tool").Immutable(),
		field.String("name").Immutable().Comment("id of the rule at the tool"),
		field.String("category"),
		field.String("confidence").Comment("low, medium, high"),
		field.Bytes("content").Comment("palisade.findings.v1.FindingRule"),
		field.String("secret_type").Optional().Nillable().Comment("kind of secret that it finds; as in content"),
		field.String("origin").Optional().Nillable().Comment("custom, community, pro_rules; null if the scanner did not say"),
	}
}

// Indexes of a rule.
func (Rule) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "tool", "name").Unique().StorageKey("rules_by_name"),
		index.Fields("deployment_id", "name").StorageKey("rules_filter_name"),
		index.Fields("deployment_id", "category").StorageKey("rules_filter_category"),
		index.Fields("deployment_id", "confidence").StorageKey("rules_filter_confidence"),
		index.Fields("deployment_id", "secret_type").StorageKey("rules_filter_secret_type").Annotations(entsql.IndexWhere("secret_type IS NOT NULL")),
		index.Fields("deployment_id", "origin").StorageKey("rules_filter_origin").Annotations(entsql.IndexWhere("origin IS NOT NULL")),
	}
}
