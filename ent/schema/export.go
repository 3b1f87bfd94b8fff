package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Export is a file that a job writes for a caller, in chunks. Only that caller can read it, until it expires.
type Export struct{ ent.Schema }

// Mixin of an export.
func (Export) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an export.
func (Export) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("format").Immutable().Comment("csv, ndjson, sarif, openvex, cyclonedx, sbom"),
		field.Bytes("request").Immutable().Comment("what to export: the request message"),
		field.String("actor_kind").Immutable().Comment("user, token"),
		field.Int64("actor_id").Immutable(),
		field.Int32("round").Default(0).Comment("number of the job's attempt that writes it; chunks of earlier attempts are not read"),
		field.Int64("row_count").Default(0).Comment("findings so far"),
		field.Int64("byte_count").Default(0).Comment("bytes so far"),
		field.Bytes("sha256").Optional().Comment("of the whole file; empty until it is complete"),
		field.String("error").Default("").Comment("why the last attempt failed, in one line"),
		timestamp("created_at").Immutable(),
		timestamp("completed_at").Optional().Nillable(),
		timestamp("expires_at").Comment("then a job deletes it"),
	}
}

// Indexes of an export.
func (Export) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "expires_at").StorageKey("exports_of_deployment"),
		index.Fields("expires_at").StorageKey("exports_expired"),
	}
}

// ExportChunk is a part of an export's file. It is in the database because nodes share no disk.
type ExportChunk struct{ ent.Schema }

// Mixin of an export's chunk.
func (ExportChunk) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an export's chunk.
func (ExportChunk) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("export_id").Immutable(),
		field.Int32("round").Immutable().Comment("the attempt that wrote it"),
		field.Int64("position").Immutable().Comment("number of bytes of the file before it"),
		field.Bytes("content").Immutable().Comment("at most 1 MiB of the file, compressed with Zstandard"),
	}
}

// Indexes of an export's chunk.
func (ExportChunk) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "export_id", "round", "position").Unique().StorageKey("export_chunks_by_position"),
	}
}
