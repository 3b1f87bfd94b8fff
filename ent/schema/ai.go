package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// AiTaskGroup is one combined task: the analyses that one call requested.
type AiTaskGroup struct{ ent.Schema }

// Mixin of a task group.
func (AiTaskGroup) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a task group.
func (AiTaskGroup) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.JSON("chains", []string{}).Immutable().Comment("CHAIN_* of the contract"),
		field.Bool("regenerate").Immutable().Default(false),
		field.Int32("issues").Immutable().Comment("number of analyzed findings"),
		field.Int64("memory_id").Immutable().Default(0).Comment("id of a trial memory; 0: only the memories of the deployment"),
		field.String("actor_kind").Immutable(),
		field.Int64("actor_id").Immutable(),
		timestamp("created_at").Immutable(),
	}
}

// AiAnalysis is the analysis of one finding by a model, pending or finished.
type AiAnalysis struct{ ent.Schema }

// Mixin of an analysis.
func (AiAnalysis) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an analysis.
func (AiAnalysis) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("finding_id").Immutable(),
		field.Int64("group_id").Immutable().Default(0).Comment("combined task; 0 for analyses of workflows and fixes"),
		field.String("status").Comment("pending, done, failed"),
		field.Bool("counted").Immutable().Default(true).Comment("counts against the monthly quota"),
		field.Bool("applied").Default(false).Comment("the analysis changed the finding's triage state"),
		field.String("verdict").Default("").Comment("true_positive, false_positive; empty: none"),
		field.Bytes("result").Optional().Comment("palisade.store.v1.AiResult"),
		field.String("error").Default("").Comment("one line, without code or prompts"),
		field.Bool("trial").Immutable().Default(false).Comment("with a trial memory: the finding does not change"),
		field.Int64("content_hash").Immutable().Default(0).Comment("the finding's value at the time of the request"),
		field.Int64("duration_ms").Default(0).Comment("id of the run that finished it"),
		field.String("model").Default(""),
		field.Int64("input_tokens").Default(0),
		field.Int64("output_tokens").Default(0),
		field.Float("cost_usd").Default(0),
		field.Int32("round").Default(0).Comment("number of the job that works on it; jobs of earlier rounds lost their worker"),
		timestamp("lease_until").Optional().Nillable().Comment("lease of the round's worker"),
		timestamp("created_at").Immutable(),
		timestamp("finished_at").Optional().Nillable(),
	}
}

// Indexes of an analysis.
func (AiAnalysis) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "finding_id", "id").StorageKey("ai_analyses_of_finding"),
		index.Fields("deployment_id", "group_id", "id").StorageKey("ai_analyses_of_group"),
		index.Fields("deployment_id", "created_at", "id").StorageKey("ai_analyses_by_time"),
		index.Fields("deployment_id", "status", "id").StorageKey("ai_analyses_by_status"),
	}
}

// AiFeedback is a user's rating of a verdict.
type AiFeedback struct{ ent.Schema }

// Mixin of feedback.
func (AiFeedback) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of feedback.
func (AiFeedback) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("analysis_id").Immutable(),
		field.Int64("user_id").Immutable(),
		field.String("rating").Comment("RATING_GOOD, RATING_BAD"),
		field.String("note").Default(""),
		timestamp("at"),
	}
}

// Indexes of feedback.
func (AiFeedback) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "analysis_id", "user_id").Unique().StorageKey("ai_feedback_of_analysis")}
}

// AiFix is one request to generate a fix and open a pull request with it.
type AiFix struct{ ent.Schema }

// Mixin of a fix.
func (AiFix) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a fix.
func (AiFix) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("finding_id").Immutable(),
		field.String("status").Comment("requested, opened, failed"),
		field.String("branch").Default(""),
		field.String("pr_url").Default(""),
		field.String("error").Default("").Comment("one line"),
		field.String("actor_kind").Immutable(),
		field.Int64("actor_id").Immutable(),
		field.Int32("round").Default(0).Comment("number of the job that works on it; jobs of earlier rounds lost their worker"),
		timestamp("lease_until").Optional().Nillable().Comment("lease of the round's worker"),
		timestamp("requested_at").Immutable(),
		timestamp("finished_at").Optional().Nillable(),
	}
}

// Indexes of a fix.
func (AiFix) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "finding_id", "id").StorageKey("ai_fixes_of_finding"),
		index.Fields("deployment_id", "status", "requested_at").StorageKey("ai_fixes_by_status"),
	}
}

// AiMemory is a user's note about their code, which is included in prompts.
type AiMemory struct{ ent.Schema }

// Mixin of a memory.
func (AiMemory) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a memory. Null does not restrict the scope.
func (AiMemory) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("content"),
		field.Int64("rule_id").Optional().Nillable(),
		field.Int64("project_id").Optional().Nillable(),
		field.Int64("project_tag_id").Optional().Nillable(),
		field.String("vulnerability_class").Default(""),
		field.JSON("context", []string{}).Comment("TRIAGE, GUIDANCE"),
		field.JSON("path_prefixes", []string{}),
		field.String("stage").Comment("live, suggested, deleted"),
		field.Bytes("details").Optional().Comment("palisade.store.v1.AiMemoryDetails"),
		field.String("created_by").Immutable().Default(""),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a memory.
func (AiMemory) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "stage", "id").StorageKey("ai_memories_list"),
		index.Fields("deployment_id", "project_id", "id").StorageKey("ai_memories_of_project").
			Annotations(entsql.IndexWhere("project_id IS NOT NULL")),
	}
}

// AiMemoryUse records that the prompt of an analysis contained a memory.
type AiMemoryUse struct{ ent.Schema }

// Mixin of a use.
func (AiMemoryUse) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a use.
func (AiMemoryUse) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("memory_id").Immutable(),
		field.Int64("analysis_id").Immutable(),
		field.Int64("finding_id").Immutable(),
		field.Bool("referenced").Immutable().Comment("the model named it as a reason; else it was only in the prompt"),
	}
}

// Indexes of a use.
func (AiMemoryUse) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "memory_id", "finding_id").StorageKey("ai_memory_uses_of_memory"),
		index.Fields("deployment_id", "analysis_id").StorageKey("ai_memory_uses_of_analysis"),
	}
}
