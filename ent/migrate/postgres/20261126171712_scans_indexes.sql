-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS "scans_of_project_by_branch";
CREATE INDEX CONCURRENTLY "scans_of_project_by_branch" ON "scans" ("deployment_id", "project_id", "ref", "started_at", "id");
DROP INDEX CONCURRENTLY IF EXISTS "scans_of_project_by_status";
CREATE INDEX CONCURRENTLY "scans_of_project_by_status" ON "scans" ("deployment_id", "project_id", "status", "started_at", "id");
DROP INDEX CONCURRENTLY IF EXISTS "scans_of_project_by_type";
CREATE INDEX CONCURRENTLY "scans_of_project_by_type" ON "scans" ("deployment_id", "project_id", "is_full_scan", "started_at", "id");

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "scans_of_project_by_type";
DROP INDEX CONCURRENTLY IF EXISTS "scans_of_project_by_status";
DROP INDEX CONCURRENTLY IF EXISTS "scans_of_project_by_branch";
