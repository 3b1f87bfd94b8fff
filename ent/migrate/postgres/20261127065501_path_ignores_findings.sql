-- +goose Up
ALTER TABLE "findings" ADD COLUMN "ignored_by_pattern" character varying NULL;

-- +goose Down
ALTER TABLE "findings" DROP COLUMN "ignored_by_pattern";
