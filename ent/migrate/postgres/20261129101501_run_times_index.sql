-- +goose NO TRANSACTION
-- +goose Up
-- Scans write coverages while the index is built. What is left of one that was cut off is built again.
DROP INDEX CONCURRENTLY IF EXISTS "scan_coverages_by_run";
CREATE INDEX CONCURRENTLY "scan_coverages_by_run" ON "scan_coverages" ("deployment_id", "project_id", "ref", "tool", "analysis_category", "ran_at");

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "scan_coverages_by_run";
