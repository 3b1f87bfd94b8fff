-- +goose Up
ALTER TABLE "deployments" ADD COLUMN "policies_migrated_at" bigint NULL;

-- +goose Down
ALTER TABLE "deployments" DROP COLUMN "policies_migrated_at";
