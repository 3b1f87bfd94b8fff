-- +goose Up
-- create "report_formats" table
CREATE TABLE `report_formats` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `name` text NOT NULL, `mapping` text NOT NULL, `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "report_formats_by_name" to table: "report_formats"
CREATE UNIQUE INDEX `report_formats_by_name` ON `report_formats` (`deployment_id`, `name`);

-- +goose Down
-- reverse: create index "report_formats_by_name" to table: "report_formats"
DROP INDEX `report_formats_by_name`;
-- reverse: create "report_formats" table
DROP TABLE `report_formats`;
