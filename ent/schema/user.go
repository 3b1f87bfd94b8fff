package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// User is a person. What a user may do in a deployment is said by a Membership.
type User struct{ ent.Schema }

// Fields of a user.
func (User) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("email").NotEmpty().Comment("lower case"),
		field.String("name"),
		field.String("issuer").Optional().Nillable().Comment("OIDC issuer that vouches for the user"),
		field.String("subject").Optional().Nillable().Comment("the user's id at the issuer"),
		timestamp("claims_at").Optional().Nillable().Comment("when the newest ID token was issued whose claims said what the user may do; null: none has"),
		field.Bytes("settings").Optional().Comment("palisade.identity.v1.UserSettings; empty: the defaults"),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a user.
func (User) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("email").Unique().StorageKey("users_by_email"),
		index.Fields("issuer", "subject").Unique().StorageKey("users_by_subject").
			Annotations(entsql.IndexWhere("subject IS NOT NULL")),
	}
}
