package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ManagedScan is a scan that Palisade itself runs. The row of the scan has its state.
type ManagedScan struct{ ent.Schema }

// Mixin of a managed scan.
func (ManagedScan) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a managed scan.
func (ManagedScan) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("scan_id").Immutable(),
		field.Int64("project_id").Immutable(),
		field.Int64("config_id").Immutable().Comment("the connection when it was requested"),
		field.String("cause").Immutable().Comment("MANAGED_SCAN_CAUSE_*"),
		field.Int64("retry_of").Optional().Nillable().Immutable().Comment("id of a scan"),
		field.Int64("job_id").Default(0).Comment("id of the background job"),
		field.String("waiting_for").Optional().Nillable().Comment("the ref while the scan waits; NULL: it began or ended"),
		timestamp("lease_until").Default(0).Comment("until when the node that runs it is considered alive"),
		field.Int32("claims").Default(0).Comment("how many nodes have begun it"),
		field.String("problem").Default("").Comment("why it did not succeed"),
		field.Text("log").Default(""),
		timestamp("created_at").Immutable(),
		timestamp("begun_at").Optional().Nillable(),
	}
}

// Indexes of a managed scan.
func (ManagedScan) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "scan_id").Unique().StorageKey("managed_scans_by_scan"),
		index.Fields("deployment_id", "project_id", "waiting_for").Unique().StorageKey("managed_scans_waiting").
			Annotations(entsql.IndexWhere("waiting_for IS NOT NULL")),
		index.Fields("lease_until").StorageKey("managed_scans_leased").Annotations(entsql.IndexWhere("lease_until > 0")),
	}
}

// ManagedScanSetting is what a pull request shows when its managed scan does not finish. A deployment has at most one.
type ManagedScanSetting struct{ ent.Schema }

// Mixin of the settings.
func (ManagedScanSetting) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of the settings.
func (ManagedScanSetting) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Bool("fail_open"),
		field.Int64("fail_open_seconds").Default(0).Comment("0: a scan that takes long is waited for"),
		timestamp("updated_at"),
	}
}

// Indexes of the settings.
func (ManagedScanSetting) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id").Unique().StorageKey("managed_scan_settings_one")}
}
