package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// TokenRequest is a token request of a scanner that a user confirmed, until the scanner picks up the token.
type TokenRequest struct{ ent.Schema }

// Mixin of a token request.
func (TokenRequest) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a token request.
func (TokenRequest) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Bytes("key_hash").Immutable().Comment("SHA-256 of the scanner's request key"),
		field.Int64("token_id").Immutable(),
		field.Bytes("sealed").Immutable().Sensitive().Comment("encrypted: value of the token"),
		timestamp("created_at").Immutable(),
		timestamp("expires_at").Immutable(),
	}
}

// Indexes of a token request.
func (TokenRequest) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("key_hash").Unique().StorageKey("token_requests_by_key"),
		index.Fields("deployment_id", "expires_at").StorageKey("token_requests_by_time"),
	}
}
