-- +goose Up
-- modify "rules" table
ALTER TABLE "rules" ADD COLUMN "secret_type" character varying NULL;

-- +goose Down
-- reverse: modify "rules" table
ALTER TABLE "rules" DROP COLUMN "secret_type";
