-- +goose Up
-- drop index "findings_list_rule" from table: "findings"
DROP INDEX `findings_list_rule`;
-- create index "findings_list_rule_policy" to table: "findings"
CREATE INDEX `findings_list_rule_policy` ON `findings` (`deployment_id`, `rule_id`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`, `policy_mode`);

-- +goose Down
-- reverse: create index "findings_list_rule_policy" to table: "findings"
DROP INDEX `findings_list_rule_policy`;
-- reverse: drop index "findings_list_rule" from table: "findings"
CREATE INDEX `findings_list_rule` ON `findings` (`deployment_id`, `rule_id`, `relevant_since`, `id`, `issue_type`, `status`, `project_id`);
