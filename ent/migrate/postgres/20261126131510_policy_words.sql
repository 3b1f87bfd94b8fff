-- +goose Up
-- modify "remediation_policies" table
ALTER TABLE "remediation_policies" ADD COLUMN "given" bytea NULL;

-- +goose Down
-- reverse: modify "remediation_policies" table
ALTER TABLE "remediation_policies" DROP COLUMN "given";
