-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS "projects_by_repository";
CREATE INDEX CONCURRENTLY "projects_by_repository" ON "projects" ("deployment_id", "repository_url", "id");
DROP INDEX CONCURRENTLY IF EXISTS "projects_list_archived";
CREATE INDEX CONCURRENTLY "projects_list_archived" ON "projects" ("deployment_id", "archived_at", "id");
DROP INDEX CONCURRENTLY IF EXISTS "projects_list_scanned";
CREATE INDEX CONCURRENTLY "projects_list_scanned" ON "projects" ("deployment_id", "latest_scan_at", "id");
DROP INDEX CONCURRENTLY IF EXISTS "projects_list_scm_type";
CREATE INDEX CONCURRENTLY "projects_list_scm_type" ON "projects" ("deployment_id", "scm_type", "id");

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "projects_list_scm_type";
DROP INDEX CONCURRENTLY IF EXISTS "projects_list_scanned";
DROP INDEX CONCURRENTLY IF EXISTS "projects_list_archived";
DROP INDEX CONCURRENTLY IF EXISTS "projects_by_repository";
