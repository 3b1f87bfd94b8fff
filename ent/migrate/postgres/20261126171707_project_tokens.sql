-- +goose Up
ALTER TABLE "tokens" ADD COLUMN "project_id" bigint NULL;

-- +goose Down
ALTER TABLE "tokens" DROP COLUMN "project_id";
