-- +goose Up
-- modify "memberships" table
ALTER TABLE "memberships" ADD COLUMN "from_claims" boolean NULL;
-- modify "users" table
ALTER TABLE "users" ADD COLUMN "claims_at" bigint NULL;

-- +goose Down
-- reverse: modify "users" table
ALTER TABLE "users" DROP COLUMN "claims_at";
-- reverse: modify "memberships" table
ALTER TABLE "memberships" DROP COLUMN "from_claims";
