package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Workflow is an entry of a deployment's catalog. Its versions have the definitions.
type Workflow struct{ ent.Schema }

// Mixin of a workflow.
func (Workflow) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a workflow.
func (Workflow) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("name").Immutable().NotEmpty(),
		field.Bool("enabled").Default(true),
		field.Int64("version_id").Default(0).Comment("the version for new runs"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a workflow.
func (Workflow) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "name").Unique().StorageKey("workflows_by_name")}
}

// WorkflowVersion is one published definition of a workflow. A run keeps the version that it started with.
type WorkflowVersion struct{ ent.Schema }

// Mixin of a workflow version.
func (WorkflowVersion) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a workflow version.
func (WorkflowVersion) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("name").Immutable().Comment("name of the workflow, which may be deleted from the catalog"),
		field.Int64("number").Immutable().Comment("from 1"),
		field.Bool("published").Default(true).Comment("false: deleted from the catalog, its graph is no longer shown"),
		field.Bytes("catalog_entry").Immutable().Comment("palisade.workflows.v1.WorkflowCatalogEntry"),
		field.Bytes("plan").Immutable().Comment("palisade.store.v1.WorkflowPlan: what runs execute"),
		field.Bytes("source").Immutable().Comment("the published definition"),
		field.String("source_hash").Immutable().Comment("hex SHA-256 of source; the same source is no new version"),
		field.String("published_by").Immutable().Default(""),
		timestamp("published_at").Immutable(),
	}
}

// Indexes of a workflow version.
func (WorkflowVersion) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "name", "number").Unique().StorageKey("workflow_versions_by_number")}
}

// WorkflowRun is one run of a workflow; the API calls it a job.
type WorkflowRun struct{ ent.Schema }

// Mixin of a workflow run.
func (WorkflowRun) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a workflow run. The repository data for the overview is copied here, so that the overview needs no other
// read.
func (WorkflowRun) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("workflow").Immutable().Comment("name"),
		field.Int64("version_id").Immutable(),
		field.Int64("project_id").Immutable().Optional().Nillable().Comment("null: it concerns no single project"),
		field.String("status").Comment("submitted, running, completed, failed, cancelled"),
		field.String("error").Default("").Comment("reason of the failure"),
		field.String("job_name").Immutable().Default(""),
		field.String("git_ref").Immutable().Default(""),
		field.String("pr_id").Immutable().Default(""),
		field.String("repo_name").Immutable().Default(""),
		field.String("repo_url").Immutable().Default(""),
		field.String("repo_scm_type").Immutable().Default(""),
		field.String("trigger_source").Immutable().Comment("manual, automation"),
		field.String("event_source").Immutable().Comment("api, cli, workflow"),
		field.String("actor_kind").Immutable(),
		field.Int64("actor_id").Immutable(),
		field.Int64("retry_of").Immutable().Default(0).Comment("the run that this one retries"),
		field.String("idempotency_key").Immutable().Optional().Nillable().Comment("chosen by the caller; the same key starts no second run"),
		field.String("requested_ref").Immutable().Optional().Nillable().
			Comment("git_ref of the request with the key, for comparison: empty for the primary branch; null without a key"),
		field.Bytes("inputs").Immutable().Comment("JSON object, validated against the schema of the version"),
		field.Float("budget_credits").Immutable().Default(0).Comment("0: no limit"),
		field.Float("cost_usd").Default(0),
		field.Float("cost_credits").Default(0),
		field.Int64("total_findings").Default(0),
		field.String("commit").Default("").Comment("commit of the fetched code"),
		field.Bytes("report").Optional().Comment("palisade.workflows.v1.WorkflowReportSummary; written when the run ends"),
		field.Int64("planned_tasks").Default(0).Comment("lower bound of its number of tasks, as far as known"),
		field.Int64("revision").Default(0).Comment("incremented with every change of the run, its tasks and attempts"),
		timestamp("submitted_at").Immutable(),
		timestamp("started_at").Optional().Nillable(),
		timestamp("finished_at").Optional().Nillable(),
	}
}

