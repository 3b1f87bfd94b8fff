-- +goose Up
-- disable the enforcement of foreign-keys constraints
PRAGMA foreign_keys = off;
-- create "new_findings" table
CREATE TABLE `new_findings` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NOT NULL, `rule_id` integer NOT NULL, `first_seen_scan_id` integer NOT NULL, `ref` text NOT NULL, `tool` text NOT NULL, `analysis_category` text NOT NULL, `fingerprint` text NOT NULL, `issue_type` text NOT NULL, `severity` text NOT NULL, `state` text NOT NULL, `triage_state` text NOT NULL DEFAULT ('untriaged'), `status` text NOT NULL, `triage_reason` text NULL, `triage_comment` text NULL, `policy_mode` text NULL, `autotriage_verdict` text NULL, `component_tag` text NULL, `exposure` text NULL, `transitivity` text NULL, `package` text NULL, `advisory` text NULL, `file_path` text NULL, `epss_probability` text NULL, `malicious` bool NULL, `click_to_fix_state` text NULL, `validation_state` text NULL, `historical` bool NULL, `created_at` integer NOT NULL, `relevant_since` integer NOT NULL, `state_updated_at` integer NOT NULL, `triaged_at` integer NULL, `content_hash` integer NOT NULL, `content` blob NOT NULL);
-- copy rows from old table "findings" to new temporary table "new_findings"
INSERT INTO `new_findings` (`id`, `deployment_id`, `project_id`, `rule_id`, `first_seen_scan_id`, `ref`, `tool`, `analysis_category`, `fingerprint`, `issue_type`, `severity`, `state`, `triage_state`, `status`, `triage_reason`, `triage_comment`, `policy_mode`, `autotriage_verdict`, `component_tag`, `exposure`, `transitivity`, `package`, `epss_probability`, `malicious`, `click_to_fix_state`, `validation_state`, `historical`, `created_at`, `relevant_since`, `state_updated_at`, `triaged_at`, `content_hash`, `content`) SELECT `id`, `deployment_id`, `project_id`, `rule_id`, `first_seen_scan_id`, `ref`, `tool`, `analysis_category`, `fingerprint`, `issue_type`, `severity`, `state`, `triage_state`, `status`, `triage_reason`, `triage_comment`, `policy_mode`, `autotriage_verdict`, `component_tag`, `exposure`, `transitivity`, `package`, `epss_probability`, `malicious`, `click_to_fix_state`, `validation_state`, `historical`, `created_at`, `relevant_since`, `state_updated_at`, `triaged_at`, `content_hash`, `content` FROM `findings`;
-- drop "findings" table after copying rows
DROP TABLE `findings`;
-- rename temporary table "new_findings" to "findings"
ALTER TABLE `new_findings` RENAME TO `findings`;
-- create index "findings_by_identity" to table: "findings"
CREATE UNIQUE INDEX `findings_by_identity` ON `findings` (`deployment_id`, `project_id`, `fingerprint`, `ref`, `analysis_category`);
-- create index "findings_of_analysis" to table: "findings"
CREATE INDEX `findings_of_analysis` ON `findings` (`deployment_id`, `project_id`, `ref`, `tool`, `analysis_category`, `state`);
-- create index "findings_list" to table: "findings"
CREATE INDEX `findings_list` ON `findings` (`deployment_id`, `issue_type`, `relevant_since`, `id`);
-- create index "findings_list_status" to table: "findings"
CREATE INDEX `findings_list_status` ON `findings` (`deployment_id`, `issue_type`, `status`, `relevant_since`, `id`);
-- create index "findings_list_severity" to table: "findings"
CREATE INDEX `findings_list_severity` ON `findings` (`deployment_id`, `issue_type`, `severity`, `relevant_since`, `id`);
-- create index "findings_list_project" to table: "findings"
CREATE INDEX `findings_list_project` ON `findings` (`deployment_id`, `project_id`, `issue_type`, `relevant_since`, `id`);
-- create index "findings_list_ref" to table: "findings"
CREATE INDEX `findings_list_ref` ON `findings` (`deployment_id`, `ref`, `issue_type`, `relevant_since`, `id`);
-- create index "findings_list_rule" to table: "findings"
CREATE INDEX `findings_list_rule` ON `findings` (`deployment_id`, `rule_id`, `relevant_since`, `id`);
-- create index "findings_of_scan" to table: "findings"
CREATE INDEX `findings_of_scan` ON `findings` (`deployment_id`, `first_seen_scan_id`);
-- create index "findings_report" to table: "findings"
CREATE INDEX `findings_report` ON `findings` (`deployment_id`, `id`, `project_id`, `rule_id`, `ref`, `issue_type`, `severity`, `exposure`, `validation_state`, `autotriage_verdict`, `policy_mode`);
-- create index "findings_list_triage_reason" to table: "findings"
CREATE INDEX `findings_list_triage_reason` ON `findings` (`deployment_id`, `triage_reason`, `relevant_since`, `id`) WHERE triage_reason IS NOT NULL;
-- create index "findings_list_policy_mode" to table: "findings"
CREATE INDEX `findings_list_policy_mode` ON `findings` (`deployment_id`, `policy_mode`, `relevant_since`, `id`) WHERE policy_mode IS NOT NULL;
-- create index "findings_list_autotriage_verdict" to table: "findings"
CREATE INDEX `findings_list_autotriage_verdict` ON `findings` (`deployment_id`, `autotriage_verdict`, `relevant_since`, `id`) WHERE autotriage_verdict IS NOT NULL;
-- create index "findings_list_component_tag" to table: "findings"
CREATE INDEX `findings_list_component_tag` ON `findings` (`deployment_id`, `component_tag`, `relevant_since`, `id`) WHERE component_tag IS NOT NULL;
-- create index "findings_list_exposure" to table: "findings"
CREATE INDEX `findings_list_exposure` ON `findings` (`deployment_id`, `exposure`, `relevant_since`, `id`) WHERE exposure IS NOT NULL;
-- create index "findings_list_transitivity" to table: "findings"
CREATE INDEX `findings_list_transitivity` ON `findings` (`deployment_id`, `transitivity`, `relevant_since`, `id`) WHERE transitivity IS NOT NULL;
-- create index "findings_list_package" to table: "findings"
CREATE INDEX `findings_list_package` ON `findings` (`deployment_id`, `package`, `relevant_since`, `id`) WHERE package IS NOT NULL;
-- create index "findings_list_advisory" to table: "findings"
CREATE INDEX `findings_list_advisory` ON `findings` (`deployment_id`, `advisory`, `relevant_since`, `id`) WHERE advisory IS NOT NULL;
-- create index "findings_list_epss_probability" to table: "findings"
CREATE INDEX `findings_list_epss_probability` ON `findings` (`deployment_id`, `epss_probability`, `relevant_since`, `id`) WHERE epss_probability IS NOT NULL;
-- create index "findings_list_malicious" to table: "findings"
CREATE INDEX `findings_list_malicious` ON `findings` (`deployment_id`, `malicious`, `relevant_since`, `id`) WHERE malicious IS NOT NULL;
-- create index "findings_list_click_to_fix_state" to table: "findings"
CREATE INDEX `findings_list_click_to_fix_state` ON `findings` (`deployment_id`, `click_to_fix_state`, `relevant_since`, `id`) WHERE click_to_fix_state IS NOT NULL;
-- create index "findings_list_validation_state" to table: "findings"
CREATE INDEX `findings_list_validation_state` ON `findings` (`deployment_id`, `validation_state`, `relevant_since`, `id`) WHERE validation_state IS NOT NULL;
-- create index "findings_list_historical" to table: "findings"
CREATE INDEX `findings_list_historical` ON `findings` (`deployment_id`, `historical`, `relevant_since`, `id`) WHERE historical IS NOT NULL;
-- create "new_finding_events" table
CREATE TABLE `new_finding_events` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `finding_id` integer NOT NULL, `kind` text NOT NULL, `from_status` text NOT NULL, `to_status` text NOT NULL, `reason` text NOT NULL DEFAULT (''), `note` text NOT NULL DEFAULT (''), `actor_kind` text NOT NULL, `actor_id` integer NOT NULL, `actor_name` text NOT NULL DEFAULT (''), `scan_id` integer NULL, `at` integer NOT NULL);
-- copy rows from old table "finding_events" to new temporary table "new_finding_events"
INSERT INTO `new_finding_events` (`id`, `deployment_id`, `finding_id`, `kind`, `from_status`, `to_status`, `reason`, `note`, `actor_kind`, `actor_id`, `actor_name`, `scan_id`, `at`) SELECT `id`, `deployment_id`, `finding_id`, `kind`, `from_status`, `to_status`, `reason`, `note`, `actor_kind`, `actor_id`, `actor_name`, `scan_id`, `at` FROM `finding_events`;
-- drop "finding_events" table after copying rows
DROP TABLE `finding_events`;
-- rename temporary table "new_finding_events" to "finding_events"
ALTER TABLE `new_finding_events` RENAME TO `finding_events`;
-- create index "finding_events_of_finding" to table: "finding_events"
CREATE INDEX `finding_events_of_finding` ON `finding_events` (`deployment_id`, `finding_id`, `id`, `at`, `to_status`);
-- create index "finding_events_by_time" to table: "finding_events"
CREATE INDEX `finding_events_by_time` ON `finding_events` (`deployment_id`, `at`);
-- create "advisories" table
CREATE TABLE `advisories` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `osv_id` text NOT NULL, `title` text NOT NULL, `malicious` bool NOT NULL, `modified_at` integer NOT NULL, `withdrawn_at` integer NULL);
-- create index "advisories_by_osv_id" to table: "advisories"
CREATE UNIQUE INDEX `advisories_by_osv_id` ON `advisories` (`deployment_id`, `osv_id`);
-- create "advisory_packages" table
CREATE TABLE `advisory_packages` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `advisory_id` integer NOT NULL, `ecosystem` text NOT NULL, `package` text NOT NULL, `affected` blob NOT NULL);
-- create index "advisory_packages_by_name" to table: "advisory_packages"
CREATE UNIQUE INDEX `advisory_packages_by_name` ON `advisory_packages` (`deployment_id`, `ecosystem`, `package`, `advisory_id`);
-- create index "advisory_packages_of_advisory" to table: "advisory_packages"
CREATE INDEX `advisory_packages_of_advisory` ON `advisory_packages` (`deployment_id`, `advisory_id`);
-- create "agentic_issues" table
CREATE TABLE `agentic_issues` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NULL, `identity` text NOT NULL, `class` text NOT NULL DEFAULT (''), `title` text NOT NULL, `description` text NOT NULL DEFAULT (''), `reasoning` text NOT NULL DEFAULT (''), `file_path` text NOT NULL DEFAULT (''), `severity` integer NOT NULL, `detection_state` text NOT NULL, `triage_state` text NOT NULL DEFAULT ('open'), `triage_reason` text NOT NULL DEFAULT (''), `details` blob NULL, `created_at` integer NOT NULL, `last_detected_at` integer NOT NULL, `triaged_at` integer NULL);
-- create index "agentic_issues_by_identity" to table: "agentic_issues"
CREATE UNIQUE INDEX `agentic_issues_by_identity` ON `agentic_issues` (`deployment_id`, `identity`);
-- create index "agentic_issues_list_last_detected" to table: "agentic_issues"
CREATE INDEX `agentic_issues_list_last_detected` ON `agentic_issues` (`deployment_id`, `last_detected_at`, `id`);
-- create index "agentic_issues_list_created" to table: "agentic_issues"
CREATE INDEX `agentic_issues_list_created` ON `agentic_issues` (`deployment_id`, `created_at`, `id`);
-- create index "agentic_issues_list_severity" to table: "agentic_issues"
CREATE INDEX `agentic_issues_list_severity` ON `agentic_issues` (`deployment_id`, `severity`, `id`);
-- create index "agentic_issues_list_file_path" to table: "agentic_issues"
CREATE INDEX `agentic_issues_list_file_path` ON `agentic_issues` (`deployment_id`, `file_path`, `id`);
-- create index "agentic_issues_list_triage_state" to table: "agentic_issues"
CREATE INDEX `agentic_issues_list_triage_state` ON `agentic_issues` (`deployment_id`, `triage_state`, `last_detected_at`, `id`);
-- create index "agentic_issues_list_detection_state" to table: "agentic_issues"
CREATE INDEX `agentic_issues_list_detection_state` ON `agentic_issues` (`deployment_id`, `detection_state`, `last_detected_at`, `id`);
-- create index "agentic_issues_list_triaged" to table: "agentic_issues"
CREATE INDEX `agentic_issues_list_triaged` ON `agentic_issues` (`deployment_id`, `triaged_at`, `id`);
-- create index "agentic_issues_of_project" to table: "agentic_issues"
CREATE INDEX `agentic_issues_of_project` ON `agentic_issues` (`deployment_id`, `project_id`, `id`);
-- create "agentic_issue_coverages" table
CREATE TABLE `agentic_issue_coverages` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `run_id` integer NOT NULL, `path` text NOT NULL);
-- create index "agentic_issue_coverages_of_run" to table: "agentic_issue_coverages"
CREATE UNIQUE INDEX `agentic_issue_coverages_of_run` ON `agentic_issue_coverages` (`deployment_id`, `run_id`, `path`);
-- create "agentic_issue_events" table
CREATE TABLE `agentic_issue_events` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `issue_id` integer NOT NULL, `activity` blob NOT NULL, `at` integer NOT NULL);
-- create index "agentic_issue_events_of_issue" to table: "agentic_issue_events"
CREATE INDEX `agentic_issue_events_of_issue` ON `agentic_issue_events` (`deployment_id`, `issue_id`, `id`);
-- create "agentic_issue_labels" table
CREATE TABLE `agentic_issue_labels` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `issue_id` integer NOT NULL, `kind` text NOT NULL, `value` text NOT NULL);
-- create index "agentic_issue_labels_filter" to table: "agentic_issue_labels"
CREATE UNIQUE INDEX `agentic_issue_labels_filter` ON `agentic_issue_labels` (`deployment_id`, `kind`, `value`, `issue_id`);
-- create index "agentic_issue_labels_of_issue" to table: "agentic_issue_labels"
CREATE INDEX `agentic_issue_labels_of_issue` ON `agentic_issue_labels` (`deployment_id`, `issue_id`, `kind`);
-- create "ai_analyses" table
CREATE TABLE `ai_analyses` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `finding_id` integer NOT NULL, `group_id` integer NOT NULL DEFAULT (0), `status` text NOT NULL, `counted` bool NOT NULL DEFAULT (true), `applied` bool NOT NULL DEFAULT (false), `verdict` text NOT NULL DEFAULT (''), `result` blob NULL, `error` text NOT NULL DEFAULT (''), `trial` bool NOT NULL DEFAULT (false), `content_hash` integer NOT NULL DEFAULT (0), `duration_ms` integer NOT NULL DEFAULT (0), `model` text NOT NULL DEFAULT (''), `input_tokens` integer NOT NULL DEFAULT (0), `output_tokens` integer NOT NULL DEFAULT (0), `cost_usd` real NOT NULL DEFAULT (0), `round` integer NOT NULL DEFAULT (0), `lease_until` integer NULL, `created_at` integer NOT NULL, `finished_at` integer NULL);
-- create index "ai_analyses_of_finding" to table: "ai_analyses"
CREATE INDEX `ai_analyses_of_finding` ON `ai_analyses` (`deployment_id`, `finding_id`, `id`);
-- create index "ai_analyses_of_group" to table: "ai_analyses"
CREATE INDEX `ai_analyses_of_group` ON `ai_analyses` (`deployment_id`, `group_id`, `id`);
-- create index "ai_analyses_by_time" to table: "ai_analyses"
CREATE INDEX `ai_analyses_by_time` ON `ai_analyses` (`deployment_id`, `created_at`, `id`);
-- create index "ai_analyses_by_status" to table: "ai_analyses"
CREATE INDEX `ai_analyses_by_status` ON `ai_analyses` (`deployment_id`, `status`, `id`);
-- create "ai_feedbacks" table
CREATE TABLE `ai_feedbacks` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `analysis_id` integer NOT NULL, `user_id` integer NOT NULL, `rating` text NOT NULL, `note` text NOT NULL DEFAULT (''), `at` integer NOT NULL);
-- create index "ai_feedback_of_analysis" to table: "ai_feedbacks"
CREATE UNIQUE INDEX `ai_feedback_of_analysis` ON `ai_feedbacks` (`deployment_id`, `analysis_id`, `user_id`);
-- create "ai_fixes" table
CREATE TABLE `ai_fixes` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `finding_id` integer NOT NULL, `status` text NOT NULL, `branch` text NOT NULL DEFAULT (''), `pr_url` text NOT NULL DEFAULT (''), `error` text NOT NULL DEFAULT (''), `actor_kind` text NOT NULL, `actor_id` integer NOT NULL, `round` integer NOT NULL DEFAULT (0), `lease_until` integer NULL, `requested_at` integer NOT NULL, `finished_at` integer NULL);
-- create index "ai_fixes_of_finding" to table: "ai_fixes"
CREATE INDEX `ai_fixes_of_finding` ON `ai_fixes` (`deployment_id`, `finding_id`, `id`);
-- create index "ai_fixes_by_status" to table: "ai_fixes"
CREATE INDEX `ai_fixes_by_status` ON `ai_fixes` (`deployment_id`, `status`, `requested_at`);
-- create "ai_memories" table
CREATE TABLE `ai_memories` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `content` text NOT NULL, `rule_id` integer NULL, `project_id` integer NULL, `project_tag_id` integer NULL, `vulnerability_class` text NOT NULL DEFAULT (''), `context` json NOT NULL, `path_prefixes` json NOT NULL, `stage` text NOT NULL, `details` blob NULL, `created_by` text NOT NULL DEFAULT (''), `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "ai_memories_list" to table: "ai_memories"
CREATE INDEX `ai_memories_list` ON `ai_memories` (`deployment_id`, `stage`, `id`);
-- create index "ai_memories_of_project" to table: "ai_memories"
CREATE INDEX `ai_memories_of_project` ON `ai_memories` (`deployment_id`, `project_id`, `id`) WHERE project_id IS NOT NULL;
-- create "ai_memory_uses" table
CREATE TABLE `ai_memory_uses` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `memory_id` integer NOT NULL, `analysis_id` integer NOT NULL, `finding_id` integer NOT NULL, `referenced` bool NOT NULL);
-- create index "ai_memory_uses_of_memory" to table: "ai_memory_uses"
CREATE INDEX `ai_memory_uses_of_memory` ON `ai_memory_uses` (`deployment_id`, `memory_id`, `finding_id`);
-- create index "ai_memory_uses_of_analysis" to table: "ai_memory_uses"
CREATE INDEX `ai_memory_uses_of_analysis` ON `ai_memory_uses` (`deployment_id`, `analysis_id`);
-- create "ai_task_groups" table
CREATE TABLE `ai_task_groups` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `chains` json NOT NULL, `regenerate` bool NOT NULL DEFAULT (false), `issues` integer NOT NULL, `memory_id` integer NOT NULL DEFAULT (0), `actor_kind` text NOT NULL, `actor_id` integer NOT NULL, `created_at` integer NOT NULL);
-- create "install_checks" table
CREATE TABLE `install_checks` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `scan_id` integer NOT NULL, `ecosystem` text NOT NULL, `package` text NOT NULL, `version` text NOT NULL, `advisory` text NULL, `title` text NOT NULL DEFAULT (''), `at` integer NOT NULL);
-- create index "install_checks_of_scan" to table: "install_checks"
CREATE INDEX `install_checks_of_scan` ON `install_checks` (`deployment_id`, `scan_id`, `id`);
-- create index "install_checks_blocked" to table: "install_checks"
CREATE INDEX `install_checks_blocked` ON `install_checks` (`deployment_id`, `at`, `advisory`, `ecosystem`, `package`, `version`) WHERE advisory IS NOT NULL;
-- create "install_scans" table
CREATE TABLE `install_scans` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `user` text NOT NULL, `scanner` text NOT NULL, `packages` integer NOT NULL, `blocked` integer NOT NULL, `at` integer NOT NULL);
-- create index "install_scans_by_time" to table: "install_scans"
CREATE INDEX `install_scans_by_time` ON `install_scans` (`deployment_id`, `at`, `user`, `blocked`);
-- create "workflows" table
CREATE TABLE `workflows` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `name` text NOT NULL, `enabled` bool NOT NULL DEFAULT (true), `version_id` integer NOT NULL DEFAULT (0), `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "workflows_by_name" to table: "workflows"
CREATE UNIQUE INDEX `workflows_by_name` ON `workflows` (`deployment_id`, `name`);
-- create "workflow_artifacts" table
CREATE TABLE `workflow_artifacts` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `run_id` integer NOT NULL, `task_id` integer NOT NULL, `name` text NOT NULL, `size` integer NOT NULL, `content` blob NOT NULL, `created_at` integer NOT NULL);
-- create index "workflow_artifacts_by_name" to table: "workflow_artifacts"
CREATE UNIQUE INDEX `workflow_artifacts_by_name` ON `workflow_artifacts` (`deployment_id`, `task_id`, `name`);
-- create index "workflow_artifacts_of_run" to table: "workflow_artifacts"
CREATE INDEX `workflow_artifacts_of_run` ON `workflow_artifacts` (`deployment_id`, `run_id`, `name`);
-- create "workflow_attempts" table
CREATE TABLE `workflow_attempts` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `run_id` integer NOT NULL, `task_id` integer NOT NULL, `index` integer NOT NULL, `step` text NOT NULL, `workflow` text NOT NULL, `external` bool NOT NULL DEFAULT (false), `status` text NOT NULL, `error` text NOT NULL DEFAULT (''), `worker` text NOT NULL DEFAULT (''), `not_before` integer NOT NULL DEFAULT (0), `lease_until` integer NULL, `deadline` integer NULL, `cost_usd` real NOT NULL DEFAULT (0), `cost_credits` real NOT NULL DEFAULT (0), `created_at` integer NOT NULL, `started_at` integer NULL, `finished_at` integer NULL);
-- create index "workflow_attempts_by_index" to table: "workflow_attempts"
CREATE UNIQUE INDEX `workflow_attempts_by_index` ON `workflow_attempts` (`deployment_id`, `task_id`, `index`);
-- create index "workflow_attempts_of_run" to table: "workflow_attempts"
CREATE INDEX `workflow_attempts_of_run` ON `workflow_attempts` (`deployment_id`, `run_id`, `id`);
-- create index "workflow_attempts_leased" to table: "workflow_attempts"
CREATE INDEX `workflow_attempts_leased` ON `workflow_attempts` (`lease_until`, `id`) WHERE lease_until IS NOT NULL;
-- create index "workflow_attempts_to_claim" to table: "workflow_attempts"
CREATE INDEX `workflow_attempts_to_claim` ON `workflow_attempts` (`deployment_id`, `external`, `status`, `not_before`, `id`);
-- create "workflow_findings" table
CREATE TABLE `workflow_findings` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `run_id` integer NOT NULL, `key` text NOT NULL, `issue_id` integer NOT NULL DEFAULT (0), `file` text NOT NULL DEFAULT (''), `start_line` integer NOT NULL DEFAULT (0), `end_line` integer NOT NULL DEFAULT (0), `severity` text NOT NULL DEFAULT (''), `vulnerable` bool NOT NULL DEFAULT (true), `reasoning` text NOT NULL DEFAULT (''));
-- create index "workflow_findings_of_run" to table: "workflow_findings"
CREATE UNIQUE INDEX `workflow_findings_of_run` ON `workflow_findings` (`deployment_id`, `run_id`, `key`);
-- create index "workflow_findings_of_issue" to table: "workflow_findings"
CREATE INDEX `workflow_findings_of_issue` ON `workflow_findings` (`deployment_id`, `issue_id`, `run_id`);
-- create "workflow_forks" table
CREATE TABLE `workflow_forks` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `run_id` integer NOT NULL, `task_id` integer NOT NULL, `parent_id` integer NOT NULL DEFAULT (0), `step` text NOT NULL, `join_step` text NOT NULL, `branches` integer NOT NULL, `started` integer NOT NULL DEFAULT (0), `arrived` integer NOT NULL DEFAULT (0));
-- create index "workflow_forks_by_task" to table: "workflow_forks"
CREATE UNIQUE INDEX `workflow_forks_by_task` ON `workflow_forks` (`deployment_id`, `task_id`);
-- create index "workflow_forks_of_run" to table: "workflow_forks"
CREATE INDEX `workflow_forks_of_run` ON `workflow_forks` (`deployment_id`, `run_id`, `id`);
-- create "workflow_runs" table
CREATE TABLE `workflow_runs` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `workflow` text NOT NULL, `version_id` integer NOT NULL, `project_id` integer NULL, `status` text NOT NULL, `error` text NOT NULL DEFAULT (''), `job_name` text NOT NULL DEFAULT (''), `git_ref` text NOT NULL DEFAULT (''), `pr_id` text NOT NULL DEFAULT (''), `repo_name` text NOT NULL DEFAULT (''), `repo_url` text NOT NULL DEFAULT (''), `repo_scm_type` text NOT NULL DEFAULT (''), `trigger_source` text NOT NULL, `event_source` text NOT NULL, `actor_kind` text NOT NULL, `actor_id` integer NOT NULL, `retry_of` integer NOT NULL DEFAULT (0), `idempotency_key` text NULL, `inputs` blob NOT NULL, `budget_credits` real NOT NULL DEFAULT (0), `cost_usd` real NOT NULL DEFAULT (0), `cost_credits` real NOT NULL DEFAULT (0), `total_findings` integer NOT NULL DEFAULT (0), `commit` text NOT NULL DEFAULT (''), `report` blob NULL, `revision` integer NOT NULL DEFAULT (0), `submitted_at` integer NOT NULL, `started_at` integer NULL, `finished_at` integer NULL);
-- create index "workflow_runs_list" to table: "workflow_runs"
CREATE INDEX `workflow_runs_list` ON `workflow_runs` (`deployment_id`, `id`);
-- create index "workflow_runs_list_workflow" to table: "workflow_runs"
CREATE INDEX `workflow_runs_list_workflow` ON `workflow_runs` (`deployment_id`, `workflow`, `id`);
-- create index "workflow_runs_list_status" to table: "workflow_runs"
CREATE INDEX `workflow_runs_list_status` ON `workflow_runs` (`deployment_id`, `status`, `id`);
-- create index "workflow_runs_list_project" to table: "workflow_runs"
CREATE INDEX `workflow_runs_list_project` ON `workflow_runs` (`deployment_id`, `project_id`, `id`);
-- create index "workflow_runs_by_idempotency_key" to table: "workflow_runs"
CREATE UNIQUE INDEX `workflow_runs_by_idempotency_key` ON `workflow_runs` (`deployment_id`, `idempotency_key`);
-- create index "workflow_runs_finished" to table: "workflow_runs"
CREATE INDEX `workflow_runs_finished` ON `workflow_runs` (`finished_at`, `id`) WHERE finished_at IS NOT NULL;
-- create "workflow_tasks" table
CREATE TABLE `workflow_tasks` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `run_id` integer NOT NULL, `step` text NOT NULL, `path` text NOT NULL, `fork_id` integer NOT NULL DEFAULT (0), `branch` text NOT NULL DEFAULT (''), `value_preview` text NOT NULL DEFAULT (''), `status` text NOT NULL, `external` bool NOT NULL DEFAULT (false), `upstream` json NULL, `attempts` integer NOT NULL DEFAULT (0), `lost` integer NOT NULL DEFAULT (0), `cost_usd` real NOT NULL DEFAULT (0), `cost_credits` real NOT NULL DEFAULT (0), `created_at` integer NOT NULL, `started_at` integer NULL, `finished_at` integer NULL);
-- create index "workflow_tasks_by_place" to table: "workflow_tasks"
CREATE UNIQUE INDEX `workflow_tasks_by_place` ON `workflow_tasks` (`deployment_id`, `run_id`, `step`, `path`);
-- create index "workflow_tasks_of_run" to table: "workflow_tasks"
CREATE INDEX `workflow_tasks_of_run` ON `workflow_tasks` (`deployment_id`, `run_id`, `id`);
-- create index "workflow_tasks_by_status" to table: "workflow_tasks"
CREATE INDEX `workflow_tasks_by_status` ON `workflow_tasks` (`deployment_id`, `run_id`, `status`);
-- create index "workflow_tasks_of_fork" to table: "workflow_tasks"
CREATE INDEX `workflow_tasks_of_fork` ON `workflow_tasks` (`deployment_id`, `fork_id`, `step`);
-- create "workflow_versions" table
CREATE TABLE `workflow_versions` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `name` text NOT NULL, `number` integer NOT NULL, `published` bool NOT NULL DEFAULT (true), `catalog_entry` blob NOT NULL, `plan` blob NOT NULL, `source` blob NOT NULL, `source_hash` text NOT NULL, `published_by` text NOT NULL DEFAULT (''), `published_at` integer NOT NULL);
-- create index "workflow_versions_by_number" to table: "workflow_versions"
CREATE UNIQUE INDEX `workflow_versions_by_number` ON `workflow_versions` (`deployment_id`, `name`, `number`);
-- enable back the enforcement of foreign-keys constraints
PRAGMA foreign_keys = on;

