-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS "rules_filter_origin";
CREATE INDEX CONCURRENTLY "rules_filter_origin" ON "rules" ("deployment_id", "origin") WHERE (origin IS NOT NULL);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "rules_filter_origin";
