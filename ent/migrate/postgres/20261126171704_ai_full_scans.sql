-- +goose Up
ALTER TABLE "projects" ADD COLUMN "ai_full_scan" boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE "projects" DROP COLUMN "ai_full_scan";
