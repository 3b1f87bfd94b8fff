package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ScanPayload is a piece of a scanner's results that are not yet stored as findings. Secrets in it are redacted, and it
// contains no credentials.
type ScanPayload struct{ ent.Schema }

// Mixin of a scan payload.
func (ScanPayload) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a scan payload.
func (ScanPayload) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("scan_id").Immutable(),
		field.Int32("position").Immutable().Comment("from 0"),
		field.Bytes("content").Immutable().Comment("next bytes of a zstd stream of length-delimited palisade.store.v1.ScannerFrame"),
	}
}

// Indexes of a scan payload.
func (ScanPayload) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "scan_id", "position").Unique().StorageKey("scan_payloads_of_scan")}
}

// ScanCoverage is the coverage of one analysis of a scan: which rules ran over which files.
type ScanCoverage struct{ ent.Schema }

// Mixin of a scan's coverage.
func (ScanCoverage) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a scan's coverage.
func (ScanCoverage) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("scan_id").Immutable(),
		field.Int64("project_id").Immutable(),
		field.String("ref").Immutable().Comment("full ref"),
		field.String("tool").Immutable(),
		field.String("analysis_category").Immutable(),
		field.Bool("is_full_scan").Immutable(),
		field.Int32("products").Immutable().Optional().Nillable().
			Comment("products whose findings it reports, as a bit set; 0: the run failed; null: stored before this column existed"),
		field.Bytes("content").Immutable().Comment("zstd of palisade.store.v1.ScanCoverage"),
		timestamp("at").Immutable(),
		timestamp("commit_time").Immutable().Optional().Nillable().Comment("that of the scan"),
		timestamp("ran_at").Immutable().Optional().Nillable().
			Comment("end of the run, else its start; of the scanner protocol: start of the scan; null if unknown"),
	}
}

// Indexes of a scan's coverage.
func (ScanCoverage) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "scan_id").StorageKey("scan_coverages_of_scan"),
		index.Fields("deployment_id", "project_id", "ref", "tool", "analysis_category", "scan_id").StorageKey("scan_coverages_of_analysis"),
		index.Fields("deployment_id", "project_id", "ref", "tool", "analysis_category", "commit_time").StorageKey("scan_coverages_by_commit"),
		index.Fields("deployment_id", "project_id", "ref", "tool", "analysis_category", "ran_at").StorageKey("scan_coverages_by_run"),
		index.Fields("deployment_id", "at").StorageKey("scan_coverages_by_time"),
	}
}
