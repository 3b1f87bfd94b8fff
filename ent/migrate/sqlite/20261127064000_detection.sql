-- +goose Up
ALTER TABLE `deployments` ADD COLUMN `policies_migrated_at` integer NULL;
CREATE TABLE `detection_policies` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `product` text NOT NULL, `rulesets` json NOT NULL, `rules` json NOT NULL, `updated_at` integer NOT NULL);
CREATE UNIQUE INDEX `detection_policies_by_product` ON `detection_policies` (`deployment_id`, `product`);
CREATE TABLE `detection_exceptions` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `product` text NOT NULL, `project_id` integer NULL, `tag_id` integer NOT NULL DEFAULT (0), `rule_type` text NOT NULL, `rule` text NOT NULL, `exception_type` text NOT NULL);
CREATE INDEX `detection_exceptions_of_product` ON `detection_exceptions` (`deployment_id`, `product`, `id`);
CREATE INDEX `detection_exceptions_of_project` ON `detection_exceptions` (`deployment_id`, `project_id`);
CREATE INDEX `detection_exceptions_of_tag` ON `detection_exceptions` (`deployment_id`, `tag_id`);
CREATE TABLE `ruleboards` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `slug` text NOT NULL, `name` text NOT NULL, `product` text NOT NULL, `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
CREATE UNIQUE INDEX `ruleboards_by_slug` ON `ruleboards` (`deployment_id`, `slug`);
CREATE TABLE `ruleboard_rules` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `ruleboard_id` integer NOT NULL, `product` text NOT NULL, `rule_type` text NOT NULL, `rule` text NOT NULL, `mode` text NOT NULL, `updated_at` integer NOT NULL);
CREATE UNIQUE INDEX `ruleboard_rules_of_board` ON `ruleboard_rules` (`deployment_id`, `ruleboard_id`, `rule_type`, `rule`);
CREATE TABLE `ruleboard_projects` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `ruleboard_id` integer NOT NULL, `project_id` integer NOT NULL, `product` text NOT NULL);
CREATE UNIQUE INDEX `ruleboard_projects_of_project` ON `ruleboard_projects` (`deployment_id`, `project_id`, `product`);
CREATE INDEX `ruleboard_projects_of_board` ON `ruleboard_projects` (`deployment_id`, `ruleboard_id`, `project_id`);

-- +goose Down
DROP TABLE `ruleboard_projects`;
DROP TABLE `ruleboard_rules`;
DROP TABLE `ruleboards`;
DROP TABLE `detection_exceptions`;
DROP TABLE `detection_policies`;
ALTER TABLE `deployments` DROP COLUMN `policies_migrated_at`;
