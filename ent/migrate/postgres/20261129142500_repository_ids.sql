-- +goose Up
-- modify "projects" table
ALTER TABLE "projects" ADD COLUMN "repository_id" character varying NULL, ADD COLUMN "host_archived" boolean NULL, ADD COLUMN "left_host_at" bigint NULL;

-- +goose Down
-- reverse: modify "projects" table
ALTER TABLE "projects" DROP COLUMN "left_host_at", DROP COLUMN "host_archived", DROP COLUMN "repository_id";
