-- +goose NO TRANSACTION
-- +goose Up
-- Scans write coverages while the index is built. What is left of one that was cut off is built again.
DROP INDEX CONCURRENTLY IF EXISTS "scan_coverages_by_commit";
CREATE INDEX CONCURRENTLY "scan_coverages_by_commit" ON "scan_coverages" ("deployment_id", "project_id", "ref", "tool", "analysis_category", "commit_time");

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "scan_coverages_by_commit";
