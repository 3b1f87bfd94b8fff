-- +goose Up
-- disable the enforcement of foreign-keys constraints
PRAGMA foreign_keys = off;
-- create "new_scans" table
CREATE TABLE `new_scans` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NOT NULL, `ref` text NOT NULL, `commit` text NOT NULL, `status` text NOT NULL, `products` integer NOT NULL, `is_full_scan` bool NOT NULL, `unique_id` text NULL, `results_state` text NOT NULL DEFAULT (''), `scanner` blob NULL, `exit_code` integer NOT NULL DEFAULT (0), `total_count` integer NOT NULL DEFAULT (0), `code_count` integer NOT NULL DEFAULT (0), `supply_chain_count` integer NOT NULL DEFAULT (0), `secrets_count` integer NOT NULL DEFAULT (0), `meta` blob NOT NULL, `stats` json NOT NULL, `started_at` integer NOT NULL, `completed_at` integer NULL);
-- copy rows from old table "scans" to new temporary table "new_scans"
INSERT INTO `new_scans` (`id`, `deployment_id`, `project_id`, `ref`, `commit`, `status`, `products`, `is_full_scan`, `exit_code`, `total_count`, `code_count`, `supply_chain_count`, `secrets_count`, `meta`, `stats`, `started_at`, `completed_at`) SELECT `id`, `deployment_id`, `project_id`, `ref`, `commit`, `status`, `products`, `is_full_scan`, `exit_code`, `total_count`, `code_count`, `supply_chain_count`, `secrets_count`, `meta`, `stats`, `started_at`, `completed_at` FROM `scans`;
-- drop "scans" table after copying rows
DROP TABLE `scans`;
-- rename temporary table "new_scans" to "scans"
ALTER TABLE `new_scans` RENAME TO `scans`;
-- create index "scans_search" to table: "scans"
CREATE INDEX `scans_search` ON `scans` (`deployment_id`, `started_at`, `id`);
-- create index "scans_search_project" to table: "scans"
CREATE INDEX `scans_search_project` ON `scans` (`deployment_id`, `project_id`, `started_at`, `id`);
-- create index "scans_search_branch" to table: "scans"
CREATE INDEX `scans_search_branch` ON `scans` (`deployment_id`, `ref`, `started_at`, `id`);
-- create index "scans_by_unique_id" to table: "scans"
CREATE UNIQUE INDEX `scans_by_unique_id` ON `scans` (`deployment_id`, `unique_id`);
-- create index "scans_of_ref" to table: "scans"
CREATE INDEX `scans_of_ref` ON `scans` (`deployment_id`, `project_id`, `ref`, `is_full_scan`, `id`);
-- create index "scans_search_status" to table: "scans"
CREATE INDEX `scans_search_status` ON `scans` (`deployment_id`, `status`, `started_at`, `id`);
-- create "new_findings" table
CREATE TABLE `new_findings` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NOT NULL, `rule_id` integer NOT NULL, `first_seen_scan_id` integer NOT NULL, `ref` text NOT NULL, `tool` text NOT NULL, `analysis_category` text NOT NULL, `fingerprint` text NOT NULL, `evidence` blob NULL, `match_key` integer NULL, `merged_into` integer NULL, `issue_type` text NOT NULL, `severity` text NOT NULL, `state` text NOT NULL, `triage_state` text NOT NULL DEFAULT ('untriaged'), `status` text NOT NULL, `triage_reason` text NULL, `triage_comment` text NULL, `policy_mode` text NULL, `autotriage_verdict` text NULL, `component_tag` text NULL, `exposure` text NULL, `transitivity` text NULL, `package` text NULL, `advisory` text NULL, `file_path` text NULL, `epss_probability` text NULL, `malicious` bool NULL, `click_to_fix_state` text NULL, `validation_state` text NULL, `historical` bool NULL, `created_at` integer NOT NULL, `relevant_since` integer NOT NULL, `state_updated_at` integer NOT NULL, `triaged_at` integer NULL, `content_hash` integer NOT NULL, `content` blob NOT NULL);
-- copy rows from old table "findings" to new temporary table "new_findings"
INSERT INTO `new_findings` (`id`, `deployment_id`, `project_id`, `rule_id`, `first_seen_scan_id`, `ref`, `tool`, `analysis_category`, `fingerprint`, `issue_type`, `severity`, `state`, `triage_state`, `status`, `triage_reason`, `triage_comment`, `policy_mode`, `autotriage_verdict`, `component_tag`, `exposure`, `transitivity`, `package`, `advisory`, `file_path`, `epss_probability`, `malicious`, `click_to_fix_state`, `validation_state`, `historical`, `created_at`, `relevant_since`, `state_updated_at`, `triaged_at`, `content_hash`, `content`) SELECT `id`, `deployment_id`, `project_id`, `rule_id`, `first_seen_scan_id`, `ref`, `tool`, `analysis_category`, `fingerprint`, `issue_type`, `severity`, `state`, `triage_state`, `status`, `triage_reason`, `triage_comment`, `policy_mode`, `autotriage_verdict`, `component_tag`, `exposure`, `transitivity`, `package`, `advisory`, `file_path`, `epss_probability`, `malicious`, `click_to_fix_state`, `validation_state`, `historical`, `created_at`, `relevant_since`, `state_updated_at`, `triaged_at`, `content_hash`, `content` FROM `findings`;
-- drop "findings" table after copying rows
DROP TABLE `findings`;
-- rename temporary table "new_findings" to "findings"
ALTER TABLE `new_findings` RENAME TO `findings`;
-- create index "findings_by_identity" to table: "findings"
CREATE UNIQUE INDEX `findings_by_identity` ON `findings` (`deployment_id`, `project_id`, `fingerprint`, `ref`, `analysis_category`);
-- create index "findings_by_evidence" to table: "findings"
CREATE INDEX `findings_by_evidence` ON `findings` (`deployment_id`, `project_id`, `match_key`);
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
-- create index "findings_decided" to table: "findings"
CREATE INDEX `findings_decided` ON `findings` (`deployment_id`, `project_id`, `triage_state`) WHERE triage_reason IS NOT NULL;
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
-- create "dependencies" table
CREATE TABLE `dependencies` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NOT NULL, `scan_id` integer NOT NULL, `lockfile` text NOT NULL, `ecosystem` text NOT NULL, `package` text NOT NULL, `version` text NOT NULL, `transitivity` text NOT NULL, `has_paths` bool NOT NULL DEFAULT (false), `license` text NULL, `content` blob NOT NULL, `seen_at` integer NOT NULL);
-- create index "dependencies_by_place" to table: "dependencies"
CREATE UNIQUE INDEX `dependencies_by_place` ON `dependencies` (`deployment_id`, `project_id`, `lockfile`, `ecosystem`, `package`, `version`);
-- create index "dependencies_list" to table: "dependencies"
CREATE INDEX `dependencies_list` ON `dependencies` (`deployment_id`, `id`);
-- create index "dependencies_list_project" to table: "dependencies"
CREATE INDEX `dependencies_list_project` ON `dependencies` (`deployment_id`, `project_id`, `id`);
-- create index "dependencies_list_lockfile" to table: "dependencies"
CREATE INDEX `dependencies_list_lockfile` ON `dependencies` (`deployment_id`, `lockfile`, `id`);
-- create index "dependencies_list_ecosystem" to table: "dependencies"
CREATE INDEX `dependencies_list_ecosystem` ON `dependencies` (`deployment_id`, `ecosystem`, `id`);
-- create index "dependencies_list_package" to table: "dependencies"
CREATE INDEX `dependencies_list_package` ON `dependencies` (`deployment_id`, `package`, `id`);
-- create index "dependencies_list_version" to table: "dependencies"
CREATE INDEX `dependencies_list_version` ON `dependencies` (`deployment_id`, `version`, `id`);
-- create index "dependencies_list_transitivity" to table: "dependencies"
CREATE INDEX `dependencies_list_transitivity` ON `dependencies` (`deployment_id`, `transitivity`, `id`);
-- create index "dependencies_list_license" to table: "dependencies"
CREATE INDEX `dependencies_list_license` ON `dependencies` (`deployment_id`, `license`, `id`) WHERE license IS NOT NULL;
-- create "finding_matches" table
CREATE TABLE `finding_matches` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `finding_id` integer NOT NULL, `scan_id` integer NOT NULL, `rung` text NOT NULL, `content` blob NOT NULL, `at` integer NOT NULL);
-- create index "finding_matches_of_finding" to table: "finding_matches"
CREATE INDEX `finding_matches_of_finding` ON `finding_matches` (`deployment_id`, `finding_id`, `id`);
-- create "identity_changes" table
CREATE TABLE `identity_changes` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NOT NULL, `kind` text NOT NULL, `finding_id` integer NOT NULL, `other_id` integer NOT NULL, `note` text NOT NULL DEFAULT (''), `before` blob NOT NULL, `actor_kind` text NOT NULL, `actor_id` integer NOT NULL, `at` integer NOT NULL, `undone_at` integer NULL);
-- create index "identity_changes_of_project" to table: "identity_changes"
CREATE INDEX `identity_changes_of_project` ON `identity_changes` (`deployment_id`, `project_id`, `id`);
-- create index "identity_changes_of_finding" to table: "identity_changes"
CREATE INDEX `identity_changes_of_finding` ON `identity_changes` (`deployment_id`, `finding_id`, `id`);
-- create index "identity_changes_of_other" to table: "identity_changes"
CREATE INDEX `identity_changes_of_other` ON `identity_changes` (`deployment_id`, `other_id`, `id`);
-- create "remediation_policies" table
CREATE TABLE `remediation_policies` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `slug` text NOT NULL, `position` integer NOT NULL, `active` bool NOT NULL, `content` blob NOT NULL, `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "remediation_policies_by_slug" to table: "remediation_policies"
CREATE UNIQUE INDEX `remediation_policies_by_slug` ON `remediation_policies` (`deployment_id`, `slug`);
-- create "rule_alias" table
CREATE TABLE `rule_alias` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `tool` text NOT NULL, `name` text NOT NULL, `canonical` text NOT NULL, `source` text NOT NULL, `created_at` integer NOT NULL);
-- create index "rule_aliases_by_name" to table: "rule_alias"
CREATE UNIQUE INDEX `rule_aliases_by_name` ON `rule_alias` (`deployment_id`, `tool`, `name`);
-- create index "rule_aliases_of_rule" to table: "rule_alias"
CREATE INDEX `rule_aliases_of_rule` ON `rule_alias` (`deployment_id`, `tool`, `canonical`);
-- create "rule_documents" table
CREATE TABLE `rule_documents` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `name` text NOT NULL, `origin` text NOT NULL, `product` text NOT NULL, `severity` text NOT NULL, `languages` json NOT NULL, `mode` text NOT NULL, `visibility` text NOT NULL DEFAULT ('org_private'), `version` integer NOT NULL, `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "rule_documents_by_name" to table: "rule_documents"
CREATE UNIQUE INDEX `rule_documents_by_name` ON `rule_documents` (`deployment_id`, `name`);
-- create index "rule_documents_of_product" to table: "rule_documents"
CREATE INDEX `rule_documents_of_product` ON `rule_documents` (`deployment_id`, `product`, `mode`, `id`);
-- create "rule_versions" table
CREATE TABLE `rule_versions` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `rule_document_id` integer NOT NULL, `version` integer NOT NULL, `digest` blob NOT NULL, `document` blob NOT NULL, `actor_kind` text NOT NULL, `actor_id` integer NOT NULL, `created_at` integer NOT NULL);
-- create index "rule_versions_of_rule" to table: "rule_versions"
CREATE UNIQUE INDEX `rule_versions_of_rule` ON `rule_versions` (`deployment_id`, `rule_document_id`, `version`);
-- create "scan_coverages" table
CREATE TABLE `scan_coverages` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `scan_id` integer NOT NULL, `project_id` integer NOT NULL, `ref` text NOT NULL, `tool` text NOT NULL, `analysis_category` text NOT NULL, `is_full_scan` bool NOT NULL, `content` blob NOT NULL, `at` integer NOT NULL);
-- create index "scan_coverages_of_scan" to table: "scan_coverages"
CREATE INDEX `scan_coverages_of_scan` ON `scan_coverages` (`deployment_id`, `scan_id`);
-- create index "scan_coverages_of_analysis" to table: "scan_coverages"
CREATE INDEX `scan_coverages_of_analysis` ON `scan_coverages` (`deployment_id`, `project_id`, `ref`, `tool`, `analysis_category`, `scan_id`);
-- create index "scan_coverages_by_time" to table: "scan_coverages"
CREATE INDEX `scan_coverages_by_time` ON `scan_coverages` (`deployment_id`, `at`);
-- create "scan_payloads" table
CREATE TABLE `scan_payloads` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `scan_id` integer NOT NULL, `position` integer NOT NULL, `content` blob NOT NULL);
-- create index "scan_payloads_of_scan" to table: "scan_payloads"
CREATE UNIQUE INDEX `scan_payloads_of_scan` ON `scan_payloads` (`deployment_id`, `scan_id`, `position`);
-- create "token_requests" table
CREATE TABLE `token_requests` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `key_hash` blob NOT NULL, `token_id` integer NOT NULL, `sealed` blob NOT NULL, `created_at` integer NOT NULL, `expires_at` integer NOT NULL);
-- create index "token_requests_by_key" to table: "token_requests"
CREATE UNIQUE INDEX `token_requests_by_key` ON `token_requests` (`key_hash`);
-- create index "token_requests_by_time" to table: "token_requests"
CREATE INDEX `token_requests_by_time` ON `token_requests` (`deployment_id`, `expires_at`);
-- enable back the enforcement of foreign-keys constraints
PRAGMA foreign_keys = on;

