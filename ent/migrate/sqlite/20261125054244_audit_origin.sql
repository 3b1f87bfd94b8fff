-- +goose Up
-- add column "origin" to table: "audit_heads"
ALTER TABLE `audit_heads` ADD COLUMN `origin` blob NULL;

-- +goose Down
-- reverse: add column "origin" to table: "audit_heads"
ALTER TABLE `audit_heads` DROP COLUMN `origin`;
