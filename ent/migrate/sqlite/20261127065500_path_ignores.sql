-- +goose Up
ALTER TABLE `findings` ADD COLUMN `ignored_by_pattern` text NULL;
ALTER TABLE `projects` ADD COLUMN `product_ignored_files` json NULL;
CREATE INDEX `findings_ignored_by_pattern` ON `findings` (`deployment_id`, `id`) WHERE ignored_by_pattern IS NOT NULL;
CREATE TABLE `path_ignores` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `product` text NOT NULL, `patterns` json NOT NULL, `updated_at` integer NOT NULL);
CREATE UNIQUE INDEX `path_ignores_by_product` ON `path_ignores` (`deployment_id`, `product`);

-- +goose Down
DROP TABLE `path_ignores`;
DROP INDEX `findings_ignored_by_pattern`;
ALTER TABLE `projects` DROP COLUMN `product_ignored_files`;
ALTER TABLE `findings` DROP COLUMN `ignored_by_pattern`;
