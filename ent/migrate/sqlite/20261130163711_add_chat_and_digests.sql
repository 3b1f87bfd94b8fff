-- +goose Up
-- add columns to table: "notification_rules"
ALTER TABLE `notification_rules` ADD COLUMN `digest` blob NULL;
ALTER TABLE `notification_rules` ADD COLUMN `next_digest_at` integer NULL;
ALTER TABLE `notification_rules` ADD COLUMN `quiet_hours` blob NULL;
-- create index "notification_rules_digests" to table: "notification_rules"
CREATE INDEX `notification_rules_digests` ON `notification_rules` (`next_digest_at`, `id`) WHERE next_digest_at IS NOT NULL;
-- create "chat_installations" table
CREATE TABLE `chat_installations` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `client_id` text NOT NULL, `app_id` text NOT NULL, `team_id` text NOT NULL, `team_name` text NOT NULL, `enterprise_id` text NOT NULL DEFAULT (''), `enterprise_name` text NOT NULL DEFAULT (''), `enterprise_url` text NOT NULL DEFAULT (''), `scopes` json NOT NULL, `token` blob NULL, `archived` bool NOT NULL DEFAULT (false), `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "chat_installations_of_deployment" to table: "chat_installations"
CREATE UNIQUE INDEX `chat_installations_of_deployment` ON `chat_installations` (`deployment_id`);
-- create index "chat_installations_of_team" to table: "chat_installations"
CREATE INDEX `chat_installations_of_team` ON `chat_installations` (`team_id`);
-- create "digest_parts" table
CREATE TABLE `digest_parts` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `rule_id` integer NOT NULL, `project_id` integer NOT NULL, `scan_id` integer NOT NULL, `tally` blob NOT NULL, `created_at` integer NOT NULL);
-- create index "digest_parts_of_rule" to table: "digest_parts"
CREATE INDEX `digest_parts_of_rule` ON `digest_parts` (`deployment_id`, `rule_id`, `id`);

-- +goose Down
-- reverse: create index "digest_parts_of_rule" to table: "digest_parts"
DROP INDEX `digest_parts_of_rule`;
-- reverse: create "digest_parts" table
DROP TABLE `digest_parts`;
-- reverse: create index "chat_installations_of_team" to table: "chat_installations"
DROP INDEX `chat_installations_of_team`;
-- reverse: create index "chat_installations_of_deployment" to table: "chat_installations"
DROP INDEX `chat_installations_of_deployment`;
-- reverse: create "chat_installations" table
DROP TABLE `chat_installations`;
-- reverse: create index "notification_rules_digests" to table: "notification_rules"
DROP INDEX `notification_rules_digests`;
-- reverse: add columns to table: "notification_rules"
ALTER TABLE `notification_rules` DROP COLUMN `quiet_hours`;
ALTER TABLE `notification_rules` DROP COLUMN `next_digest_at`;
ALTER TABLE `notification_rules` DROP COLUMN `digest`;
