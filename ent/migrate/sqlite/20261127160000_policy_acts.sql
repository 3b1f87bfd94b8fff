-- +goose Up
CREATE TABLE `policy_runs` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `policy_id` integer NOT NULL, `cause` text NOT NULL, `cause_id` integer NOT NULL, `evaluated` integer NOT NULL, `matched` integer NOT NULL, `content` blob NOT NULL, `sent` integer NOT NULL, `at` integer NOT NULL);
CREATE UNIQUE INDEX `policy_runs_once` ON `policy_runs` (`deployment_id`, `policy_id`, `cause`, `cause_id`);
CREATE INDEX `policy_runs_list` ON `policy_runs` (`deployment_id`, `policy_id`, `id`);
CREATE INDEX `policy_runs_by_time` ON `policy_runs` (`deployment_id`, `policy_id`, `at`);
CREATE INDEX `policy_runs_by_age` ON `policy_runs` (`at`);
CREATE TABLE `policy_acts` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NOT NULL, `policy_id` integer NOT NULL, `action` text NOT NULL, `issue_type` text NOT NULL, `fingerprint` text NOT NULL, `version` text NOT NULL, `at` integer NOT NULL);
CREATE UNIQUE INDEX `policy_acts_once` ON `policy_acts` (`deployment_id`, `project_id`, `fingerprint`, `policy_id`, `action`, `issue_type`);
CREATE INDEX `policy_acts_of_policy` ON `policy_acts` (`deployment_id`, `policy_id`);

-- +goose Down
DROP TABLE `policy_acts`;
DROP TABLE `policy_runs`;
