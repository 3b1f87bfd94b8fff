-- +goose Up
-- add column "pull_request_line_comments" to table: "deployments"
ALTER TABLE `deployments` ADD COLUMN `pull_request_line_comments` integer NOT NULL DEFAULT (0);
-- add column "line_comments" to table: "pull_request_feedbacks"
ALTER TABLE `pull_request_feedbacks` ADD COLUMN `line_comments` blob NULL;

-- +goose Down
-- reverse: add column "line_comments" to table: "pull_request_feedbacks"
ALTER TABLE `pull_request_feedbacks` DROP COLUMN `line_comments`;
-- reverse: add column "pull_request_line_comments" to table: "deployments"
ALTER TABLE `deployments` DROP COLUMN `pull_request_line_comments`;
