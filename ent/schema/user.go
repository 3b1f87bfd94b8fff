package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// User is a person. A Membership has the user's role in a deployment.
type User struct{ ent.Schema }

// Fields of a user.
func (User) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("email").NotEmpty().Comment("lower case"),
		field.String("name"),
		field.String("issuer").Optional().Nillable().Comment("OIDC issuer of the user"),
		field.String("subject").Optional().Nillable().Comment("the user's id at the issuer"),
		timestamp("claims_at").Optional().Nillable().Comment("issue time of the newest ID token with claims about permissions; null: none"),
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
