-- +goose NO TRANSACTION
-- +goose Up
-- What is left of an index whose build was cut off is built again.
DROP INDEX CONCURRENTLY IF EXISTS "notification_rules_digests";
CREATE INDEX CONCURRENTLY "notification_rules_digests" ON "notification_rules" ("next_digest_at", "id") WHERE (next_digest_at IS NOT NULL);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "notification_rules_digests";
