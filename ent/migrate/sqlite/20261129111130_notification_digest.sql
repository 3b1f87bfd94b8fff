-- +goose Up
-- add column "digest" to table: "notification_events"
ALTER TABLE `notification_events` ADD COLUMN `digest` blob NULL;

-- +goose Down
-- reverse: add column "digest" to table: "notification_events"
ALTER TABLE `notification_events` DROP COLUMN `digest`;
