-- +goose Up
-- The table of coverages is not rewritten: it has a row for each scan, with all of its files.
ALTER TABLE `scan_coverages` ADD COLUMN `ran_at` integer NULL;
CREATE INDEX `scan_coverages_by_run` ON `scan_coverages` (`deployment_id`, `project_id`, `ref`, `tool`, `analysis_category`, `ran_at`);

-- +goose Down
DROP INDEX `scan_coverages_by_run`;
ALTER TABLE `scan_coverages` DROP COLUMN `ran_at`;
