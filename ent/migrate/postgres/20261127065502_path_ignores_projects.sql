-- +goose Up
ALTER TABLE "projects" ADD COLUMN "product_ignored_files" jsonb NULL;

-- +goose Down
ALTER TABLE "projects" DROP COLUMN "product_ignored_files";
