-- +goose NO TRANSACTION
-- +goose Up
-- Scans write findings while the index is built. What is left of one that was cut off is built again. The one that it replaces goes last.
DROP INDEX CONCURRENTLY IF EXISTS "findings_list_rule_policy";
CREATE INDEX CONCURRENTLY "findings_list_rule_policy" ON "findings" ("deployment_id", "rule_id", "relevant_since", "id", "issue_type", "status", "project_id", "policy_mode");
DROP INDEX CONCURRENTLY IF EXISTS "findings_list_rule";

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "findings_list_rule";
CREATE INDEX CONCURRENTLY "findings_list_rule" ON "findings" ("deployment_id", "rule_id", "relevant_since", "id", "issue_type", "status", "project_id");
DROP INDEX CONCURRENTLY IF EXISTS "findings_list_rule_policy";
