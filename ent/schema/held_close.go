package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// HeldClose has the closes that one scan decided for one analysis and that are held, because they are too many at once.
type HeldClose struct{ ent.Schema }

// Mixin of held closes.
func (HeldClose) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of held closes.
func (HeldClose) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable(),
		field.String("ref").Immutable().Comment("full ref"),
		field.String("tool").Immutable(),
		field.String("tool_version").Immutable().Comment("empty if unknown"),
		field.String("analysis_category").Immutable(),
		field.String("products").Immutable().Comment("that the scan covered, with commas; empty: all"),
		field.Int64("scan_id").Immutable(),
		field.String("state").Comment("pending, confirmed, rejected, superseded"),
		field.Bool("active").Comment("later scans of the analysis read it: the latest one, pending or rejected"),
		field.Int32("findings").Immutable().Comment("how many the scan would have closed"),
		field.Int32("open").Immutable().Comment("how many were open then"),
		field.Int32("waiting").Comment("how many still wait"),
		field.Bool("rejected_before").Immutable().Comment("closes of some of the findings were rejected before"),
		field.Bytes("content").Comment("palisade.store.v1.HeldCloses, compressed"),
		field.String("actor_kind").Default("").Comment("who decided: scan, user, token, host"),
		field.Int64("actor_id").Default(0),
		field.String("note").Default(""),
		timestamp("created_at").Immutable(),
		timestamp("decided_at").Optional().Nillable(),
	}
}

// Indexes of held closes.
func (HeldClose) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "project_id", "ref").StorageKey("held_closes_active").Annotations(entsql.IndexWhere("active")),
		index.Fields("deployment_id", "id").StorageKey("held_closes_list"),
		index.Fields("deployment_id", "project_id", "id").StorageKey("held_closes_of_project"),
		index.Fields("deployment_id", "state", "id").StorageKey("held_closes_by_state"),
		index.Fields("deployment_id", "scan_id").StorageKey("held_closes_of_scan"),
	}
}
