-- +goose Up
-- add column "handed_over_at" to table: "tokens"
ALTER TABLE `tokens` ADD COLUMN `handed_over_at` integer NULL;
-- add column "ids" to table: "audit_heads"
ALTER TABLE `audit_heads` ADD COLUMN `ids` blob NULL;

-- +goose Down
-- reverse: add column "ids" to table: "audit_heads"
ALTER TABLE `audit_heads` DROP COLUMN `ids`;
-- reverse: add column "handed_over_at" to table: "tokens"
ALTER TABLE `tokens` DROP COLUMN `handed_over_at`;
