-- +goose NO TRANSACTION
-- +goose Up
-- Findings are written while it is built. What is left of one that was cut off is built again.
DROP INDEX CONCURRENTLY IF EXISTS "findings_list_status_severity";
-- create index "findings_list_status_severity" to table: "findings"
CREATE INDEX CONCURRENTLY "findings_list_status_severity" ON "findings" ("deployment_id", "issue_type", "status", "severity", "relevant_since", "id", "project_id");

-- +goose Down
-- reverse: create index "findings_list_status_severity" to table: "findings"
DROP INDEX CONCURRENTLY "findings_list_status_severity";
