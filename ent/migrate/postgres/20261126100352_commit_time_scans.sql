-- +goose Up
-- modify "scans" table
ALTER TABLE "scans" ADD COLUMN "commit_time" bigint NULL;

-- +goose Down
-- reverse: modify "scans" table
ALTER TABLE "scans" DROP COLUMN "commit_time";
