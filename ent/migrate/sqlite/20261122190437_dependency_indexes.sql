-- +goose Up
-- drop index "dependencies_list_lockfile" from table: "dependencies"
DROP INDEX `dependencies_list_lockfile`;
-- drop index "dependencies_list_ecosystem" from table: "dependencies"
DROP INDEX `dependencies_list_ecosystem`;
-- drop index "dependencies_list_package" from table: "dependencies"
DROP INDEX `dependencies_list_package`;
-- drop index "dependencies_list_version" from table: "dependencies"
DROP INDEX `dependencies_list_version`;
-- drop index "dependencies_list_transitivity" from table: "dependencies"
DROP INDEX `dependencies_list_transitivity`;
-- drop index "dependencies_list_license" from table: "dependencies"
DROP INDEX `dependencies_list_license`;
-- create index "dependencies_by_lockfile" to table: "dependencies"
CREATE INDEX `dependencies_by_lockfile` ON `dependencies` (`deployment_id`, `lockfile`, `id`, `project_id`);
-- create index "dependencies_by_ecosystem" to table: "dependencies"
CREATE INDEX `dependencies_by_ecosystem` ON `dependencies` (`deployment_id`, `ecosystem`, `id`, `project_id`);
-- create index "dependencies_by_package" to table: "dependencies"
CREATE INDEX `dependencies_by_package` ON `dependencies` (`deployment_id`, `package`, `id`, `project_id`, `ecosystem`, `version`);
-- create index "dependencies_by_version" to table: "dependencies"
CREATE INDEX `dependencies_by_version` ON `dependencies` (`deployment_id`, `version`, `id`, `project_id`);
-- create index "dependencies_by_transitivity" to table: "dependencies"
CREATE INDEX `dependencies_by_transitivity` ON `dependencies` (`deployment_id`, `transitivity`, `id`, `project_id`);

-- +goose Down
-- reverse: create index "dependencies_by_transitivity" to table: "dependencies"
DROP INDEX `dependencies_by_transitivity`;
-- reverse: create index "dependencies_by_version" to table: "dependencies"
DROP INDEX `dependencies_by_version`;
-- reverse: create index "dependencies_by_package" to table: "dependencies"
DROP INDEX `dependencies_by_package`;
-- reverse: create index "dependencies_by_ecosystem" to table: "dependencies"
DROP INDEX `dependencies_by_ecosystem`;
-- reverse: create index "dependencies_by_lockfile" to table: "dependencies"
DROP INDEX `dependencies_by_lockfile`;
-- reverse: drop index "dependencies_list_license" from table: "dependencies"
CREATE INDEX `dependencies_list_license` ON `dependencies` (`deployment_id`, `license`, `id`) WHERE license IS NOT NULL;
-- reverse: drop index "dependencies_list_transitivity" from table: "dependencies"
CREATE INDEX `dependencies_list_transitivity` ON `dependencies` (`deployment_id`, `transitivity`, `id`);
-- reverse: drop index "dependencies_list_version" from table: "dependencies"
CREATE INDEX `dependencies_list_version` ON `dependencies` (`deployment_id`, `version`, `id`);
-- reverse: drop index "dependencies_list_package" from table: "dependencies"
CREATE INDEX `dependencies_list_package` ON `dependencies` (`deployment_id`, `package`, `id`);
-- reverse: drop index "dependencies_list_ecosystem" from table: "dependencies"
CREATE INDEX `dependencies_list_ecosystem` ON `dependencies` (`deployment_id`, `ecosystem`, `id`);
-- reverse: drop index "dependencies_list_lockfile" from table: "dependencies"
CREATE INDEX `dependencies_list_lockfile` ON `dependencies` (`deployment_id`, `lockfile`, `id`);
