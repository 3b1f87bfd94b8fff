package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Setting is a property of the store itself, for example the check value of the server's key.
type Setting struct{ ent.Schema }

// Fields of a setting.
func (Setting) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("name").Immutable(),
		field.Bytes("value").Sensitive(),
	}
}

// Indexes of a setting.
func (Setting) Indexes() []ent.Index {
	return []ent.Index{index.Fields("name").Unique().StorageKey("settings_by_name")}
}
