-- +goose Up
-- add columns to table: "deployments"
ALTER TABLE `deployments` ADD COLUMN `pull_request_statuses` bool NOT NULL DEFAULT (false);
ALTER TABLE `deployments` ADD COLUMN `pull_request_comments` bool NOT NULL DEFAULT (false);
-- create "pull_request_feedbacks" table
CREATE TABLE `pull_request_feedbacks` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `project_id` integer NOT NULL, `number` integer NOT NULL, `marker` text NOT NULL, `commit` text NOT NULL DEFAULT (''), `statuses` json NULL, `comment_id` text NOT NULL DEFAULT (''), `comment_digest` text NOT NULL DEFAULT (''), `problem` text NOT NULL DEFAULT (''), `closed` bool NOT NULL DEFAULT (false), `claimed_until` integer NOT NULL DEFAULT (0), `updated_at` integer NOT NULL);
-- create index "pull_request_feedbacks_of_request" to table: "pull_request_feedbacks"
CREATE UNIQUE INDEX `pull_request_feedbacks_of_request` ON `pull_request_feedbacks` (`deployment_id`, `project_id`, `number`);
-- create index "pull_request_feedbacks_open" to table: "pull_request_feedbacks"
CREATE INDEX `pull_request_feedbacks_open` ON `pull_request_feedbacks` (`deployment_id`, `project_id`, `id`) WHERE NOT closed;

-- +goose Down
-- reverse: create index "pull_request_feedbacks_open" to table: "pull_request_feedbacks"
DROP INDEX `pull_request_feedbacks_open`;
-- reverse: create index "pull_request_feedbacks_of_request" to table: "pull_request_feedbacks"
DROP INDEX `pull_request_feedbacks_of_request`;
-- reverse: create "pull_request_feedbacks" table
DROP TABLE `pull_request_feedbacks`;
-- reverse: add columns to table: "deployments"
ALTER TABLE `deployments` DROP COLUMN `pull_request_comments`;
ALTER TABLE `deployments` DROP COLUMN `pull_request_statuses`;
