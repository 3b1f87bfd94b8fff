-- +goose Up
ALTER TABLE "scans" ADD COLUMN "pull_request" bigint NULL;

-- +goose Down
ALTER TABLE "scans" DROP COLUMN "pull_request";
