package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Tag is a label that a deployment gives to its projects.
type Tag struct{ ent.Schema }

// Mixin of a tag.
func (Tag) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a tag.
func (Tag) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("name").NotEmpty(),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a tag.
func (Tag) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "name").Unique().StorageKey("tags_by_name")}
}

// ProjectTag assigns a tag to a project.
type ProjectTag struct{ ent.Schema }

// Mixin of a project tag.
func (ProjectTag) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a project tag.
func (ProjectTag) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable(),
		field.Int64("tag_id").Immutable(),
	}
}

// Indexes of a project tag.
func (ProjectTag) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "project_id", "tag_id").Unique().StorageKey("project_tags_of_project"),
		index.Fields("deployment_id", "tag_id").StorageKey("project_tags_of_tag"),
	}
}
