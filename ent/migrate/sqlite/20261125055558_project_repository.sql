-- +goose Up
-- modify "projects" table
ALTER TABLE `projects` ADD COLUMN `repository_url` text NOT NULL DEFAULT ('');
ALTER TABLE `projects` ADD COLUMN `bound_by` text NOT NULL DEFAULT ('');
ALTER TABLE `projects` ADD COLUMN `creator_id` integer NULL;
-- what a synchronisation wrote is bound to what it wrote: nothing else sets a type of host
UPDATE `projects` SET `repository_url` = `url` WHERE `scm_type` <> 'SCM_TYPE_UNKNOWN';
UPDATE `projects` SET `bound_by` = 'sync' WHERE `scm_type` <> 'SCM_TYPE_UNKNOWN';

-- +goose Down
-- reverse: modify "projects" table
ALTER TABLE `projects` DROP COLUMN `creator_id`;
ALTER TABLE `projects` DROP COLUMN `bound_by`;
ALTER TABLE `projects` DROP COLUMN `repository_url`;
