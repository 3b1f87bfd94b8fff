-- +goose Up
CREATE TABLE `automations` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `name` text NOT NULL, `trigger` text NOT NULL, `active` bool NOT NULL, `content` blob NOT NULL, `created_by` text NOT NULL, `updated_by` text NOT NULL, `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
CREATE UNIQUE INDEX `automations_by_name` ON `automations` (`deployment_id`, `name`);
CREATE TABLE `automation_runs` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `automation_id` integer NOT NULL, `cause` text NOT NULL, `cause_id` integer NOT NULL, `evaluated` integer NOT NULL, `matched` integer NOT NULL, `content` blob NOT NULL, `sent` integer NOT NULL, `at` integer NOT NULL);
CREATE UNIQUE INDEX `automation_runs_once` ON `automation_runs` (`deployment_id`, `automation_id`, `cause`, `cause_id`);
CREATE INDEX `automation_runs_list` ON `automation_runs` (`deployment_id`, `automation_id`, `id`);
CREATE INDEX `automation_runs_by_time` ON `automation_runs` (`deployment_id`, `automation_id`, `at`);
CREATE INDEX `automation_runs_by_age` ON `automation_runs` (`at`);

-- +goose Down
DROP TABLE `automation_runs`;
DROP TABLE `automations`;
