-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS "projects_by_badge";
CREATE INDEX CONCURRENTLY "projects_by_badge" ON "projects" ("badge_key") WHERE (badge_key IS NOT NULL);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "projects_by_badge";
