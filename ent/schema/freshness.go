package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Freshness is how fresh the results of one analysis (tool and category) on one branch of a project are. Scans update
// it in the transaction that stores their results, and a job when time passes without scans. The worst state of a
// project is the maximum of state over its rows (freshness_of_project).
type Freshness struct{ ent.Schema }

// Mixin of a freshness.
func (Freshness) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a freshness.
func (Freshness) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable(),
		field.String("ref").Immutable().Comment("full ref of a branch"),
		field.String("tool").Immutable(),
		field.String("analysis_category").Immutable(),
		field.Int32("state").Comment("0: not watched, 1: ok, 2: shrunk, 3: late, 4: failing, 5: silent; larger is worse"),
		timestamp("since").Comment("when it got the state"),
		timestamp("due_at").Optional().Nillable().Comment("when time alone may change the state; null: never"),
		field.Int64("last_scan_id").Comment("the newest scan, successful or not"),
		field.String("scanner_version").Default("").
			Comment("of the last successful scan, else of the newest one; empty: unknown, or stored before this column existed"),
		field.Bytes("content").Comment("palisade.store.v1.Freshness"),
	}
}

// Indexes of a freshness.
func (Freshness) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "project_id", "ref", "tool", "analysis_category").Unique().StorageKey("freshness_of_analysis"),
		index.Fields("deployment_id", "project_id", "state", "id").StorageKey("freshness_of_project"),
		index.Fields("deployment_id", "state", "id").StorageKey("freshness_list"),
		index.Fields("deployment_id", "due_at").StorageKey("freshness_due"),
	}
}
