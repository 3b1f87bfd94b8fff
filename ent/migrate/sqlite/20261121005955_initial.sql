-- +goose Up
-- create "audit_entries" table
CREATE TABLE `audit_entries` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `actor_kind` text NOT NULL, `actor_id` integer NOT NULL, `method` text NOT NULL, `code` text NOT NULL, `request` text NOT NULL, `request_id` text NOT NULL, `remote` text NOT NULL, `at` integer NOT NULL);
-- create index "audit_entries_by_time" to table: "audit_entries"
CREATE INDEX `audit_entries_by_time` ON `audit_entries` (`deployment_id`, `at`, `id`);
-- create "deployments" table
CREATE TABLE `deployments` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `slug` text NOT NULL, `name` text NOT NULL, `default_role` text NOT NULL DEFAULT ('ORG_ROLE_ADMIN'), `created_at` integer NOT NULL);
-- create index "deployments_by_slug" to table: "deployments"
CREATE UNIQUE INDEX `deployments_by_slug` ON `deployments` (`slug`);
-- create "findings" table
CREATE TABLE `findings` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NOT NULL, `rule_id` integer NOT NULL, `first_seen_scan_id` integer NOT NULL, `ref` text NOT NULL, `tool` text NOT NULL, `analysis_category` text NOT NULL, `fingerprint` text NOT NULL, `issue_type` text NOT NULL, `severity` text NOT NULL, `state` text NOT NULL, `triage_state` text NOT NULL DEFAULT ('untriaged'), `status` text NOT NULL, `triage_reason` text NULL, `triage_comment` text NULL, `policy_mode` text NULL, `autotriage_verdict` text NULL, `component_tag` text NULL, `exposure` text NULL, `transitivity` text NULL, `package` text NULL, `epss_probability` text NULL, `malicious` bool NULL, `click_to_fix_state` text NULL, `validation_state` text NULL, `historical` bool NULL, `created_at` integer NOT NULL, `relevant_since` integer NOT NULL, `state_updated_at` integer NOT NULL, `triaged_at` integer NULL, `content_hash` integer NOT NULL, `content` blob NOT NULL);
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
-- create "finding_events" table
CREATE TABLE `finding_events` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `finding_id` integer NOT NULL, `kind` text NOT NULL, `from_status` text NOT NULL, `to_status` text NOT NULL, `reason` text NOT NULL DEFAULT (''), `note` text NOT NULL DEFAULT (''), `actor_kind` text NOT NULL, `actor_id` integer NOT NULL, `scan_id` integer NULL, `at` integer NOT NULL);
-- create index "finding_events_of_finding" to table: "finding_events"
CREATE INDEX `finding_events_of_finding` ON `finding_events` (`deployment_id`, `finding_id`, `id`);
-- create index "finding_events_by_time" to table: "finding_events"
CREATE INDEX `finding_events_by_time` ON `finding_events` (`deployment_id`, `at`);
-- create "memberships" table
CREATE TABLE `memberships` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `user_id` integer NOT NULL, `role` text NOT NULL, `created_at` integer NOT NULL);
-- create index "memberships_by_user" to table: "memberships"
CREATE UNIQUE INDEX `memberships_by_user` ON `memberships` (`deployment_id`, `user_id`);
-- create index "memberships_of_user" to table: "memberships"
CREATE INDEX `memberships_of_user` ON `memberships` (`user_id`);
-- create "projects" table
CREATE TABLE `projects` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `name` text NOT NULL, `name_key` text NOT NULL, `url` text NOT NULL DEFAULT (''), `default_branch` text NOT NULL DEFAULT (''), `primary_branch` text NOT NULL DEFAULT (''), `visibility` text NOT NULL DEFAULT ('unknown'), `scm_type` text NOT NULL DEFAULT ('SCM_TYPE_UNKNOWN'), `managed_diff_scan` bool NOT NULL DEFAULT (false), `managed_full_scan` bool NOT NULL DEFAULT (false), `created_at` integer NOT NULL, `latest_scan_at` integer NULL, `archived_at` integer NULL);
-- create index "projects_by_name" to table: "projects"
CREATE UNIQUE INDEX `projects_by_name` ON `projects` (`deployment_id`, `name`);
-- create index "projects_by_name_key" to table: "projects"
CREATE INDEX `projects_by_name_key` ON `projects` (`deployment_id`, `name_key`);
-- create "project_tags" table
CREATE TABLE `project_tags` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NOT NULL, `tag_id` integer NOT NULL);
-- create index "project_tags_of_project" to table: "project_tags"
CREATE UNIQUE INDEX `project_tags_of_project` ON `project_tags` (`deployment_id`, `project_id`, `tag_id`);
-- create index "project_tags_of_tag" to table: "project_tags"
CREATE INDEX `project_tags_of_tag` ON `project_tags` (`deployment_id`, `tag_id`);
-- create "rules" table
CREATE TABLE `rules` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `tool` text NOT NULL, `name` text NOT NULL, `category` text NOT NULL, `confidence` text NOT NULL, `content` blob NOT NULL);
-- create index "rules_by_name" to table: "rules"
CREATE UNIQUE INDEX `rules_by_name` ON `rules` (`deployment_id`, `tool`, `name`);
-- create index "rules_filter_name" to table: "rules"
CREATE INDEX `rules_filter_name` ON `rules` (`deployment_id`, `name`);
-- create index "rules_filter_category" to table: "rules"
CREATE INDEX `rules_filter_category` ON `rules` (`deployment_id`, `category`);
-- create index "rules_filter_confidence" to table: "rules"
CREATE INDEX `rules_filter_confidence` ON `rules` (`deployment_id`, `confidence`);
-- create "scans" table
CREATE TABLE `scans` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NOT NULL, `ref` text NOT NULL, `commit` text NOT NULL, `status` text NOT NULL, `products` integer NOT NULL, `is_full_scan` bool NOT NULL, `exit_code` integer NOT NULL DEFAULT (0), `total_count` integer NOT NULL DEFAULT (0), `code_count` integer NOT NULL DEFAULT (0), `supply_chain_count` integer NOT NULL DEFAULT (0), `secrets_count` integer NOT NULL DEFAULT (0), `meta` blob NOT NULL, `stats` json NOT NULL, `started_at` integer NOT NULL, `completed_at` integer NULL);
-- create index "scans_search" to table: "scans"
CREATE INDEX `scans_search` ON `scans` (`deployment_id`, `started_at`, `id`);
-- create index "scans_search_project" to table: "scans"
CREATE INDEX `scans_search_project` ON `scans` (`deployment_id`, `project_id`, `started_at`, `id`);
-- create index "scans_search_branch" to table: "scans"
CREATE INDEX `scans_search_branch` ON `scans` (`deployment_id`, `ref`, `started_at`, `id`);
-- create index "scans_search_status" to table: "scans"
CREATE INDEX `scans_search_status` ON `scans` (`deployment_id`, `status`, `started_at`, `id`);
-- create "settings" table
CREATE TABLE `settings` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `name` text NOT NULL, `value` blob NOT NULL);
-- create index "settings_by_name" to table: "settings"
CREATE UNIQUE INDEX `settings_by_name` ON `settings` (`name`);
-- create "signing_keys" table
CREATE TABLE `signing_keys` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `kid` text NOT NULL, `public_key` blob NOT NULL, `sealed_private_key` blob NOT NULL, `created_at` integer NOT NULL, `retired_at` integer NULL);
-- create index "signing_keys_by_kid" to table: "signing_keys"
CREATE UNIQUE INDEX `signing_keys_by_kid` ON `signing_keys` (`kid`);
-- create "tags" table
CREATE TABLE `tags` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `name` text NOT NULL, `created_at` integer NOT NULL);
-- create index "tags_by_name" to table: "tags"
CREATE UNIQUE INDEX `tags_by_name` ON `tags` (`deployment_id`, `name`);
-- create "tokens" table
CREATE TABLE `tokens` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `user_id` integer NOT NULL, `name` text NOT NULL, `hash` blob NOT NULL, `hint` text NOT NULL, `scopes` json NOT NULL, `limited_scopes` json NULL, `role` text NOT NULL, `created_at` integer NOT NULL, `expires_at` integer NULL, `last_used_at` integer NULL, `revoked_at` integer NULL);
-- create index "tokens_by_hash" to table: "tokens"
CREATE UNIQUE INDEX `tokens_by_hash` ON `tokens` (`hash`);
-- create index "tokens_list" to table: "tokens"
CREATE INDEX `tokens_list` ON `tokens` (`deployment_id`, `created_at`);
-- create "users" table
CREATE TABLE `users` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `email` text NOT NULL, `name` text NOT NULL, `issuer` text NULL, `subject` text NULL, `created_at` integer NOT NULL);
-- create index "users_by_email" to table: "users"
CREATE UNIQUE INDEX `users_by_email` ON `users` (`email`);
-- create index "users_by_subject" to table: "users"
CREATE UNIQUE INDEX `users_by_subject` ON `users` (`issuer`, `subject`) WHERE subject IS NOT NULL;

