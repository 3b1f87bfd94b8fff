-- +goose Up
-- add column "delivered_to" to table: "deliveries"
ALTER TABLE `deliveries` ADD COLUMN `delivered_to` json NULL;
-- drop index "deliveries_due" from table: "deliveries"
DROP INDEX `deliveries_due`;
-- create index "deliveries_turns" to table: "deliveries"
CREATE INDEX `deliveries_turns` ON `deliveries` (`deployment_id`, `rule_id`, `next_attempt_at`, `id`) WHERE finished_at IS NULL;
-- drop index "notification_events_due" from table: "notification_events"
DROP INDEX `notification_events_due`;
-- create index "notification_events_turns" to table: "notification_events"
CREATE INDEX `notification_events_turns` ON `notification_events` (`deployment_id`, `not_before`, `id`);
-- add column "refused_recipients" to table: "notification_rules"
ALTER TABLE `notification_rules` ADD COLUMN `refused_recipients` json NULL;

-- +goose Down
-- reverse: add column "refused_recipients" to table: "notification_rules"
ALTER TABLE `notification_rules` DROP COLUMN `refused_recipients`;
-- reverse: create index "notification_events_turns" to table: "notification_events"
DROP INDEX `notification_events_turns`;
-- reverse: drop index "notification_events_due" from table: "notification_events"
CREATE INDEX `notification_events_due` ON `notification_events` (`not_before`, `id`);
-- reverse: create index "deliveries_turns" to table: "deliveries"
DROP INDEX `deliveries_turns`;
-- reverse: drop index "deliveries_due" from table: "deliveries"
CREATE INDEX `deliveries_due` ON `deliveries` (`next_attempt_at`, `id`) WHERE finished_at IS NULL;
-- reverse: add column "delivered_to" to table: "deliveries"
ALTER TABLE `deliveries` DROP COLUMN `delivered_to`;
