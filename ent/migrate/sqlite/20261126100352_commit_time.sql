-- +goose Up
-- The table of coverages is not rewritten: it has a row for each scan, with all of its files.
ALTER TABLE `scans` ADD COLUMN `commit_time` integer NULL;
ALTER TABLE `scan_coverages` ADD COLUMN `commit_time` integer NULL;
CREATE INDEX `scan_coverages_by_commit` ON `scan_coverages` (`deployment_id`, `project_id`, `ref`, `tool`, `analysis_category`, `commit_time`);

-- +goose Down
DROP INDEX `scan_coverages_by_commit`;
ALTER TABLE `scan_coverages` DROP COLUMN `commit_time`;
ALTER TABLE `scans` DROP COLUMN `commit_time`;
