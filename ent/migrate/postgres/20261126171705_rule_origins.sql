-- +goose Up
ALTER TABLE "rules" ADD COLUMN "origin" character varying NULL;

-- +goose Down
ALTER TABLE "rules" DROP COLUMN "origin";
