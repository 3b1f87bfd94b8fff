-- +goose NO TRANSACTION
-- +goose Up
-- Scans write rules while the index is built. What is left of one that was cut off is built again.
DROP INDEX CONCURRENTLY IF EXISTS "rules_filter_secret_type";
CREATE INDEX CONCURRENTLY "rules_filter_secret_type" ON "rules" ("deployment_id", "secret_type") WHERE (secret_type IS NOT NULL);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "rules_filter_secret_type";
