package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// DetectionPolicy limits the rules of a product that scans run. Without one, all rules run that are not off.
type DetectionPolicy struct{ ent.Schema }

// Mixin of a detection policy.
func (DetectionPolicy) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a detection policy.
func (DetectionPolicy) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("product").Immutable().Comment("sast, sca, secrets"),
		field.JSON("rulesets", []string{}).Comment("default, or origins of rules"),
		field.JSON("rules", []string{}).Comment("names of rules that run besides"),
		timestamp("updated_at"),
	}
}

// Indexes of a detection policy.
func (DetectionPolicy) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "product").Unique().StorageKey("detection_policies_by_product")}
}

// DetectionException is a difference from the detection policy for one project, or for the projects with a tag.
type DetectionException struct{ ent.Schema }

// Mixin of an exception.
func (DetectionException) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an exception.
func (DetectionException) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("product").Immutable().Comment("sast, sca, secrets"),
		field.Int64("project_id").Immutable().Optional().Nillable().Comment("null: it is for a tag"),
		field.Int64("tag_id").Immutable().Default(0).Comment("0: it is for a project"),
		field.String("rule_type").Immutable().Comment("rule, ruleset"),
		field.String("rule").Immutable().Comment("name of the rule or ruleset"),
		field.String("exception_type").Comment("include, exclude"),
	}
}

// Indexes of an exception.
func (DetectionException) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "product", "id").StorageKey("detection_exceptions_of_product"),
		index.Fields("deployment_id", "project_id").StorageKey("detection_exceptions_of_project"),
		index.Fields("deployment_id", "tag_id").StorageKey("detection_exceptions_of_tag"),
	}
}
