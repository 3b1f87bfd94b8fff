-- +goose Up
-- create index "findings_list_status_severity" to table: "findings"
CREATE INDEX `findings_list_status_severity` ON `findings` (`deployment_id`, `issue_type`, `status`, `severity`, `relevant_since`, `id`, `project_id`);

-- +goose Down
-- reverse: create index "findings_list_status_severity" to table: "findings"
DROP INDEX `findings_list_status_severity`;
