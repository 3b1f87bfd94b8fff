-- +goose NO TRANSACTION
-- +goose Up
-- Scans are stored while the index is built. What is left of one that was cut off is built again.
DROP INDEX CONCURRENTLY IF EXISTS "scans_of_commit";
CREATE INDEX CONCURRENTLY "scans_of_commit" ON "scans" ("deployment_id", "project_id", "commit", "id");

-- +goose Down
-- reverse: create index "scans_of_commit" to table: "scans"
DROP INDEX CONCURRENTLY IF EXISTS "scans_of_commit";
