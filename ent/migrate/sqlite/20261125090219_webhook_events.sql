-- +goose Up
-- add column "installation_at" to table: "scm_apps"
ALTER TABLE `scm_apps` ADD COLUMN `installation_at` integer NULL;
-- create "webhook_events" table
CREATE TABLE `webhook_events` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `webhook_key` text NOT NULL, `delivery_id` text NOT NULL, `subject` text NOT NULL, `happened_at` integer NOT NULL, `received_at` integer NOT NULL, `due_at` integer NULL, `attempts` integer NOT NULL DEFAULT (0), `failed` bool NOT NULL DEFAULT (false), `event` blob NULL);
-- create index "webhook_events_by_delivery" to table: "webhook_events"
CREATE UNIQUE INDEX `webhook_events_by_delivery` ON `webhook_events` (`deployment_id`, `webhook_key`, `delivery_id`);
-- create index "webhook_events_due" to table: "webhook_events"
CREATE INDEX `webhook_events_due` ON `webhook_events` (`deployment_id`, `due_at`) WHERE due_at IS NOT NULL;
-- create index "webhook_events_of_subject" to table: "webhook_events"
CREATE INDEX `webhook_events_of_subject` ON `webhook_events` (`deployment_id`, `subject`, `happened_at`, `id`) WHERE due_at IS NOT NULL;
-- create index "webhook_events_by_time" to table: "webhook_events"
CREATE INDEX `webhook_events_by_time` ON `webhook_events` (`received_at`);

-- +goose Down
-- reverse: create index "webhook_events_by_time" to table: "webhook_events"
DROP INDEX `webhook_events_by_time`;
-- reverse: create index "webhook_events_of_subject" to table: "webhook_events"
DROP INDEX `webhook_events_of_subject`;
-- reverse: create index "webhook_events_due" to table: "webhook_events"
DROP INDEX `webhook_events_due`;
-- reverse: create index "webhook_events_by_delivery" to table: "webhook_events"
DROP INDEX `webhook_events_by_delivery`;
-- reverse: create "webhook_events" table
DROP TABLE `webhook_events`;
-- reverse: add column "installation_at" to table: "scm_apps"
ALTER TABLE `scm_apps` DROP COLUMN `installation_at`;
