package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Ruleboard has modes of rules for the projects that are assigned to it. The default boards are not stored: their modes
// are the modes of the rules.
type Ruleboard struct{ ent.Schema }

// Mixin of a board.
func (Ruleboard) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a board.
func (Ruleboard) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("slug").Immutable(),
		field.String("name"),
		field.String("product").Immutable().Comment("sast, secrets"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a board.
func (Ruleboard) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "slug").Unique().StorageKey("ruleboards_by_slug")}
}

// RuleboardRule is a mode that differs from the default board.
type RuleboardRule struct{ ent.Schema }

// Mixin of a board's rule.
func (RuleboardRule) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a board's rule.
func (RuleboardRule) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("ruleboard_id").Immutable(),
		field.String("product").Immutable().Comment("of the board"),
		field.String("rule_type").Immutable().Comment("rule, ruleset"),
		field.String("rule").Immutable().Comment("name of the rule or ruleset"),
		field.String("mode").Comment("monitor, comment, block, off"),
		timestamp("updated_at"),
	}
}

// Indexes of a board's rule.
func (RuleboardRule) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "ruleboard_id", "rule_type", "rule").Unique().StorageKey("ruleboard_rules_of_board")}
}

// RuleboardProject assigns a project to a board.
type RuleboardProject struct{ ent.Schema }

// Mixin of an assignment.
func (RuleboardProject) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an assignment.
func (RuleboardProject) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("ruleboard_id").Immutable(),
		field.Int64("project_id").Immutable(),
		field.String("product").Immutable().Comment("of the board: a project has at most one board of a product"),
	}
}

// Indexes of an assignment.
func (RuleboardProject) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "project_id", "product").Unique().StorageKey("ruleboard_projects_of_project"),
		index.Fields("deployment_id", "ruleboard_id", "project_id").StorageKey("ruleboard_projects_of_board"),
	}
}
