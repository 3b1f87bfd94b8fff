-- +goose Up
-- add column "details" to table: "advisories"
ALTER TABLE `advisories` ADD COLUMN `details` blob NULL;
-- create "advisory_changes" table
CREATE TABLE `advisory_changes` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `advisory_id` integer NOT NULL);
-- create index "advisory_changes_list" to table: "advisory_changes"
CREATE INDEX `advisory_changes_list` ON `advisory_changes` (`deployment_id`, `id`);

-- +goose Down
-- reverse: create index "advisory_changes_list" to table: "advisory_changes"
DROP INDEX `advisory_changes_list`;
-- reverse: create "advisory_changes" table
DROP TABLE `advisory_changes`;
-- reverse: add column "details" to table: "advisories"
ALTER TABLE `advisories` DROP COLUMN `details`;