// Indexes of a workflow run.
func (WorkflowRun) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "id").StorageKey("workflow_runs_list"),
		index.Fields("deployment_id", "workflow", "id").StorageKey("workflow_runs_list_workflow"),
		index.Fields("deployment_id", "status", "id").StorageKey("workflow_runs_list_status"),
		index.Fields("deployment_id", "project_id", "id").StorageKey("workflow_runs_list_project"),
		index.Fields("deployment_id", "idempotency_key").Unique().StorageKey("workflow_runs_by_idempotency_key"),
		index.Fields("finished_at", "id").StorageKey("workflow_runs_finished").
			Annotations(entsql.IndexWhere("finished_at IS NOT NULL")),
	}
}

// WorkflowTask is one execution of a step in a run: a step inside a foreach has a task for each item.
type WorkflowTask struct{ ent.Schema }

// Mixin of a workflow task.
func (WorkflowTask) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a workflow task. Its output is stored as an artifact.
func (WorkflowTask) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("run_id").Immutable(),
		field.String("step").Immutable(),
		field.String("path").Immutable().Comment("path of branches to it, as units[3]/checks.sqli; empty outside of branches"),
		field.Int64("fork_id").Immutable().Default(0).Comment("innermost fork that it is in a branch of; 0 outside of branches"),
		field.String("branch").Immutable().Default("").Comment("branch of that fork: an index, or the name of a step"),
		field.String("value_preview").Immutable().Default("").Comment("for a foreach item: the beginning of its JSON"),
		field.String("status").Comment("pending, running, succeeded, failed, skipped, error"),
		field.Bool("external").Immutable().Default(false).Comment("an internal service claims it"),
		field.JSON("upstream", []int64{}).Optional().Immutable().Comment("ids of the preceding tasks"),
		field.Int32("attempts").Default(0).Comment("number of attempts"),
		field.Int32("lost").Default(0).Comment("number of attempts that ended because a worker died or was too slow"),
		field.Float("cost_usd").Default(0),
		field.Float("cost_credits").Default(0),
		timestamp("created_at").Immutable(),
		timestamp("started_at").Optional().Nillable(),
		timestamp("finished_at").Optional().Nillable(),
	}
}

// Indexes of a workflow task.
func (WorkflowTask) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "run_id", "step", "path").Unique().StorageKey("workflow_tasks_by_place"),
		index.Fields("deployment_id", "run_id", "id").StorageKey("workflow_tasks_of_run"),
		index.Fields("deployment_id", "run_id", "status").StorageKey("workflow_tasks_by_status"),
		index.Fields("deployment_id", "fork_id", "step").StorageKey("workflow_tasks_of_fork"),
	}
}

// WorkflowAttempt is one attempt of a task. The index is unique within the task.
type WorkflowAttempt struct{ ent.Schema }

// Mixin of a workflow attempt.
func (WorkflowAttempt) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a workflow attempt.
func (WorkflowAttempt) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("run_id").Immutable(),
		field.Int64("task_id").Immutable(),
		field.Int32("index").Immutable().Comment("from 0"),
		field.String("step").Immutable(),
		field.String("workflow").Immutable().Comment("name"),
		field.Bool("external").Immutable().Default(false),
		field.String("status").Comment("pending, running, succeeded, failed, skipped, error"),
		field.String("error").Default("").Comment("one line"),
		field.String("worker").Default("").Comment("random token of its worker; no other worker can end it"),
		timestamp("not_before").Default(0).Comment("not started before this time"),
		timestamp("lease_until").Optional().Nillable().Comment("while it runs: its lease, after which another worker takes over"),
		timestamp("deadline").Optional().Nillable().Comment("while it runs: its timeout"),
		field.Float("cost_usd").Default(0),
		field.Float("cost_credits").Default(0),
		timestamp("created_at").Immutable(),
		timestamp("started_at").Optional().Nillable(),
		timestamp("finished_at").Optional().Nillable(),
	}
}

