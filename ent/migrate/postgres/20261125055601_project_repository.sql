-- +goose Up
-- modify "projects" table
ALTER TABLE "projects" ADD COLUMN "repository_url" character varying NOT NULL DEFAULT '', ADD COLUMN "bound_by" character varying NOT NULL DEFAULT '', ADD COLUMN "creator_id" bigint NULL;
-- what a synchronisation wrote is bound to what it wrote: nothing else sets a type of host
UPDATE "projects" SET "repository_url" = "url" WHERE "scm_type" <> 'SCM_TYPE_UNKNOWN';
UPDATE "projects" SET "bound_by" = 'sync' WHERE "scm_type" <> 'SCM_TYPE_UNKNOWN';

-- +goose Down
-- reverse: modify "projects" table
ALTER TABLE "projects" DROP COLUMN "creator_id", DROP COLUMN "bound_by", DROP COLUMN "repository_url";
