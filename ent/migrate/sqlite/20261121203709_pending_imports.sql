-- +goose Up
-- create "pending_imports" table
CREATE TABLE `pending_imports` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `relevant_since` integer NOT NULL);
-- create index "pending_imports_by_place" to table: "pending_imports"
CREATE INDEX `pending_imports_by_place` ON `pending_imports` (`deployment_id`, `relevant_since`);

-- +goose Down
-- reverse: create index "pending_imports_by_place" to table: "pending_imports"
DROP INDEX `pending_imports_by_place`;
-- reverse: create "pending_imports" table
DROP TABLE `pending_imports`;
