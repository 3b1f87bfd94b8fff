package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// FindingMatch records how a scan matched a result to a finding by other than exact evidence, or why it created a new
// finding although it considered others.
type FindingMatch struct{ ent.Schema }

// Mixin of a finding's match.
func (FindingMatch) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a finding's match.
func (FindingMatch) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("finding_id").Immutable(),
		field.Int64("scan_id").Immutable(),
		field.String("rung").Immutable().Comment("evidence that matched; empty: a new finding"),
		field.Bytes("content").Immutable().Comment("palisade.store.v1.FindingMatch"),
		timestamp("at").Immutable(),
	}
}

// Indexes of a finding's match.
func (FindingMatch) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "finding_id", "id").StorageKey("finding_matches_of_finding")}
}

// IdentityChange is a change that a person made to the identity of findings, with the data to undo it.
type IdentityChange struct{ ent.Schema }

// Mixin of an identity change.
func (IdentityChange) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an identity change.
func (IdentityChange) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable(),
		field.String("kind").Immutable().Comment("split, merge"),
		field.Int64("finding_id").Immutable().Comment("split: the finding that was split; merge: the finding that stays"),
		field.Int64("other_id").Immutable().Comment("split: the new finding; merge: the finding that was merged into it"),
		field.String("note").Immutable().Default(""),
		field.Bytes("before").Immutable().Comment("palisade.store.v1.IdentityBefore"),
		field.String("actor_kind").Immutable(),
		field.Int64("actor_id").Immutable(),
		timestamp("at").Immutable(),
		timestamp("undone_at").Optional().Nillable(),
	}
}

// Indexes of an identity change.
func (IdentityChange) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "project_id", "id").StorageKey("identity_changes_of_project"),
		index.Fields("deployment_id", "finding_id", "id").StorageKey("identity_changes_of_finding"),
		index.Fields("deployment_id", "other_id", "id").StorageKey("identity_changes_of_other"),
	}
}
