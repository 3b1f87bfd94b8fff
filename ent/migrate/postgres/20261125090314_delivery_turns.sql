-- +goose NO TRANSACTION
-- +goose Up
-- Messages are written while the indexes are built. What is left of one that was cut off is built again. Those that they replace go
-- last.
DROP INDEX CONCURRENTLY IF EXISTS "deliveries_turns";
CREATE INDEX CONCURRENTLY "deliveries_turns" ON "deliveries" ("deployment_id", "rule_id", "next_attempt_at", "id") WHERE (finished_at IS NULL);
DROP INDEX CONCURRENTLY IF EXISTS "notification_events_turns";
CREATE INDEX CONCURRENTLY "notification_events_turns" ON "notification_events" ("deployment_id", "not_before", "id");
DROP INDEX CONCURRENTLY IF EXISTS "deliveries_due";
DROP INDEX CONCURRENTLY IF EXISTS "notification_events_due";

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "deliveries_due";
CREATE INDEX CONCURRENTLY "deliveries_due" ON "deliveries" ("next_attempt_at", "id") WHERE (finished_at IS NULL);
DROP INDEX CONCURRENTLY IF EXISTS "notification_events_due";
CREATE INDEX CONCURRENTLY "notification_events_due" ON "notification_events" ("not_before", "id");
DROP INDEX CONCURRENTLY IF EXISTS "deliveries_turns";
DROP INDEX CONCURRENTLY IF EXISTS "notification_events_turns";
