package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// AgenticIssue is an issue that agentic workflows detected. It is separate from the findings of scans.
type AgenticIssue struct{ ent.Schema }

// Mixin of an agentic issue.
func (AgenticIssue) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an agentic issue.
func (AgenticIssue) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable().Optional().Nillable(),
		field.String("identity").Immutable().Comment("derived from project, file, class and evidence; the same in every run"),
		field.String("class").Immutable().Default("").Comment("class of weakness, in the workflow's words"),
		field.String("title"),
		field.String("description").Default(""),
		field.String("reasoning").Default(""),
		field.String("file_path").Default("").Comment("the first of its paths; sort key of lists"),
		field.Int32("severity").Comment("number of palisade.workflows.v1.Severity; sort key of lists"),
		field.String("detection_state").Comment("detected, not_detected, verified_absent, verified_present"),
		field.String("triage_state").Default("open").Comment("open, ignored, reopened, reviewing, fixing, provisionally_ignored, fixed"),
		field.String("triage_reason").Default("").Comment("false_positive, acceptable_risk, no_time; empty: none"),
		field.Bytes("details").Optional().Comment("palisade.store.v1.AgenticIssueDetails"),
		timestamp("created_at").Immutable(),
		timestamp("last_detected_at"),
		timestamp("triaged_at").Optional().Nillable(),
	}
}

// Indexes of an agentic issue, named after the sort order or filter that uses them.
func (AgenticIssue) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "identity").Unique().StorageKey("agentic_issues_by_identity"),
		index.Fields("deployment_id", "last_detected_at", "id").StorageKey("agentic_issues_list_last_detected"),
		index.Fields("deployment_id", "created_at", "id").StorageKey("agentic_issues_list_created"),
		index.Fields("deployment_id", "severity", "id").StorageKey("agentic_issues_list_severity"),
		index.Fields("deployment_id", "file_path", "id").StorageKey("agentic_issues_list_file_path"),
		index.Fields("deployment_id", "triage_state", "last_detected_at", "id").StorageKey("agentic_issues_list_triage_state"),
		index.Fields("deployment_id", "detection_state", "last_detected_at", "id").StorageKey("agentic_issues_list_detection_state"),
		index.Fields("deployment_id", "triaged_at", "id").StorageKey("agentic_issues_list_triaged"),
		index.Fields("deployment_id", "project_id", "id").StorageKey("agentic_issues_of_project"),
	}
}

// AgenticIssueLabel is one value of an issue's list that callers can filter by.
type AgenticIssueLabel struct{ ent.Schema }

// Mixin of a label.
func (AgenticIssueLabel) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a label.
func (AgenticIssueLabel) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("issue_id").Immutable(),
		field.String("kind").Immutable().Comment("workflow, job, action, identity, trigger_source, ref, file_path, …"),
		field.String("value").Immutable(),
	}
}

// Indexes of a label.
func (AgenticIssueLabel) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "kind", "value", "issue_id").Unique().StorageKey("agentic_issue_labels_filter"),
		index.Fields("deployment_id", "issue_id", "kind").StorageKey("agentic_issue_labels_of_issue"),
	}
}

// AgenticIssueEvent is one change of an issue.
type AgenticIssueEvent struct{ ent.Schema }

// Mixin of an event.
func (AgenticIssueEvent) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an event.
func (AgenticIssueEvent) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("issue_id").Immutable(),
		field.Bytes("activity").Immutable().Comment("palisade.workflows.v1.IssueActivity without its id"),
		timestamp("at").Immutable(),
	}
}

// Indexes of an event.
func (AgenticIssueEvent) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "issue_id", "id").StorageKey("agentic_issue_events_of_issue")}
}

// AgenticIssueCoverage is a path that a run examined for issues. The rows are deleted when the run ends.
type AgenticIssueCoverage struct{ ent.Schema }

// Mixin of a covered path.
func (AgenticIssueCoverage) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a covered path.
func (AgenticIssueCoverage) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("run_id").Immutable(),
		field.String("path").Immutable().Comment("path in the repository; empty: all paths"),
	}
}

// Indexes of a covered path.
func (AgenticIssueCoverage) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "run_id", "path").Unique().StorageKey("agentic_issue_coverages_of_run")}
}
