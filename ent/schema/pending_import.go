package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// PendingImport is a large import that a transaction on PostgreSQL has not committed yet: lists leave its place out,
// instead of stepping over each of its rows to learn that it is not there yet. The transaction itself deletes the row,
// so that whoever sees it cannot see anything of the import.
type PendingImport struct{ ent.Schema }

// Mixin of a pending import.
func (PendingImport) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a pending import.
func (PendingImport) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		timestamp("relevant_since").Immutable().Comment("of every finding that it makes or opens again"),
	}
}

// Indexes of a pending import.
func (PendingImport) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "relevant_since").StorageKey("pending_imports_by_place")}
}