-- +goose Down
-- reverse: create index "token_requests_by_time" to table: "token_requests"
DROP INDEX `token_requests_by_time`;
-- reverse: create index "token_requests_by_key" to table: "token_requests"
DROP INDEX `token_requests_by_key`;
-- reverse: create "token_requests" table
DROP TABLE `token_requests`;
-- reverse: create index "scan_payloads_of_scan" to table: "scan_payloads"
DROP INDEX `scan_payloads_of_scan`;
-- reverse: create "scan_payloads" table
DROP TABLE `scan_payloads`;
-- reverse: create index "scan_coverages_by_time" to table: "scan_coverages"
DROP INDEX `scan_coverages_by_time`;
-- reverse: create index "scan_coverages_of_analysis" to table: "scan_coverages"
DROP INDEX `scan_coverages_of_analysis`;
-- reverse: create index "scan_coverages_of_scan" to table: "scan_coverages"
DROP INDEX `scan_coverages_of_scan`;
-- reverse: create "scan_coverages" table
DROP TABLE `scan_coverages`;
-- reverse: create index "rule_versions_of_rule" to table: "rule_versions"
DROP INDEX `rule_versions_of_rule`;
-- reverse: create "rule_versions" table
DROP TABLE `rule_versions`;
-- reverse: create index "rule_documents_of_product" to table: "rule_documents"
DROP INDEX `rule_documents_of_product`;
-- reverse: create index "rule_documents_by_name" to table: "rule_documents"
DROP INDEX `rule_documents_by_name`;
-- reverse: create "rule_documents" table
DROP TABLE `rule_documents`;
-- reverse: create index "rule_aliases_of_rule" to table: "rule_alias"
DROP INDEX `rule_aliases_of_rule`;
-- reverse: create index "rule_aliases_by_name" to table: "rule_alias"
DROP INDEX `rule_aliases_by_name`;
-- reverse: create "rule_alias" table
DROP TABLE `rule_alias`;
-- reverse: create index "remediation_policies_by_slug" to table: "remediation_policies"
DROP INDEX `remediation_policies_by_slug`;
-- reverse: create "remediation_policies" table
DROP TABLE `remediation_policies`;
-- reverse: create index "identity_changes_of_other" to table: "identity_changes"
DROP INDEX `identity_changes_of_other`;
-- reverse: create index "identity_changes_of_finding" to table: "identity_changes"
DROP INDEX `identity_changes_of_finding`;
-- reverse: create index "identity_changes_of_project" to table: "identity_changes"
DROP INDEX `identity_changes_of_project`;
-- reverse: create "identity_changes" table
DROP TABLE `identity_changes`;
-- reverse: create index "finding_matches_of_finding" to table: "finding_matches"
DROP INDEX `finding_matches_of_finding`;
-- reverse: create "finding_matches" table
DROP TABLE `finding_matches`;
-- reverse: create index "dependencies_list_license" to table: "dependencies"
DROP INDEX `dependencies_list_license`;
-- reverse: create index "dependencies_list_transitivity" to table: "dependencies"
DROP INDEX `dependencies_list_transitivity`;
-- reverse: create index "dependencies_list_version" to table: "dependencies"
DROP INDEX `dependencies_list_version`;
-- reverse: create index "dependencies_list_package" to table: "dependencies"
DROP INDEX `dependencies_list_package`;
-- reverse: create index "dependencies_list_ecosystem" to table: "dependencies"
DROP INDEX `dependencies_list_ecosystem`;
-- reverse: create index "dependencies_list_lockfile" to table: "dependencies"
DROP INDEX `dependencies_list_lockfile`;
-- reverse: create index "dependencies_list_project" to table: "dependencies"
DROP INDEX `dependencies_list_project`;
-- reverse: create index "dependencies_list" to table: "dependencies"
DROP INDEX `dependencies_list`;
-- reverse: create index "dependencies_by_place" to table: "dependencies"
DROP INDEX `dependencies_by_place`;
-- reverse: create "dependencies" table
DROP TABLE `dependencies`;
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
-- reverse: create index "findings_decided" to table: "findings"
DROP INDEX `findings_decided`;
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
-- reverse: create index "findings_by_evidence" to table: "findings"
DROP INDEX `findings_by_evidence`;
-- reverse: create index "findings_by_identity" to table: "findings"
DROP INDEX `findings_by_identity`;
-- reverse: create "new_findings" table
DROP TABLE `new_findings`;
-- reverse: create index "scans_search_status" to table: "scans"
DROP INDEX `scans_search_status`;
-- reverse: create index "scans_of_ref" to table: "scans"
DROP INDEX `scans_of_ref`;
-- reverse: create index "scans_by_unique_id" to table: "scans"
DROP INDEX `scans_by_unique_id`;
-- reverse: create index "scans_search_branch" to table: "scans"
DROP INDEX `scans_search_branch`;
-- reverse: create index "scans_search_project" to table: "scans"
DROP INDEX `scans_search_project`;
-- reverse: create index "scans_search" to table: "scans"
DROP INDEX `scans_search`;
-- reverse: create "new_scans" table
DROP TABLE `new_scans`;
