-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS "finding_events_feed";
CREATE INDEX CONCURRENTLY "finding_events_feed" ON "finding_events" ("deployment_id", "tx", "id");

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "finding_events_feed";
