-- +goose Up
-- add column "parent_id" to table: "tokens"
ALTER TABLE `tokens` ADD COLUMN `parent_id` integer NULL;
-- add column "sealed_url" to table: "notification_webhooks"
ALTER TABLE `notification_webhooks` ADD COLUMN `sealed_url` blob NULL;

-- +goose Down
-- reverse: add column "sealed_url" to table: "notification_webhooks"
ALTER TABLE `notification_webhooks` DROP COLUMN `sealed_url`;
-- reverse: add column "parent_id" to table: "tokens"
ALTER TABLE `tokens` DROP COLUMN `parent_id`;
