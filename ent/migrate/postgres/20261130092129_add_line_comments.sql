-- +goose Up
-- modify "deployments" table
ALTER TABLE "deployments" ADD COLUMN "pull_request_line_comments" integer NOT NULL DEFAULT 0;
-- modify "pull_request_feedbacks" table
ALTER TABLE "pull_request_feedbacks" ADD COLUMN "line_comments" bytea NULL;

-- +goose Down
-- reverse: modify "pull_request_feedbacks" table
ALTER TABLE "pull_request_feedbacks" DROP COLUMN "line_comments";
-- reverse: modify "deployments" table
ALTER TABLE "deployments" DROP COLUMN "pull_request_line_comments";
