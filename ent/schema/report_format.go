package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ReportFormat is a mapping that describes a report format of the deployment.
type ReportFormat struct{ ent.Schema }

// Mixin of a report format.
func (ReportFormat) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a report format.
func (ReportFormat) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("name").Immutable(),
		field.Text("mapping").Comment("YAML, as the caller wrote it"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a report format.
func (ReportFormat) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "name").Unique().StorageKey("report_formats_by_name")}
}
