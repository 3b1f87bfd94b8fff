package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Scan is one run of scanners over one ref of a project.
type Scan struct{ ent.Schema }

// Mixin of a scan.
func (Scan) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a scan.
func (Scan) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable(),
		field.String("ref").Immutable().Comment("full ref"),
		field.String("commit").Immutable(),
		field.String("status").Comment("SCAN_STATUS_*"),
		field.Int32("products").Comment("bit set, by number of palisade.scans.v1.Product"),
		field.Bool("is_full_scan").Immutable(),
		field.String("unique_id").Immutable().Optional().Nillable().Comment("UUID of the scanner's run; null for uploads"),
		field.String("results_state").Default("").Comment("scanner protocol: empty, received, stored, failed"),
		field.Bytes("scanner").Optional().Nillable().Comment("palisade.store.v1.ScannerScan; null for uploads"),
		field.Int32("exit_code").Default(0),
		field.Int32("total_count").Default(0).Comment("number of results"),
		field.Int32("code_count").Default(0),
		field.Int32("supply_chain_count").Default(0),
		field.Int32("secrets_count").Default(0),
		field.Bytes("meta").Comment("palisade.scans.v1.ScanMeta"),
		field.JSON("stats", map[string]any{}).Comment("returned unchanged"),
		timestamp("started_at").Immutable(),
		timestamp("completed_at").Optional().Nillable(),
	}
}

// Indexes of a scan.
func (Scan) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "started_at", "id").StorageKey("scans_search"),
		index.Fields("deployment_id", "project_id", "started_at", "id").StorageKey("scans_search_project"),
		index.Fields("deployment_id", "ref", "started_at", "id").StorageKey("scans_search_branch"),
		index.Fields("deployment_id", "unique_id").Unique().StorageKey("scans_by_unique_id"),
		index.Fields("deployment_id", "project_id", "ref", "is_full_scan", "id").StorageKey("scans_of_ref"),
		index.Fields("deployment_id", "status", "started_at", "id").StorageKey("scans_search_status"),
	}
}
