package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
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
		field.String("commit").Comment("empty while a managed scan has not fetched the code"),
		timestamp("commit_time").Optional().Nillable().Comment("when the commit was made; null if unknown"),
		field.String("status").Comment("SCAN_STATUS_*"),
		field.Int32("products").Comment("bit set, by number of palisade.scans.v1.Product"),
		field.Bool("is_full_scan").Immutable(),
		field.Int64("pull_request").Immutable().Optional().Nillable().
			Comment("number of the pull request; null: none, or stored before this column existed"),
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
		index.Fields("deployment_id", "project_id", "commit", "id").StorageKey("scans_of_commit"),
		index.Fields("deployment_id", "status", "started_at", "id").StorageKey("scans_search_status"),
		index.Fields("deployment_id", "project_id", "ref", "started_at", "id").StorageKey("scans_of_project_by_branch"),
		index.Fields("deployment_id", "project_id", "status", "started_at", "id").StorageKey("scans_of_project_by_status"),
		index.Fields("deployment_id", "project_id", "is_full_scan", "started_at", "id").StorageKey("scans_of_project_by_type"),
		index.Fields("deployment_id", "project_id", "pull_request", "id").StorageKey("scans_of_pull_request").
			Annotations(entsql.IndexWhere("pull_request IS NOT NULL")),
		index.Fields("deployment_id", "id", "project_id", "pull_request").StorageKey("scans_of_pull_requests").
			Annotations(entsql.IndexWhere("pull_request IS NOT NULL")),
	}
}

// ScanAnswer is what the server answered to an upload, for people who read it later. A job deletes it after 30 days.
type ScanAnswer struct{ ent.Schema }

// Mixin of a scan's answer.
func (ScanAnswer) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a scan's answer.
func (ScanAnswer) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("scan_id").Immutable(),
		field.Int64("project_id").Immutable(),
		field.Bytes("content").Immutable().Comment("zstd of palisade.scans.v1.UploadReportResponse"),
		timestamp("at").Immutable(),
	}
}

// Indexes of a scan's answer.
func (ScanAnswer) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "project_id", "scan_id").Unique().StorageKey("scan_answers_of_scan"),
		index.Fields("deployment_id", "at").StorageKey("scan_answers_by_time"),
	}
}
