package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// AuditEntry records one call that could change something: who, what, when, how it ended.
type AuditEntry struct{ ent.Schema }

// Mixin of an audit entry.
func (AuditEntry) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an audit entry.
func (AuditEntry) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("actor_kind").Immutable().Comment("user, token"),
		field.Int64("actor_id").Immutable(),
		field.String("method").Immutable().Comment("full gRPC method"),
		field.String("code").Immutable().Comment("gRPC code"),
		field.String("request").Immutable().Comment("JSON of the request, secrets redacted, cut at 4 KiB"),
		field.String("request_id").Immutable(),
		field.String("remote").Immutable().Comment("address of the caller"),
		timestamp("at").Immutable(),
	}
}

// Indexes of an audit entry.
func (AuditEntry) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "at", "id").StorageKey("audit_entries_by_time")}
}
