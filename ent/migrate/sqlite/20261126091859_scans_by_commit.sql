-- +goose Up
-- create index "scans_of_commit" to table: "scans"
CREATE INDEX `scans_of_commit` ON `scans` (`deployment_id`, `project_id`, `commit`, `id`);

-- +goose Down
-- reverse: create index "scans_of_commit" to table: "scans"
DROP INDEX `scans_of_commit`;
