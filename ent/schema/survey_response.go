package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// SurveyResponse is the latest response of a user to a survey.
type SurveyResponse struct{ ent.Schema }

// Mixin of a survey response.
func (SurveyResponse) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a survey response.
func (SurveyResponse) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("survey").Immutable(),
		field.Int64("user_id").Immutable(),
		field.Bytes("data").Comment("JSON object"),
		timestamp("submitted_at"),
	}
}

// Indexes of a survey response.
func (SurveyResponse) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "user_id", "survey").Unique().StorageKey("survey_responses_of_user"),
		index.Fields("deployment_id", "survey", "submitted_at", "id").StorageKey("survey_responses_by_time"),
	}
}
