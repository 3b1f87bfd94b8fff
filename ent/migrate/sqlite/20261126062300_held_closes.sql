-- +goose Up
-- add column "close_limits" to table: "projects"
ALTER TABLE `projects` ADD COLUMN `close_limits` blob NULL;
-- add column "close_limits" to table: "deployments"
ALTER TABLE `deployments` ADD COLUMN `close_limits` blob NULL;
-- add column "send_held_closes" to table: "notification_rules"
ALTER TABLE `notification_rules` ADD COLUMN `send_held_closes` bool NOT NULL DEFAULT false;
-- create "held_closes" table
CREATE TABLE `held_closes` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NOT NULL, `ref` text NOT NULL, `tool` text NOT NULL, `tool_version` text NOT NULL, `analysis_category` text NOT NULL, `products` text NOT NULL, `scan_id` integer NOT NULL, `state` text NOT NULL, `active` bool NOT NULL, `findings` integer NOT NULL, `open` integer NOT NULL, `waiting` integer NOT NULL, `rejected_before` bool NOT NULL, `content` blob NOT NULL, `actor_kind` text NOT NULL DEFAULT (''), `actor_id` integer NOT NULL DEFAULT (0), `note` text NOT NULL DEFAULT (''), `created_at` integer NOT NULL, `decided_at` integer NULL);
-- create index "held_closes_active" to table: "held_closes"
CREATE INDEX `held_closes_active` ON `held_closes` (`deployment_id`, `project_id`, `ref`) WHERE active;
-- create index "held_closes_list" to table: "held_closes"
CREATE INDEX `held_closes_list` ON `held_closes` (`deployment_id`, `id`);
-- create index "held_closes_of_project" to table: "held_closes"
CREATE INDEX `held_closes_of_project` ON `held_closes` (`deployment_id`, `project_id`, `id`);
-- create index "held_closes_by_state" to table: "held_closes"
CREATE INDEX `held_closes_by_state` ON `held_closes` (`deployment_id`, `state`, `id`);
-- create index "held_closes_of_scan" to table: "held_closes"
CREATE INDEX `held_closes_of_scan` ON `held_closes` (`deployment_id`, `scan_id`);

-- +goose Down
-- reverse: create index "held_closes_of_scan" to table: "held_closes"
DROP INDEX `held_closes_of_scan`;
-- reverse: create index "held_closes_by_state" to table: "held_closes"
DROP INDEX `held_closes_by_state`;
-- reverse: create index "held_closes_of_project" to table: "held_closes"
DROP INDEX `held_closes_of_project`;
-- reverse: create index "held_closes_list" to table: "held_closes"
DROP INDEX `held_closes_list`;
-- reverse: create index "held_closes_active" to table: "held_closes"
DROP INDEX `held_closes_active`;
-- reverse: create "held_closes" table
DROP TABLE `held_closes`;
-- reverse: add column "send_held_closes" to table: "notification_rules"
ALTER TABLE `notification_rules` DROP COLUMN `send_held_closes`;
-- reverse: add column "close_limits" to table: "deployments"
ALTER TABLE `deployments` DROP COLUMN `close_limits`;
-- reverse: add column "close_limits" to table: "projects"
ALTER TABLE `projects` DROP COLUMN `close_limits`;
