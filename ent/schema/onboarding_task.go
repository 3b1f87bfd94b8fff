package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// OnboardingTask is a step of the onboarding checklist that a user marked as done or not done. The state of other steps
// is computed from the data.
type OnboardingTask struct{ ent.Schema }

// Mixin of an onboarding task.
func (OnboardingTask) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an onboarding task.
func (OnboardingTask) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("user_id").Immutable().Comment("0 for a task of the whole deployment"),
		field.String("type").Immutable().Comment("TASK_TYPE_*"),
		field.String("state").Comment("TASK_STATE_*"),
		timestamp("updated_at"),
	}
}

// Indexes of an onboarding task.
func (OnboardingTask) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "user_id", "type").Unique().StorageKey("onboarding_tasks_by_type")}
}
