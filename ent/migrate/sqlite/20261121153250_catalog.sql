-- +goose Up
-- create index "advisories_list" to table: "advisories"
CREATE INDEX `advisories_list` ON `advisories` (`deployment_id`, `id`);
-- modify "deployments" table
ALTER TABLE `deployments` ADD COLUMN `catalog_revision` integer NOT NULL DEFAULT (0);
-- drop index "findings_list" from table: "findings"
DROP INDEX `findings_list`;
-- drop index "findings_list_advisory" from table: "findings"
DROP INDEX `findings_list_advisory`;
-- drop index "findings_list_autotriage_verdict" from table: "findings"
DROP INDEX `findings_list_autotriage_verdict`;
-- drop index "findings_list_click_to_fix_state" from table: "findings"
DROP INDEX `findings_list_click_to_fix_state`;
-- drop index "findings_list_component_tag" from table: "findings"
DROP INDEX `findings_list_component_tag`;
-- drop index "findings_list_epss_probability" from table: "findings"
DROP INDEX `findings_list_epss_probability`;
-- drop index "findings_list_exposure" from table: "findings"
DROP INDEX `findings_list_exposure`;
-- drop index "findings_list_historical" from table: "findings"
DROP INDEX `findings_list_historical`;
-- drop index "findings_list_malicious" from table: "findings"
DROP INDEX `findings_list_malicious`;
-- drop index "findings_list_package" from table: "findings"
DROP INDEX `findings_list_package`;
-- drop index "findings_list_policy_mode" from table: "findings"
DROP INDEX `findings_list_policy_mode`;
-- drop index "findings_list_project" from table: "findings"
DROP INDEX `findings_list_project`;
-- drop index "findings_list_ref" from table: "findings"
DROP INDEX `findings_list_ref`;
-- drop index "findings_list_rule" from table: "findings"
DROP INDEX `findings_list_rule`;
-- drop index "findings_list_severity" from table: "findings"
DROP INDEX `findings_list_severity`;
-- drop index "findings_list_status" from table: "findings"
DROP INDEX `findings_list_status`;
-- drop index "findings_list_transitivity" from table: "findings"
DROP INDEX `findings_list_transitivity`;
-- drop index "findings_list_triage_reason" from table: "findings"
DROP INDEX `findings_list_triage_reason`;
-- drop index "findings_list_validation_state" from table: "findings"
DROP INDEX `findings_list_validation_state`;
-- create index "findings_list" to table: "findings"
CREATE INDEX `findings_list` ON `findings` (`deployment_id`, `issue_type`, `relevant_since`, `id`, `status`);
-- create index "findings_list_advisory" to table: "findings"
CREATE INDEX `findings_list_advisory` ON `findings` (`deployment_id`, `advisory`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE advisory IS NOT NULL;
-- create index "findings_list_autotriage_verdict" to table: "findings"
CREATE INDEX `findings_list_autotriage_verdict` ON `findings` (`deployment_id`, `autotriage_verdict`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE autotriage_verdict IS NOT NULL;
-- create index "findings_list_click_to_fix_state" to table: "findings"
CREATE INDEX `findings_list_click_to_fix_state` ON `findings` (`deployment_id`, `click_to_fix_state`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE click_to_fix_state IS NOT NULL;
-- create index "findings_list_component_tag" to table: "findings"
CREATE INDEX `findings_list_component_tag` ON `findings` (`deployment_id`, `component_tag`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE component_tag IS NOT NULL;
-- create index "findings_list_epss_probability" to table: "findings"
CREATE INDEX `findings_list_epss_probability` ON `findings` (`deployment_id`, `epss_probability`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE epss_probability IS NOT NULL;
-- create index "findings_list_exposure" to table: "findings"
CREATE INDEX `findings_list_exposure` ON `findings` (`deployment_id`, `exposure`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE exposure IS NOT NULL;
-- create index "findings_list_historical" to table: "findings"
CREATE INDEX `findings_list_historical` ON `findings` (`deployment_id`, `historical`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE historical IS NOT NULL;
-- create index "findings_list_malicious" to table: "findings"
CREATE INDEX `findings_list_malicious` ON `findings` (`deployment_id`, `malicious`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE malicious IS NOT NULL;
-- create index "findings_list_package" to table: "findings"
CREATE INDEX `findings_list_package` ON `findings` (`deployment_id`, `package`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE package IS NOT NULL;
-- create index "findings_list_policy_mode" to table: "findings"
CREATE INDEX `findings_list_policy_mode` ON `findings` (`deployment_id`, `policy_mode`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE policy_mode IS NOT NULL;
-- create index "findings_list_project" to table: "findings"
CREATE INDEX `findings_list_project` ON `findings` (`deployment_id`, `project_id`, `issue_type`, `relevant_since`, `id`, `status`, `severity`, `ref`);
-- create index "findings_list_ref" to table: "findings"
CREATE INDEX `findings_list_ref` ON `findings` (`deployment_id`, `ref`, `issue_type`, `relevant_since`, `id`, `status`, `project_id`);
-- create index "findings_list_rule" to table: "findings"
CREATE INDEX `findings_list_rule` ON `findings` (`deployment_id`, `rule_id`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`);
-- create index "findings_list_severity" to table: "findings"
CREATE INDEX `findings_list_severity` ON `findings` (`deployment_id`, `issue_type`, `severity`, `relevant_since`, `id`, `status`, `project_id`);
-- create index "findings_list_status" to table: "findings"
CREATE INDEX `findings_list_status` ON `findings` (`deployment_id`, `issue_type`, `status`, `relevant_since`, `id`, `project_id`);
-- create index "findings_list_transitivity" to table: "findings"
CREATE INDEX `findings_list_transitivity` ON `findings` (`deployment_id`, `transitivity`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE transitivity IS NOT NULL;
-- create index "findings_list_triage_reason" to table: "findings"
CREATE INDEX `findings_list_triage_reason` ON `findings` (`deployment_id`, `triage_reason`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE triage_reason IS NOT NULL;
-- create index "findings_list_validation_state" to table: "findings"
CREATE INDEX `findings_list_validation_state` ON `findings` (`deployment_id`, `validation_state`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`) WHERE validation_state IS NOT NULL;
-- create index "projects_list" to table: "projects"
CREATE INDEX `projects_list` ON `projects` (`deployment_id`, `id`);

-- +goose Down
-- reverse: create index "projects_list" to table: "projects"
DROP INDEX `projects_list`;
-- reverse: create index "findings_list_validation_state" to table: "findings"
DROP INDEX `findings_list_validation_state`;
-- reverse: create index "findings_list_triage_reason" to table: "findings"
DROP INDEX `findings_list_triage_reason`;
-- reverse: create index "findings_list_transitivity" to table: "findings"
DROP INDEX `findings_list_transitivity`;
-- reverse: create index "findings_list_status" to table: "findings"
DROP INDEX `findings_list_status`;
-- reverse: create index "findings_list_severity" to table: "findings"
DROP INDEX `findings_list_severity`;
-- reverse: create index "findings_list_rule" to table: "findings"
DROP INDEX `findings_list_rule`;
-- reverse: create index "findings_list_ref" to table: "findings"
DROP INDEX `findings_list_ref`;
-- reverse: create index "findings_list_project" to table: "findings"
DROP INDEX `findings_list_project`;
-- reverse: create index "findings_list_policy_mode" to table: "findings"
DROP INDEX `findings_list_policy_mode`;
-- reverse: create index "findings_list_package" to table: "findings"
DROP INDEX `findings_list_package`;
-- reverse: create index "findings_list_malicious" to table: "findings"
DROP INDEX `findings_list_malicious`;
-- reverse: create index "findings_list_historical" to table: "findings"
DROP INDEX `findings_list_historical`;
-- reverse: create index "findings_list_exposure" to table: "findings"
DROP INDEX `findings_list_exposure`;
-- reverse: create index "findings_list_epss_probability" to table: "findings"
DROP INDEX `findings_list_epss_probability`;
-- reverse: create index "findings_list_component_tag" to table: "findings"
DROP INDEX `findings_list_component_tag`;
-- reverse: create index "findings_list_click_to_fix_state" to table: "findings"
DROP INDEX `findings_list_click_to_fix_state`;
-- reverse: create index "findings_list_autotriage_verdict" to table: "findings"
DROP INDEX `findings_list_autotriage_verdict`;
-- reverse: create index "findings_list_advisory" to table: "findings"
DROP INDEX `findings_list_advisory`;
-- reverse: create index "findings_list" to table: "findings"
DROP INDEX `findings_list`;
-- reverse: drop index "findings_list_validation_state" from table: "findings"
CREATE INDEX `findings_list_validation_state` ON `findings` (`deployment_id`, `validation_state`, `relevant_since`, `id`) WHERE validation_state IS NOT NULL;
-- reverse: drop index "findings_list_triage_reason" from table: "findings"
CREATE INDEX `findings_list_triage_reason` ON `findings` (`deployment_id`, `triage_reason`, `relevant_since`, `id`) WHERE triage_reason IS NOT NULL;
-- reverse: drop index "findings_list_transitivity" from table: "findings"
CREATE INDEX `findings_list_transitivity` ON `findings` (`deployment_id`, `transitivity`, `relevant_since`, `id`) WHERE transitivity IS NOT NULL;
-- reverse: drop index "findings_list_status" from table: "findings"
CREATE INDEX `findings_list_status` ON `findings` (`deployment_id`, `issue_type`, `status`, `relevant_since`, `id`);
-- reverse: drop index "findings_list_severity" from table: "findings"
CREATE INDEX `findings_list_severity` ON `findings` (`deployment_id`, `issue_type`, `severity`, `relevant_since`, `id`);
-- reverse: drop index "findings_list_rule" from table: "findings"
CREATE INDEX `findings_list_rule` ON `findings` (`deployment_id`, `rule_id`, `relevant_since`, `id`);
-- reverse: drop index "findings_list_ref" from table: "findings"
CREATE INDEX `findings_list_ref` ON `findings` (`deployment_id`, `ref`, `issue_type`, `relevant_since`, `id`);
-- reverse: drop index "findings_list_project" from table: "findings"
CREATE INDEX `findings_list_project` ON `findings` (`deployment_id`, `project_id`, `issue_type`, `relevant_since`, `id`);
-- reverse: drop index "findings_list_policy_mode" from table: "findings"
CREATE INDEX `findings_list_policy_mode` ON `findings` (`deployment_id`, `policy_mode`, `relevant_since`, `id`) WHERE policy_mode IS NOT NULL;
-- reverse: drop index "findings_list_package" from table: "findings"
CREATE INDEX `findings_list_package` ON `findings` (`deployment_id`, `package`, `relevant_since`, `id`) WHERE package IS NOT NULL;
-- reverse: drop index "findings_list_malicious" from table: "findings"
CREATE INDEX `findings_list_malicious` ON `findings` (`deployment_id`, `malicious`, `relevant_since`, `id`) WHERE malicious IS NOT NULL;
-- reverse: drop index "findings_list_historical" from table: "findings"
CREATE INDEX `findings_list_historical` ON `findings` (`deployment_id`, `historical`, `relevant_since`, `id`) WHERE historical IS NOT NULL;
-- reverse: drop index "findings_list_exposure" from table: "findings"
CREATE INDEX `findings_list_exposure` ON `findings` (`deployment_id`, `exposure`, `relevant_since`, `id`) WHERE exposure IS NOT NULL;
-- reverse: drop index "findings_list_epss_probability" from table: "findings"
CREATE INDEX `findings_list_epss_probability` ON `findings` (`deployment_id`, `epss_probability`, `relevant_since`, `id`) WHERE epss_probability IS NOT NULL;
-- reverse: drop index "findings_list_component_tag" from table: "findings"
CREATE INDEX `findings_list_component_tag` ON `findings` (`deployment_id`, `component_tag`, `relevant_since`, `id`) WHERE component_tag IS NOT NULL;
-- reverse: drop index "findings_list_click_to_fix_state" from table: "findings"
CREATE INDEX `findings_list_click_to_fix_state` ON `findings` (`deployment_id`, `click_to_fix_state`, `relevant_since`, `id`) WHERE click_to_fix_state IS NOT NULL;
-- reverse: drop index "findings_list_autotriage_verdict" from table: "findings"
CREATE INDEX `findings_list_autotriage_verdict` ON `findings` (`deployment_id`, `autotriage_verdict`, `relevant_since`, `id`) WHERE autotriage_verdict IS NOT NULL;
-- reverse: drop index "findings_list_advisory" from table: "findings"
CREATE INDEX `findings_list_advisory` ON `findings` (`deployment_id`, `advisory`, `relevant_since`, `id`) WHERE advisory IS NOT NULL;
-- reverse: drop index "findings_list" from table: "findings"
CREATE INDEX `findings_list` ON `findings` (`deployment_id`, `issue_type`, `relevant_since`, `id`);
-- reverse: modify "deployments" table
ALTER TABLE `deployments` DROP COLUMN `catalog_revision`;
-- reverse: create index "advisories_list" to table: "advisories"
DROP INDEX `advisories_list`;
