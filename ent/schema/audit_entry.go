package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/palisade/palisade/ent/column"
)

// AuditEntry records one call or job that could change something: actor, action, time, result and changes. The entries
// of a deployment form a chain: each has the hash of the previous entry.
type AuditEntry struct{ ent.Schema }

// Mixin of an audit entry.
func (AuditEntry) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an audit entry.
func (AuditEntry) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("sequence").Immutable().Default(0).Comment("position in the deployment's chain, from 1; 0: older than the chain"),
		field.String("actor_kind").Immutable().Comment("user, token, job, host (a source-code host's webhook)"),
		field.Int64("actor_id").Immutable(),
		field.String("actor_name").Immutable().Default("").Comment("display name: e-mail address, name of the token, kind of the job"),
		field.Int64("user_id").Immutable().Default(0).Comment("the user, or the creator of the token"),
		field.String("method").Immutable().Comment("full gRPC method, or the kind of the job"),
		field.String("code").Immutable().Comment("gRPC code"),
		field.String("request").Immutable().Comment("JSON of the request, secrets redacted, truncated to 4 KiB"),
		field.String("request_id").Immutable(),
		field.String("remote").Immutable().Comment("address of the caller"),
		field.JSON("changes", []column.AuditChange{}).Immutable().Optional().
			SchemaType(map[string]string{dialect.Postgres: "json"}). // jsonb would rewrite the text that was hashed
			Comment("objects that the transaction changed"),
		timestamp("at").Immutable(),
		field.Bytes("previous_hash").Immutable().Optional(),
		field.Bytes("hash").Immutable().Optional().Comment("HMAC-SHA256 over all the fields above"),
	}
}

// Indexes of an audit entry.
func (AuditEntry) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "at", "id").StorageKey("audit_entries_by_time"),
		index.Fields("deployment_id", "request_id", "at", "id").StorageKey("audit_entries_by_request"),
		index.Fields("deployment_id", "sequence").Unique().StorageKey("audit_entries_chain").Annotations(entsql.IndexWhere("sequence > 0")),
	}
}

// AuditHead is the chain head of a deployment's audit trail. Appending an entry locks it.
type AuditHead struct{ ent.Schema }

// Mixin of an audit head.
func (AuditHead) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an audit head.
func (AuditHead) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("sequence").Default(0),
		field.Bytes("hash").Optional().Comment("of the last entry"),
		field.Bytes("seal").Optional().Comment("HMAC-SHA256 over deployment, sequence and hash; detects a truncated chain"),
		field.Bytes("ids").Optional().Comment("number of the last covered entry, and an HMAC-SHA256 over the ids of this row and of all entries; null before the first entry"),
		field.Bytes("origin").Optional().Comment("start of the chain and a digest of what precedes it: an HMAC-SHA256 followed by JSON; created with the deployment"),
	}
}

// Indexes of an audit head.
func (AuditHead) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id").Unique().StorageKey("audit_heads_by_deployment")}
}
