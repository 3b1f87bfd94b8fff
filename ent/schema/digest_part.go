package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// DigestPart is what a scan adds to the next digest of a notification rule. It is deleted when the digest is written.
type DigestPart struct{ ent.Schema }

// Mixin of a part.
func (DigestPart) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a part.
func (DigestPart) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("rule_id").Immutable(),
		field.Int64("project_id").Immutable(),
		field.Int64("scan_id").Immutable(),
		field.Bytes("tally").Immutable().Comment("JSON: the numbers by severity, and the ids of the worst findings"),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a part.
func (DigestPart) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "rule_id", "id").StorageKey("digest_parts_of_rule")}
}
