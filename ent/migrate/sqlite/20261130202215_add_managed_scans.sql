-- +goose Up
-- add column "next_full_scan_at" to table: "projects"
ALTER TABLE `projects` ADD COLUMN `next_full_scan_at` integer NULL;
-- projects that have full scans already begin within a day, spread over it
UPDATE `projects` SET `next_full_scan_at` = CAST(strftime('%s', 'now') AS integer) * 1000000 + (`id` % 1440) * 60000000 WHERE `managed_full_scan` AND `archived_at` IS NULL;
-- create index "projects_by_next_full_scan" to table: "projects"
CREATE INDEX `projects_by_next_full_scan` ON `projects` (`next_full_scan_at`) WHERE managed_full_scan;
-- create "managed_scans" table
CREATE TABLE `managed_scans` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `scan_id` integer NOT NULL, `project_id` integer NOT NULL, `config_id` integer NOT NULL, `cause` text NOT NULL, `retry_of` integer NULL, `job_id` integer NOT NULL DEFAULT (0), `waiting_for` text NULL, `lease_until` integer NOT NULL DEFAULT (0), `claims` integer NOT NULL DEFAULT (0), `problem` text NOT NULL DEFAULT (''), `log` text NOT NULL DEFAULT (''), `created_at` integer NOT NULL, `begun_at` integer NULL);
-- create index "managed_scans_by_scan" to table: "managed_scans"
CREATE UNIQUE INDEX `managed_scans_by_scan` ON `managed_scans` (`deployment_id`, `scan_id`);
-- create index "managed_scans_waiting" to table: "managed_scans"
CREATE UNIQUE INDEX `managed_scans_waiting` ON `managed_scans` (`deployment_id`, `project_id`, `waiting_for`) WHERE waiting_for IS NOT NULL;
-- create index "managed_scans_leased" to table: "managed_scans"
CREATE INDEX `managed_scans_leased` ON `managed_scans` (`lease_until`) WHERE lease_until > 0;
-- create "managed_scan_settings" table
CREATE TABLE `managed_scan_settings` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `fail_open` bool NOT NULL, `fail_open_seconds` integer NOT NULL DEFAULT (0), `updated_at` integer NOT NULL);
-- create index "managed_scan_settings_one" to table: "managed_scan_settings"
CREATE UNIQUE INDEX `managed_scan_settings_one` ON `managed_scan_settings` (`deployment_id`);

-- +goose Down
-- reverse: create index "managed_scan_settings_one" to table: "managed_scan_settings"
DROP INDEX `managed_scan_settings_one`;
-- reverse: create "managed_scan_settings" table
DROP TABLE `managed_scan_settings`;
-- reverse: create index "managed_scans_leased" to table: "managed_scans"
DROP INDEX `managed_scans_leased`;
-- reverse: create index "managed_scans_waiting" to table: "managed_scans"
DROP INDEX `managed_scans_waiting`;
-- reverse: create index "managed_scans_by_scan" to table: "managed_scans"
DROP INDEX `managed_scans_by_scan`;
-- reverse: create "managed_scans" table
DROP TABLE `managed_scans`;
-- reverse: create index "projects_by_next_full_scan" to table: "projects"
DROP INDEX `projects_by_next_full_scan`;
-- reverse: add column "next_full_scan_at" to table: "projects"
ALTER TABLE `projects` DROP COLUMN `next_full_scan_at`;
