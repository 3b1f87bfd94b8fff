package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// PageBoundary is where a page of a list ended that a node served lately, so that any node goes on from there. Only
// PostgreSQL has rows of it, in a table that is not logged: they are worth nothing after a crash. SQLite has one node,
// which remembers by itself.
type PageBoundary struct{ ent.Schema }

// Mixin of a page's boundary.
func (PageBoundary) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a page's boundary.
func (PageBoundary) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Bytes("list").Immutable().Comment("SHA-256 of caller, what he sees, and filter"),
		field.Int64("rows").Immutable().Comment("of the list up to here"),
		field.Int64("walk").Comment("which began with page 0: its time in microseconds"),
		timestamp("relevant_since").Comment("of the last of these rows"),
		field.Int64("finding_id").Comment("of the last of these rows"),
		field.Bool("ended").Comment("nothing follows"),
		timestamp("served_at"),
	}
}

// Indexes of a page's boundary.
func (PageBoundary) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "list", "rows").Unique().StorageKey("page_boundaries_by_place")}
}
