package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Automation says what happens by itself when a scan ends or somebody triages findings.
type Automation struct{ ent.Schema }

// Mixin of an automation.
func (Automation) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an automation.
func (Automation) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("name"),
		field.String("trigger").Comment("TRIGGER_SOURCE_*"),
		field.Bool("active"),
		field.Bytes("content").Comment("palisade.notifications.v1.Automation: description, filters, actions"),
		field.String("created_by").Immutable().Comment("name of the user or token"),
		field.String("updated_by"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of an automation.
func (Automation) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "name").Unique().StorageKey("automations_by_name")}
}

// AutomationRun is what one automation did about one event. It is written in the transaction of the acts: a job that is
// retried does nothing twice.
type AutomationRun struct{ ent.Schema }

// Mixin of a run.
func (AutomationRun) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a run.
func (AutomationRun) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("automation_id").Immutable(),
		field.String("cause").Immutable().Comment("scan, triage"),
		field.Int64("cause_id").Immutable().Comment("id of the scan or of the triage change"),
		field.Int64("evaluated").Immutable().Comment("findings that the event is about"),
		field.Int64("matched").Immutable().Comment("findings that the filters match"),
		field.Bytes("content").Immutable().Comment("palisade.notifications.v1.AutomationRun: what each action did"),
		field.Int64("sent").Immutable().Comment("messages and workflow runs; they count for the limit of an hour"),
		timestamp("at").Immutable(),
	}
}

// Indexes of a run.
func (AutomationRun) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "automation_id", "cause", "cause_id").Unique().StorageKey("automation_runs_once"),
		index.Fields("deployment_id", "automation_id", "id").StorageKey("automation_runs_list"),
		index.Fields("deployment_id", "automation_id", "at").StorageKey("automation_runs_by_time"),
		index.Fields("at").StorageKey("automation_runs_by_age"),
	}
}
