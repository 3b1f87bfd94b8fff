-- +goose Up
-- disable the enforcement of foreign-keys constraints
PRAGMA foreign_keys = off;
-- create "new_notification_rules" table
CREATE TABLE `new_notification_rules` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `channel` text NOT NULL, `name` text NOT NULL, `config` json NOT NULL, `secrets` blob NULL, `is_enabled` bool NOT NULL DEFAULT (false), `policy_slugs` json NOT NULL, `use_network_broker` bool NOT NULL DEFAULT (false), `send_scan_completion` bool NOT NULL DEFAULT (true), `send_held_closes` bool NOT NULL DEFAULT (false), `send_rule_alerts` bool NOT NULL DEFAULT (false), `send_freshness` bool NOT NULL DEFAULT (false), `send_findings` bool NOT NULL DEFAULT (true), `send_report` blob NULL, `next_report_at` integer NULL, `last_report_at` integer NULL, `digest` blob NULL, `next_digest_at` integer NULL, `quiet_hours` blob NULL, `refused_recipients` json NULL, `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- copy rows from old table "notification_rules" to new temporary table "new_notification_rules"
INSERT INTO `new_notification_rules` (`id`, `deployment_id`, `channel`, `name`, `config`, `secrets`, `is_enabled`, `policy_slugs`, `use_network_broker`, `send_scan_completion`, `send_held_closes`, `send_rule_alerts`, `send_freshness`, `send_findings`, `send_report`, `next_report_at`, `last_report_at`, `refused_recipients`, `created_at`, `updated_at`) SELECT `id`, `deployment_id`, `channel`, `name`, `config`, `secrets`, `is_enabled`, `policy_slugs`, `use_network_broker`, `send_scan_completion`, `send_held_closes`, `send_rule_alerts`, `send_freshness`, `send_findings`, `send_report`, `next_report_at`, `last_report_at`, `refused_recipients`, `created_at`, `updated_at` FROM `notification_rules`;
-- drop "notification_rules" table after copying rows
DROP TABLE `notification_rules`;
-- rename temporary table "new_notification_rules" to "notification_rules"
ALTER TABLE `new_notification_rules` RENAME TO `notification_rules`;
-- create index "notification_rules_list" to table: "notification_rules"
CREATE INDEX `notification_rules_list` ON `notification_rules` (`deployment_id`, `id`);
-- create index "notification_rules_by_channel" to table: "notification_rules"
CREATE INDEX `notification_rules_by_channel` ON `notification_rules` (`deployment_id`, `channel`, `id`);
-- create index "notification_rules_reports" to table: "notification_rules"
CREATE INDEX `notification_rules_reports` ON `notification_rules` (`next_report_at`, `id`) WHERE next_report_at IS NOT NULL;
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
-- enable back the enforcement of foreign-keys constraints
PRAGMA foreign_keys = on;

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
-- reverse: create index "notification_rules_reports" to table: "notification_rules"
DROP INDEX `notification_rules_reports`;
-- reverse: create index "notification_rules_by_channel" to table: "notification_rules"
DROP INDEX `notification_rules_by_channel`;
-- reverse: create index "notification_rules_list" to table: "notification_rules"
DROP INDEX `notification_rules_list`;
-- reverse: create "new_notification_rules" table
DROP TABLE `new_notification_rules`;
