-- +goose Up
-- create "branch_changes" table
CREATE TABLE `branch_changes` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NOT NULL, `from_ref` text NOT NULL, `to_ref` text NOT NULL, `at` integer NOT NULL);
-- create index "branch_changes_of_project" to table: "branch_changes"
CREATE INDEX `branch_changes_of_project` ON `branch_changes` (`deployment_id`, `project_id`, `id`);

-- +goose Down
-- reverse: create index "branch_changes_of_project" to table: "branch_changes"
DROP INDEX `branch_changes_of_project`;
-- reverse: create "branch_changes" table
DROP TABLE `branch_changes`;