-- +goose Down
-- reverse: create index "users_by_subject" to table: "users"
DROP INDEX `users_by_subject`;
-- reverse: create index "users_by_email" to table: "users"
DROP INDEX `users_by_email`;
-- reverse: create "users" table
DROP TABLE `users`;
-- reverse: create index "tokens_list" to table: "tokens"
DROP INDEX `tokens_list`;
-- reverse: create index "tokens_by_hash" to table: "tokens"
DROP INDEX `tokens_by_hash`;
-- reverse: create "tokens" table
DROP TABLE `tokens`;
-- reverse: create index "tags_by_name" to table: "tags"
DROP INDEX `tags_by_name`;
-- reverse: create "tags" table
DROP TABLE `tags`;
-- reverse: create index "signing_keys_by_kid" to table: "signing_keys"
DROP INDEX `signing_keys_by_kid`;
-- reverse: create "signing_keys" table
DROP TABLE `signing_keys`;
-- reverse: create index "settings_by_name" to table: "settings"
DROP INDEX `settings_by_name`;
-- reverse: create "settings" table
DROP TABLE `settings`;
-- reverse: create index "scans_search_status" to table: "scans"
DROP INDEX `scans_search_status`;
-- reverse: create index "scans_search_branch" to table: "scans"
DROP INDEX `scans_search_branch`;
-- reverse: create index "scans_search_project" to table: "scans"
DROP INDEX `scans_search_project`;
-- reverse: create index "scans_search" to table: "scans"
DROP INDEX `scans_search`;
-- reverse: create "scans" table
DROP TABLE `scans`;
-- reverse: create index "rules_filter_confidence" to table: "rules"
DROP INDEX `rules_filter_confidence`;
-- reverse: create index "rules_filter_category" to table: "rules"
DROP INDEX `rules_filter_category`;
-- reverse: create index "rules_filter_name" to table: "rules"
DROP INDEX `rules_filter_name`;
-- reverse: create index "rules_by_name" to table: "rules"
DROP INDEX `rules_by_name`;
-- reverse: create "rules" table
DROP TABLE `rules`;
-- reverse: create index "project_tags_of_tag" to table: "project_tags"
DROP INDEX `project_tags_of_tag`;
-- reverse: create index "project_tags_of_project" to table: "project_tags"
DROP INDEX `project_tags_of_project`;
-- reverse: create "project_tags" table
DROP TABLE `project_tags`;
-- reverse: create index "projects_by_name_key" to table: "projects"
DROP INDEX `projects_by_name_key`;
-- reverse: create index "projects_by_name" to table: "projects"
DROP INDEX `projects_by_name`;
-- reverse: create "projects" table
DROP TABLE `projects`;
-- reverse: create index "memberships_of_user" to table: "memberships"
DROP INDEX `memberships_of_user`;
-- reverse: create index "memberships_by_user" to table: "memberships"
DROP INDEX `memberships_by_user`;
-- reverse: create "memberships" table
DROP TABLE `memberships`;
-- reverse: create index "finding_events_by_time" to table: "finding_events"
DROP INDEX `finding_events_by_time`;
-- reverse: create index "finding_events_of_finding" to table: "finding_events"
DROP INDEX `finding_events_of_finding`;
-- reverse: create "finding_events" table
DROP TABLE `finding_events`;
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
-- reverse: create "findings" table
DROP TABLE `findings`;
-- reverse: create index "deployments_by_slug" to table: "deployments"
DROP INDEX `deployments_by_slug`;
-- reverse: create "deployments" table
DROP TABLE `deployments`;
-- reverse: create index "audit_entries_by_time" to table: "audit_entries"
DROP INDEX `audit_entries_by_time`;
-- reverse: create "audit_entries" table
DROP TABLE `audit_entries`;
