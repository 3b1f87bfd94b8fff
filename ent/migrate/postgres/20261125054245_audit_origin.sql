-- +goose Up
-- modify "audit_heads" table
ALTER TABLE "audit_heads" ADD COLUMN "origin" bytea NULL;

-- +goose Down
-- reverse: modify "audit_heads" table
ALTER TABLE "audit_heads" DROP COLUMN "origin";
