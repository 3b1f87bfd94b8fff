package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// FindingMatch is how a scan joined a result to a finding, where it was not by exact evidence, or why it made a new
// finding although others were near.
type FindingMatch struct{ ent.Schema }

// Mixin of a finding's match.
func (FindingMatch) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a finding's match.
func (FindingMatch) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("finding_id").Immutable(),
		field.Int64("scan_id").Immutable(),
		field.String("rung").Immutable().Comment("evidence that joined them; empty: a new finding"),
		field.Bytes("content").Immutable().Comment("palisade.store.v1.FindingMatch"),
		timestamp("at").Immutable(),
	}
}

// Indexes of a finding's match.
func (FindingMatch) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "finding_id", "id").StorageKey("finding_matches_of_finding")}
}

// IdentityChange is what a person said about the identity of findings, with all that is needed to take it back.
type IdentityChange struct{ ent.Schema }

// Mixin of an identity change.
func (IdentityChange) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an identity change.
func (IdentityChange) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable(),
		field.String("kind").Immutable().Comment("split, merge"),
		field.Int64("finding_id").Immutable().Comment("split: the one that was split; merge: the one that stays"),
		field.Int64("other_id").Immutable().Comment("split: the new one; merge: the one that went into it"),
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
