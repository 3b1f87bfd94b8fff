package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// SigningKey signs the JSON Web Tokens of the local issuer. The private key is encrypted with the server's key.
type SigningKey struct{ ent.Schema }

// Fields of a signing key.
func (SigningKey) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("kid").Immutable().Comment("key id in the token's header"),
		field.Bytes("public_key").Immutable().Comment("PKIX, DER"),
		field.Bytes("sealed_private_key").Immutable().Sensitive(),
		timestamp("created_at").Immutable(),
		timestamp("retired_at").Optional().Nillable().Comment("since then it only verifies"),
	}
}

// Indexes of a signing key.
func (SigningKey) Indexes() []ent.Index {
	return []ent.Index{index.Fields("kid").Unique().StorageKey("signing_keys_by_kid")}
}