-- +goose Down
-- reverse: create index "workflow_versions_by_number" to table: "workflow_versions"
DROP INDEX `workflow_versions_by_number`;
-- reverse: create "workflow_versions" table
DROP TABLE `workflow_versions`;
-- reverse: create index "workflow_tasks_of_fork" to table: "workflow_tasks"
DROP INDEX `workflow_tasks_of_fork`;
-- reverse: create index "workflow_tasks_by_status" to table: "workflow_tasks"
DROP INDEX `workflow_tasks_by_status`;
-- reverse: create index "workflow_tasks_of_run" to table: "workflow_tasks"
DROP INDEX `workflow_tasks_of_run`;
-- reverse: create index "workflow_tasks_by_place" to table: "workflow_tasks"
DROP INDEX `workflow_tasks_by_place`;
-- reverse: create "workflow_tasks" table
DROP TABLE `workflow_tasks`;
-- reverse: create index "workflow_runs_finished" to table: "workflow_runs"
DROP INDEX `workflow_runs_finished`;
-- reverse: create index "workflow_runs_by_idempotency_key" to table: "workflow_runs"
DROP INDEX `workflow_runs_by_idempotency_key`;
-- reverse: create index "workflow_runs_list_project" to table: "workflow_runs"
DROP INDEX `workflow_runs_list_project`;
-- reverse: create index "workflow_runs_list_status" to table: "workflow_runs"
DROP INDEX `workflow_runs_list_status`;
-- reverse: create index "workflow_runs_list_workflow" to table: "workflow_runs"
DROP INDEX `workflow_runs_list_workflow`;
-- reverse: create index "workflow_runs_list" to table: "workflow_runs"
DROP INDEX `workflow_runs_list`;
-- reverse: create "workflow_runs" table
DROP TABLE `workflow_runs`;
-- reverse: create index "workflow_forks_of_run" to table: "workflow_forks"
DROP INDEX `workflow_forks_of_run`;
-- reverse: create index "workflow_forks_by_task" to table: "workflow_forks"
DROP INDEX `workflow_forks_by_task`;
-- reverse: create "workflow_forks" table
DROP TABLE `workflow_forks`;
-- reverse: create index "workflow_findings_of_issue" to table: "workflow_findings"
DROP INDEX `workflow_findings_of_issue`;
-- reverse: create index "workflow_findings_of_run" to table: "workflow_findings"
DROP INDEX `workflow_findings_of_run`;
-- reverse: create "workflow_findings" table
DROP TABLE `workflow_findings`;
-- reverse: create index "workflow_attempts_to_claim" to table: "workflow_attempts"
DROP INDEX `workflow_attempts_to_claim`;
-- reverse: create index "workflow_attempts_leased" to table: "workflow_attempts"
DROP INDEX `workflow_attempts_leased`;
-- reverse: create index "workflow_attempts_of_run" to table: "workflow_attempts"
DROP INDEX `workflow_attempts_of_run`;
-- reverse: create index "workflow_attempts_by_index" to table: "workflow_attempts"
DROP INDEX `workflow_attempts_by_index`;
-- reverse: create "workflow_attempts" table
DROP TABLE `workflow_attempts`;
-- reverse: create index "workflow_artifacts_of_run" to table: "workflow_artifacts"
DROP INDEX `workflow_artifacts_of_run`;
-- reverse: create index "workflow_artifacts_by_name" to table: "workflow_artifacts"
DROP INDEX `workflow_artifacts_by_name`;
-- reverse: create "workflow_artifacts" table
DROP TABLE `workflow_artifacts`;
-- reverse: create index "workflows_by_name" to table: "workflows"
DROP INDEX `workflows_by_name`;
-- reverse: create "workflows" table
DROP TABLE `workflows`;
-- reverse: create index "install_scans_by_time" to table: "install_scans"
DROP INDEX `install_scans_by_time`;
-- reverse: create "install_scans" table
DROP TABLE `install_scans`;
-- reverse: create index "install_checks_blocked" to table: "install_checks"
DROP INDEX `install_checks_blocked`;
-- reverse: create index "install_checks_of_scan" to table: "install_checks"
DROP INDEX `install_checks_of_scan`;
-- reverse: create "install_checks" table
DROP TABLE `install_checks`;
-- reverse: create "ai_task_groups" table
DROP TABLE `ai_task_groups`;
-- reverse: create index "ai_memory_uses_of_analysis" to table: "ai_memory_uses"
DROP INDEX `ai_memory_uses_of_analysis`;
-- reverse: create index "ai_memory_uses_of_memory" to table: "ai_memory_uses"
DROP INDEX `ai_memory_uses_of_memory`;
-- reverse: create "ai_memory_uses" table
DROP TABLE `ai_memory_uses`;
-- reverse: create index "ai_memories_of_project" to table: "ai_memories"
DROP INDEX `ai_memories_of_project`;
-- reverse: create index "ai_memories_list" to table: "ai_memories"
DROP INDEX `ai_memories_list`;
-- reverse: create "ai_memories" table
DROP TABLE `ai_memories`;
-- reverse: create index "ai_fixes_by_status" to table: "ai_fixes"
DROP INDEX `ai_fixes_by_status`;
-- reverse: create index "ai_fixes_of_finding" to table: "ai_fixes"
DROP INDEX `ai_fixes_of_finding`;
-- reverse: create "ai_fixes" table
DROP TABLE `ai_fixes`;
-- reverse: create index "ai_feedback_of_analysis" to table: "ai_feedbacks"
DROP INDEX `ai_feedback_of_analysis`;
-- reverse: create "ai_feedbacks" table
DROP TABLE `ai_feedbacks`;
-- reverse: create index "ai_analyses_by_status" to table: "ai_analyses"
DROP INDEX `ai_analyses_by_status`;
-- reverse: create index "ai_analyses_by_time" to table: "ai_analyses"
DROP INDEX `ai_analyses_by_time`;
-- reverse: create index "ai_analyses_of_group" to table: "ai_analyses"
DROP INDEX `ai_analyses_of_group`;
-- reverse: create index "ai_analyses_of_finding" to table: "ai_analyses"
DROP INDEX `ai_analyses_of_finding`;
-- reverse: create "ai_analyses" table
DROP TABLE `ai_analyses`;
-- reverse: create index "agentic_issue_labels_of_issue" to table: "agentic_issue_labels"
DROP INDEX `agentic_issue_labels_of_issue`;
-- reverse: create index "agentic_issue_labels_filter" to table: "agentic_issue_labels"
DROP INDEX `agentic_issue_labels_filter`;
-- reverse: create "agentic_issue_labels" table
DROP TABLE `agentic_issue_labels`;
-- reverse: create index "agentic_issue_events_of_issue" to table: "agentic_issue_events"
DROP INDEX `agentic_issue_events_of_issue`;
-- reverse: create "agentic_issue_events" table
DROP TABLE `agentic_issue_events`;
-- reverse: create index "agentic_issue_coverages_of_run" to table: "agentic_issue_coverages"
DROP INDEX `agentic_issue_coverages_of_run`;
-- reverse: create "agentic_issue_coverages" table
DROP TABLE `agentic_issue_coverages`;
-- reverse: create index "agentic_issues_of_project" to table: "agentic_issues"
DROP INDEX `agentic_issues_of_project`;
-- reverse: create index "agentic_issues_list_triaged" to table: "agentic_issues"
DROP INDEX `agentic_issues_list_triaged`;
-- reverse: create index "agentic_issues_list_detection_state" to table: "agentic_issues"
DROP INDEX `agentic_issues_list_detection_state`;
-- reverse: create index "agentic_issues_list_triage_state" to table: "agentic_issues"
DROP INDEX `agentic_issues_list_triage_state`;
-- reverse: create index "agentic_issues_list_file_path" to table: "agentic_issues"
DROP INDEX `agentic_issues_list_file_path`;
-- reverse: create index "agentic_issues_list_severity" to table: "agentic_issues"
DROP INDEX `agentic_issues_list_severity`;
-- reverse: create index "agentic_issues_list_created" to table: "agentic_issues"
DROP INDEX `agentic_issues_list_created`;
-- reverse: create index "agentic_issues_list_last_detected" to table: "agentic_issues"
DROP INDEX `agentic_issues_list_last_detected`;
-- reverse: create index "agentic_issues_by_identity" to table: "agentic_issues"
DROP INDEX `agentic_issues_by_identity`;
-- reverse: create "agentic_issues" table
DROP TABLE `agentic_issues`;
-- reverse: create index "advisory_packages_of_advisory" to table: "advisory_packages"
DROP INDEX `advisory_packages_of_advisory`;
-- reverse: create index "advisory_packages_by_name" to table: "advisory_packages"
DROP INDEX `advisory_packages_by_name`;
-- reverse: create "advisory_packages" table
DROP TABLE `advisory_packages`;
-- reverse: create index "advisories_by_osv_id" to table: "advisories"
DROP INDEX `advisories_by_osv_id`;
-- reverse: create "advisories" table
DROP TABLE `advisories`;
-- reverse: create index "finding_events_by_time" to table: "finding_events"
DROP INDEX `finding_events_by_time`;
-- reverse: create index "finding_events_of_finding" to table: "finding_events"
DROP INDEX `finding_events_of_finding`;
-- reverse: create "new_finding_events" table
DROP TABLE `new_finding_events`;
-- reverse: create index "findings_list_historical" to table: "findings"
DROP INDEX `findings_list_historical`;
-- reverse: create index "findings_list_validation_state" to table: "findings"
DROP INDEX `findings_list_validation_state`;
-- reverse: create index "findings_list_click_to_fix_state" to table: "findings"
DROP INDEX `findings_list_click_to_fix_state`;
-- reverse: create index "findings_list_malicious" to table: "findings"
DROP INDEX `findings_list_malicious`;
-- reverse: create index "findings_list_epss_probability" to table: "findings"
DROP INDEX `findings_list_epss_probability`;
-- reverse: create index "findings_list_advisory" to table: "findings"
DROP INDEX `findings_list_advisory`;
-- reverse: create index "findings_list_package" to table: "findings"
DROP INDEX `findings_list_package`;
-- reverse: create index "findings_list_transitivity" to table: "findings"
DROP INDEX `findings_list_transitivity`;
-- reverse: create index "findings_list_exposure" to table: "findings"
DROP INDEX `findings_list_exposure`;
-- reverse: create index "findings_list_component_tag" to table: "findings"
DROP INDEX `findings_list_component_tag`;
-- reverse: create index "findings_list_autotriage_verdict" to table: "findings"
DROP INDEX `findings_list_autotriage_verdict`;
-- reverse: create index "findings_list_policy_mode" to table: "findings"
DROP INDEX `findings_list_policy_mode`;
-- reverse: create index "findings_list_triage_reason" to table: "findings"
DROP INDEX `findings_list_triage_reason`;
-- reverse: create index "findings_report" to table: "findings"
DROP INDEX `findings_report`;
-- reverse: create index "findings_of_scan" to table: "findings"
DROP INDEX `findings_of_scan`;
-- reverse: create index "findings_list_rule" to table: "findings"
DROP INDEX `findings_list_rule`;
-- reverse: create index "findings_list_ref" to table: "findings"
DROP INDEX `findings_list_ref`;
-- reverse: create index "findings_list_project" to table: "findings"
DROP INDEX `findings_list_project`;
-- reverse: create index "findings_list_severity" to table: "findings"
DROP INDEX `findings_list_severity`;
-- reverse: create index "findings_list_status" to table: "findings"
DROP INDEX `findings_list_status`;
-- reverse: create index "findings_list" to table: "findings"
DROP INDEX `findings_list`;
-- reverse: create index "findings_of_analysis" to table: "findings"
DROP INDEX `findings_of_analysis`;
-- reverse: create index "findings_by_identity" to table: "findings"
DROP INDEX `findings_by_identity`;
-- reverse: create "new_findings" table
DROP TABLE `new_findings`;
