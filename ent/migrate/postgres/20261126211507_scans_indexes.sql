-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS "scans_of_pull_request";
CREATE INDEX CONCURRENTLY "scans_of_pull_request" ON "scans" ("deployment_id", "project_id", "pull_request", "id") WHERE (pull_request IS NOT NULL);
DROP INDEX CONCURRENTLY IF EXISTS "scans_of_pull_requests";
CREATE INDEX CONCURRENTLY "scans_of_pull_requests" ON "scans" ("deployment_id", "id", "project_id", "pull_request") WHERE (pull_request IS NOT NULL);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "scans_of_pull_requests";
DROP INDEX CONCURRENTLY IF EXISTS "scans_of_pull_request";
