-- +goose Up
-- add column "given" to table: "remediation_policies"
ALTER TABLE `remediation_policies` ADD COLUMN `given` blob NULL;

-- +goose Down
-- reverse: add column "given" to table: "remediation_policies"
ALTER TABLE `remediation_policies` DROP COLUMN `given`;
