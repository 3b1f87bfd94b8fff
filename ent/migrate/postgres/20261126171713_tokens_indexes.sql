-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS "tokens_of_project";
CREATE INDEX CONCURRENTLY "tokens_of_project" ON "tokens" ("deployment_id", "project_id") WHERE (project_id IS NOT NULL);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "tokens_of_project";
