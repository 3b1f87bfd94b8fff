-- +goose Up
-- modify "scan_coverages" table
ALTER TABLE "scan_coverages" ADD COLUMN "ran_at" bigint NULL;

-- +goose Down
-- reverse: modify "scan_coverages" table
ALTER TABLE "scan_coverages" DROP COLUMN "ran_at";
