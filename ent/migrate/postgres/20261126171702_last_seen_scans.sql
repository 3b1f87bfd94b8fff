-- +goose Up
ALTER TABLE "findings" ADD COLUMN "last_seen_scan_id" bigint NULL;

-- +goose Down
ALTER TABLE "findings" DROP COLUMN "last_seen_scan_id";
