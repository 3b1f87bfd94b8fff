-- +goose NO TRANSACTION
-- +goose Up
-- What is left of an index whose build was cut off is built again.
DROP INDEX CONCURRENTLY IF EXISTS "projects_by_next_full_scan";
CREATE INDEX CONCURRENTLY "projects_by_next_full_scan" ON "projects" ("next_full_scan_at") WHERE managed_full_scan;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "projects_by_next_full_scan";
