package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Session is a browser in which a user has signed in to the console. Its cookie holds the secret; the settings
// session-idle and session-lifetime decide how long it lasts.
type Session struct{ ent.Schema }

// Fields of a session.
func (Session) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Bytes("hash").Immutable().Comment("SHA-256 of the 256-bit random secret in the cookie"),
		field.Int64("user_id").Immutable(),
		field.String("method").Immutable().Comment("how the user signed in: oidc, link"),
		field.String("address").Immutable().Comment("IP address of the sign-in"),
		field.String("agent").Immutable().Comment("User-Agent of the sign-in, shortened"),
		timestamp("created_at").Immutable(),
		timestamp("last_used_at").Comment("accurate to a minute"),
		timestamp("revoked_at").Optional().Nillable(),
	}
}

// Indexes of a session.
func (Session) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("hash").Unique().StorageKey("sessions_by_hash"),
		index.Fields("user_id", "id").StorageKey("sessions_by_user"),
		index.Fields("created_at").StorageKey("sessions_by_age"),
		index.Fields("last_used_at").StorageKey("sessions_by_use"),
	}
}

// ConsoleLink is a one-time link that signs a user in to the console. Its use deletes the row.
type ConsoleLink struct{ ent.Schema }

// Fields of a console link.
func (ConsoleLink) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Bytes("hash").Immutable().Comment("SHA-256 of the 256-bit random secret in the link"),
		field.Int64("user_id").Immutable(),
		timestamp("created_at").Immutable(),
		timestamp("expires_at").Immutable(),
	}
}

// Indexes of a console link.
func (ConsoleLink) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("hash").Unique().StorageKey("console_links_by_hash"),
		index.Fields("expires_at").StorageKey("console_links_by_time"),
	}
}
