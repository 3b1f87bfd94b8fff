-- +goose Up
-- modify "scan_coverages" table
ALTER TABLE "scan_coverages" ADD COLUMN "commit_time" bigint NULL;

-- +goose Down
-- reverse: modify "scan_coverages" table
ALTER TABLE "scan_coverages" DROP COLUMN "commit_time";
