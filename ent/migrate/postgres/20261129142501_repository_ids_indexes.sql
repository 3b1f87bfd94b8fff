-- +goose NO TRANSACTION
-- +goose Up
-- Uploads write projects while the indexes are built. What is left of one that was cut off is built again.
DROP INDEX CONCURRENTLY IF EXISTS "projects_by_repository_id";
CREATE INDEX CONCURRENTLY "projects_by_repository_id" ON "projects" ("deployment_id", "repository_id") WHERE (repository_id IS NOT NULL);
DROP INDEX CONCURRENTLY IF EXISTS "projects_left_host";
CREATE INDEX CONCURRENTLY "projects_left_host" ON "projects" ("deployment_id", "left_host_at", "id") WHERE (left_host_at IS NOT NULL);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "projects_left_host";
DROP INDEX CONCURRENTLY IF EXISTS "projects_by_repository_id";
