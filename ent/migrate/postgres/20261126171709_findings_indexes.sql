-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS "findings_columns";
CREATE INDEX CONCURRENTLY "findings_columns" ON "findings" ("deployment_id", "id", "project_id", "rule_id", "ref", "issue_type", "severity", "state", "triage_state", "relevant_since", "triage_reason", "policy_mode", "autotriage_verdict", "exposure", "transitivity", "epss_probability", "malicious", "click_to_fix_state", "validation_state", "historical");
DROP INDEX CONCURRENTLY IF EXISTS "findings_unseen";
CREATE INDEX CONCURRENTLY "findings_unseen" ON "findings" ("deployment_id", "project_id", "ref", "tool", "analysis_category", "state", "last_seen_scan_id") WHERE (last_seen_scan_id IS NOT NULL);
DROP INDEX CONCURRENTLY IF EXISTS "findings_report";

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "findings_report";
CREATE INDEX CONCURRENTLY "findings_report" ON "findings" ("deployment_id", "id", "project_id", "rule_id", "ref", "issue_type", "severity", "exposure", "validation_state", "autotriage_verdict", "policy_mode");
DROP INDEX CONCURRENTLY IF EXISTS "findings_unseen";
DROP INDEX CONCURRENTLY IF EXISTS "findings_columns";
