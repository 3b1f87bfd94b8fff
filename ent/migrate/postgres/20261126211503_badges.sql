-- +goose Up
ALTER TABLE "projects" ADD COLUMN "ignored_files" jsonb NULL;
ALTER TABLE "projects" ADD COLUMN "badge_key" character varying NULL;

-- +goose Down
ALTER TABLE "projects" DROP COLUMN "badge_key";
ALTER TABLE "projects" DROP COLUMN "ignored_files";
