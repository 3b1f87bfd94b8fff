package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Team is a group of users who see and triage the projects of the team and of the teams below it.
type Team struct{ ent.Schema }

// Mixin of a team.
func (Team) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a team.
func (Team) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("name").NotEmpty(),
		field.String("slug").NotEmpty(),
		field.Int64("parent_id").Optional().Nillable().Comment("parent team; at most three levels"),
		field.Bool("is_project_default").Default(false).Comment("new projects are added to it"),
		field.Bool("is_user_default").Default(false).Comment("new users are added to it"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a team.
func (Team) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "slug").Unique().StorageKey("teams_by_slug"),
		index.Fields("deployment_id", "name").Unique().StorageKey("teams_by_name"),
		index.Fields("deployment_id", "parent_id", "id").StorageKey("teams_of_parent"),
	}
}

// TeamMember assigns a user to a team, with a role.
type TeamMember struct{ ent.Schema }

// Mixin of a team member.
func (TeamMember) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a team member.
func (TeamMember) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("team_id").Immutable(),
		field.Int64("user_id").Immutable(),
		field.String("role").Comment("TEAM_ROLE_*"),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a team member.
func (TeamMember) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "team_id", "user_id").Unique().StorageKey("team_members_of_team"),
		index.Fields("deployment_id", "user_id", "team_id").StorageKey("team_members_of_user"),
	}
}

// TeamProject assigns a project to a team.
type TeamProject struct{ ent.Schema }

// Mixin of a team project.
func (TeamProject) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a team project.
func (TeamProject) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("team_id").Immutable(),
		field.Int64("project_id").Immutable(),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a team project.
func (TeamProject) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "team_id", "project_id").Unique().StorageKey("team_projects_of_team"),
		index.Fields("deployment_id", "project_id", "team_id").StorageKey("team_projects_of_project"),
	}
}
