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
		field.Bytes("content").Comment("palisade.policies.v1.RemediationPolicy in the words of the vocabulary"),
		field.Bytes("given").Optional().Comment("the same in the words of the request; empty: no other words"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a remediation policy.
func (RemediationPolicy) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "slug").Unique().StorageKey("remediation_policies_by_slug")}
}

// PathIgnore has the patterns of paths whose findings of one product are ignored in all projects.
type PathIgnore struct{ ent.Schema }

// Mixin of path ignores.
func (PathIgnore) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of path ignores.
func (PathIgnore) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("product").Immutable().Comment("sast, sca, secrets, ai_sast"),
		field.JSON("patterns", []string{}).Comment("in the order of a .gitignore file; never empty"),
		timestamp("updated_at"),
	}
}

// Indexes of path ignores.
func (PathIgnore) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "product").Unique().StorageKey("path_ignores_by_product")}
}
