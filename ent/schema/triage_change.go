package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// TriageChange is one decision about findings, or the undo of one. Its findings keep what they were before, so that the
// change can be undone while it is retained.
type TriageChange struct{ ent.Schema }

// Mixin of a triage change.
func (TriageChange) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a triage change.
func (TriageChange) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("kind").Immutable().Comment("triage, bulk_update, comment, exception, automation, undo"),
		field.String("state").Immutable().Default("").Comment("new triage state; empty: only the note changed, or an undo"),
		field.String("reason").Immutable().Default("").Comment("triage reason; only of the state ignored"),
		field.String("note").Immutable().Default("").Comment("new note; empty: the notes stayed"),
		field.Int64("undoes_id").Immutable().Optional().Nillable().Comment("undo: the change that it undoes"),
		field.String("actor_kind").Immutable().Comment("user, token, host (a source-code host's webhook), automation, tracker"),
		field.Int64("actor_id").Immutable().Comment("id of the user or token; 0 for a host"),
		field.String("actor_name").Immutable().Default("").Comment("login of the person at the host; empty for other kinds"),
		field.Int64("chosen").Default(0).Comment("findings that the caller selected"),
		field.Int64("changed").Default(0).Comment("findings that changed, on all refs"),
		timestamp("decided_at").Immutable().Comment("triaged_at of the findings; earlier than at for a comment that arrived late"),
		timestamp("at").Immutable(),
		field.Int64("undone_by").Optional().Nillable().Comment("the undo; null while the change is in effect"),
	}
}

// Indexes of a triage change.
func (TriageChange) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "id").StorageKey("triage_changes_list"),
		index.Fields("deployment_id", "actor_kind", "actor_id", "id").StorageKey("triage_changes_of_actor"),
		index.Fields("deployment_id", "at").StorageKey("triage_changes_by_time"),
	}
}

// TriageChangeFinding is a finding of a triage change, as it was before.
type TriageChangeFinding struct{ ent.Schema }

// Mixin of a finding of a triage change.
func (TriageChangeFinding) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a finding of a triage change.
func (TriageChangeFinding) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("change_id").Immutable(),
		field.Int64("finding_id").Immutable(),
		field.Bool("chosen").Immutable().Comment("selected by the caller; false: the same identity on another ref"),
		field.String("triage_state").Immutable(),
		field.String("triage_reason").Immutable().Optional().Nillable(),
		field.String("triage_comment").Immutable().Optional().Nillable(),
		timestamp("triaged_at").Immutable().Optional().Nillable(),
	}
}

// Indexes of a finding of a triage change.
func (TriageChangeFinding) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "change_id", "finding_id").Unique().StorageKey("triage_change_findings_of_change"),
		index.Fields("deployment_id", "finding_id", "change_id").StorageKey("triage_change_findings_of_finding"),
	}
}

// ExceptionRequest is a developer's request to ignore a finding, until and after an approver decides about it. It holds
// for the identity of its finding: an approval is a decision, which spreads to other refs.
type ExceptionRequest struct{ ent.Schema }

// Mixin of an exception request.
func (ExceptionRequest) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an exception request.
func (ExceptionRequest) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable(),
		field.Int64("finding_id").Immutable(),
		field.String("state").Default("requested").Comment("requested, approved, rejected"),
		field.String("source").Immutable().Comment("scm_comment, platform (a signed-in user), api (a token)"),
		field.String("reason").Immutable().Comment("triage reason that the requester gives"),
		field.String("note").Immutable().Default(""),
		field.String("requester_kind").Immutable().Comment("user, token, host (a source-code host's webhook), automation, tracker"),
		field.Int64("requester_id").Immutable().Comment("id of the user or token; 0 for a host"),
		field.Int64("requester_user_id").Immutable().Default(0).Comment("the user, or the creator of the token"),
		field.String("requester_login").Immutable().Comment("e-mail address, name of the token or login at the host"),
		field.String("requester_name").Immutable().Default("").Comment("display name; empty if unknown"),
		timestamp("created_at").Immutable(),
		field.Int64("review_id").Optional().Nillable().Comment("id of the decision; requests that were decided together share it"),
		field.String("reviewer_kind").Default("").Comment("user, token"),
		field.Int64("reviewer_id").Default(0),
		field.String("reviewer_login").Default(""),
		field.String("reviewer_name").Default(""),
		field.String("review_note").Default(""),
		timestamp("reviewed_at").Optional().Nillable(),
	}
}

// Indexes of an exception request.
func (ExceptionRequest) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "id").StorageKey("exception_requests_list"),
		index.Fields("deployment_id", "state", "id").StorageKey("exception_requests_by_state"),
		index.Fields("deployment_id", "project_id", "id").StorageKey("exception_requests_of_project"),
		index.Fields("deployment_id", "finding_id", "id").StorageKey("exception_requests_of_finding"),
		// A finding has at most one open request.
		index.Fields("deployment_id", "finding_id").Unique().StorageKey("exception_requests_open").
			Annotations(entsql.IndexWhere("reviewed_at IS NULL")),
	}
}
