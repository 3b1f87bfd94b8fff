package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// SavedView is a named filter of findings with columns and an order. It belongs to a user, a team or the deployment.
type SavedView struct{ ent.Schema }

// Mixin of a saved view.
func (SavedView) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a saved view.
func (SavedView) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("scope").Immutable().Comment("own, team, deployment"),
		field.Int64("owner_id").Immutable().Comment("the user or the team; 0 for the deployment"),
		field.String("name").NotEmpty(),
		field.String("name_key").NotEmpty().Comment("name in lower case: unique in the scope"),
		field.Int32("position").Default(0).Comment("order in lists"),
		field.Bool("is_default").Default(false).Comment("at most one of its scope"),
		field.Bytes("content").Comment("palisade.findings.v1.SavedViewContent"),
		field.Int64("creator_id").Immutable().Comment("the user, or the creator of the token"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a saved view.
func (SavedView) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "scope", "owner_id", "name_key").Unique().StorageKey("saved_views_by_name"),
		index.Fields("deployment_id", "scope", "owner_id").Unique().StorageKey("saved_views_default").Annotations(entsql.IndexWhere("is_default")),
		index.Fields("deployment_id", "position", "id").StorageKey("saved_views_list"),
		index.Fields("deployment_id", "scope", "owner_id", "position", "id").StorageKey("saved_views_of_scope"),
	}
}
