-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS "notification_rules_reports";
CREATE INDEX CONCURRENTLY "notification_rules_reports" ON "notification_rules" ("next_report_at", "id") WHERE (next_report_at IS NOT NULL);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "notification_rules_reports";