// Indexes of a workflow attempt. Indexes of unfinished attempts stay small, regardless of the number of finished ones.
func (WorkflowAttempt) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "run_id", "id").StorageKey("workflow_attempts_active").Annotations(entsql.IndexWhere("finished_at IS NULL")),
		index.Fields("deployment_id", "run_id", "id").StorageKey("workflow_attempts_by_turn").
			Annotations(entsql.IndexWhere("external AND (finished_at IS NULL)")),
		index.Fields("deployment_id", "task_id", "index").Unique().StorageKey("workflow_attempts_by_index"),
		index.Fields("deployment_id", "run_id", "id").StorageKey("workflow_attempts_of_run"),
		index.Fields("lease_until", "id").StorageKey("workflow_attempts_leased").Annotations(entsql.IndexWhere("lease_until IS NOT NULL")),
		// Only nodes of the previous version use this index to claim attempts. Remove it in the next release.
		index.Fields("deployment_id", "external", "status", "not_before", "id").StorageKey("workflow_attempts_to_claim"),
	}
}

// WorkflowFork is a point where a run split into branches, with the number of branches that reached the join.
type WorkflowFork struct{ ent.Schema }

// Mixin of a workflow fork.
func (WorkflowFork) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a workflow fork.
func (WorkflowFork) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("run_id").Immutable(),
		field.Int64("task_id").Immutable().Comment("the task that forked"),
		field.Int64("parent_id").Immutable().Default(0).Comment("the enclosing fork"),
		field.String("step").Immutable().Comment("logical path of the task that forked"),
		field.String("join_step").Immutable(),
		field.Int32("branches").Immutable(),
		field.Int32("started").Default(0).Comment("a wide foreach starts its branches in batches"),
		field.Int32("arrived").Default(0),
	}
}

// Indexes of a workflow fork.
func (WorkflowFork) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "task_id").Unique().StorageKey("workflow_forks_by_task"),
		index.Fields("deployment_id", "run_id", "id").StorageKey("workflow_forks_of_run"),
	}
}

// WorkflowArtifact is data that a task stored for other tasks: its output, or a piece of code.
type WorkflowArtifact struct{ ent.Schema }

// Mixin of a workflow artifact.
func (WorkflowArtifact) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a workflow artifact.
func (WorkflowArtifact) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("run_id").Immutable(),
		field.Int64("task_id").Immutable(),
		field.String("name").Immutable().Comment("output, or the name from the step"),
		field.Int64("size").Immutable().Comment("bytes before compression"),
		field.Bytes("content").Immutable().Comment("compressed with Zstandard"),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a workflow artifact.
func (WorkflowArtifact) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "task_id", "name").Unique().StorageKey("workflow_artifacts_by_name"),
		index.Fields("deployment_id", "run_id", "name").StorageKey("workflow_artifacts_of_run"),
	}
}

// WorkflowFinding is one result of a run. Reports list it, and it records which runs detected an issue.
type WorkflowFinding struct{ ent.Schema }

// Mixin of a workflow finding.
func (WorkflowFinding) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a workflow finding.
func (WorkflowFinding) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("run_id").Immutable(),
		field.String("key").Immutable().Comment("unique in the run, so that a retried task reports nothing twice"),
		field.Int64("issue_id").Immutable().Default(0).Comment("the agentic-workflow issue; 0 for other results"),
		field.String("file").Immutable().Default(""),
		field.Int64("start_line").Immutable().Default(0),
		field.Int64("end_line").Immutable().Default(0),
		field.String("severity").Immutable().Default("").Comment("info, low, medium, high, critical"),
		field.Bool("vulnerable").Immutable().Default(true),
		field.String("reasoning").Immutable().Default(""),
	}
}

// Indexes of a workflow finding.
func (WorkflowFinding) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "run_id", "key").Unique().StorageKey("workflow_findings_of_run"),
		index.Fields("deployment_id", "issue_id", "run_id").StorageKey("workflow_findings_of_issue"),
	}
}
