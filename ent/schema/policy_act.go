package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// PolicyRun is what one remediation policy did about one event. It is written in the transaction of the acts.
type PolicyRun struct{ ent.Schema }

// Mixin of a run.
func (PolicyRun) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a run.
func (PolicyRun) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("policy_id").Immutable(),
		field.String("cause").Immutable().Comment("scan, triage, day"),
		field.Int64("cause_id").Immutable().Comment("id of the scan or of the triage change, or the day since 1970 in UTC"),
		field.Int64("evaluated").Immutable().Comment("findings that the event is about"),
		field.Int64("matched").Immutable().Comment("findings that the filters match, and about which the policy has not acted yet"),
		field.Bytes("content").Immutable().Comment("palisade.policies.v1.RemediationPolicyRun: what each action did"),
		field.Int64("sent").Immutable().Comment("messages; they count for the limit of an hour"),
		timestamp("at").Immutable(),
	}
}

// Indexes of a run.
func (PolicyRun) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "policy_id", "cause", "cause_id").Unique().StorageKey("policy_runs_once"),
		index.Fields("deployment_id", "policy_id", "id").StorageKey("policy_runs_list"),
		index.Fields("deployment_id", "policy_id", "at").StorageKey("policy_runs_by_time"),
		index.Fields("at").StorageKey("policy_runs_by_age"),
	}
}

// PolicyAct remembers that a remediation policy acted about an identity of findings, on whatever ref, so that it does
// so once.
type PolicyAct struct{ ent.Schema }

// Mixin of an act.
func (PolicyAct) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an act.
func (PolicyAct) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable(),
		field.Int64("policy_id").Immutable(),
		field.String("action").Immutable().Comment("notify, set_state"),
		field.String("issue_type").Immutable().Comment("with the fingerprint: the identity of the finding"),
		field.String("fingerprint").Immutable(),
		field.String("version").Comment("hash of the filters and actions that the policy had"),
		timestamp("at"),
	}
}

// Indexes of an act.
func (PolicyAct) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "project_id", "fingerprint", "policy_id", "action", "issue_type").Unique().StorageKey("policy_acts_once"),
		index.Fields("deployment_id", "policy_id").StorageKey("policy_acts_of_policy"),
	}
}
