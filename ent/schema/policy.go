package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// RemediationPolicy defines what happens to findings that match its conditions, for example that they block.
type RemediationPolicy struct{ ent.Schema }

// Mixin of a remediation policy.
func (RemediationPolicy) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a remediation policy.
func (RemediationPolicy) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("slug").Immutable(),
		field.Int32("position").Comment("position in the bundle, from 0"),
		field.Bool("active"),
		field.Bytes("content").Comment("palisade.policies.v1.RemediationPolicy"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a remediation policy.
func (RemediationPolicy) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "slug").Unique().StorageKey("remediation_policies_by_slug")}
}
