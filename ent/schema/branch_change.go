package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// BranchChange records that another branch of a project became the one that reports count. Reports of the past read
// it. A project whose branch never changed has no row.
type BranchChange struct{ ent.Schema }

// Mixin of a branch change.
func (BranchChange) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a branch change.
func (BranchChange) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable(),
		field.String("from_ref").Immutable().Comment("full ref that counted until then"),
		field.String("to_ref").Immutable().Comment("full ref that counts since then"),
		timestamp("at").Immutable(),
	}
}

// Indexes of a branch change.
func (BranchChange) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "project_id", "id").StorageKey("branch_changes_of_project")}
}
