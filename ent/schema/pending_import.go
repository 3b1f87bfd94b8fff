package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// PendingImport is a large import on PostgreSQL that is not committed yet. Lists skip findings with its
// relevant_since, instead of stepping over each invisible row of the import. The transaction itself deletes the row, so
// a snapshot that contains the row contains nothing of the import.
type PendingImport struct{ ent.Schema }

// Mixin of a pending import.
func (PendingImport) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a pending import.
func (PendingImport) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		timestamp("relevant_since").Immutable().Comment("relevant_since of all findings that it creates or reopens"),
	}
}

// Indexes of a pending import.
func (PendingImport) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "relevant_since").StorageKey("pending_imports_by_place")}
}
