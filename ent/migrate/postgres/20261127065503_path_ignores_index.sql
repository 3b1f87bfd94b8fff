-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS "findings_ignored_by_pattern";
CREATE INDEX CONCURRENTLY "findings_ignored_by_pattern" ON "findings" ("deployment_id", "id") WHERE (ignored_by_pattern IS NOT NULL);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "findings_ignored_by_pattern";
