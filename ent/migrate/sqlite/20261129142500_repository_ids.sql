-- +goose Up
ALTER TABLE `projects` ADD COLUMN `repository_id` text NULL;
ALTER TABLE `projects` ADD COLUMN `host_archived` bool NULL;
ALTER TABLE `projects` ADD COLUMN `left_host_at` integer NULL;
CREATE INDEX `projects_by_repository_id` ON `projects` (`deployment_id`, `repository_id`) WHERE repository_id IS NOT NULL;
CREATE INDEX `projects_left_host` ON `projects` (`deployment_id`, `left_host_at`, `id`) WHERE left_host_at IS NOT NULL;

-- +goose Down
DROP INDEX `projects_left_host`;
DROP INDEX `projects_by_repository_id`;
ALTER TABLE `projects` DROP COLUMN `left_host_at`;
ALTER TABLE `projects` DROP COLUMN `host_archived`;
ALTER TABLE `projects` DROP COLUMN `repository_id`;
