-- +goose Up
-- add column "from_claims" to table: "memberships"
ALTER TABLE `memberships` ADD COLUMN `from_claims` bool NULL;
-- add column "claims_at" to table: "users"
ALTER TABLE `users` ADD COLUMN `claims_at` integer NULL;

-- +goose Down
-- reverse: add column "claims_at" to table: "users"
ALTER TABLE `users` DROP COLUMN `claims_at`;
-- reverse: add column "from_claims" to table: "memberships"
ALTER TABLE `memberships` DROP COLUMN `from_claims`;
