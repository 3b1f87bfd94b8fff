package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// PageBoundary is the last row of a page that a node served recently, so that any node can serve the next page. Only
// PostgreSQL uses it, as an unlogged table: the rows have no value after a crash. SQLite has one node, which keeps page
// boundaries in memory.
type PageBoundary struct{ ent.Schema }

// Mixin of a page's boundary.
func (PageBoundary) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a page's boundary.
func (PageBoundary) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Bytes("list").Immutable().Comment("SHA-256 of caller, visibility and filter"),
		field.Int64("rows").Immutable().Comment("number of rows of the list up to here"),
		field.Int64("walk").Comment("listing session: the time of its page 0, in microseconds"),
		timestamp("relevant_since").Comment("of the last row"),
		field.Int64("finding_id").Comment("of the last row"),
		field.Bool("ended").Comment("the list ends here"),
		timestamp("served_at"),
	}
}

// Indexes of a page's boundary.
func (PageBoundary) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "list", "rows").Unique().StorageKey("page_boundaries_by_place")}
}
