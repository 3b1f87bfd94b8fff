-- +goose Up
-- modify "audit_heads" table
ALTER TABLE "audit_heads" ADD COLUMN "ids" bytea NULL;
-- modify "tokens" table
ALTER TABLE "tokens" ADD COLUMN "handed_over_at" bigint NULL;

-- +goose Down
-- reverse: modify "tokens" table
ALTER TABLE "tokens" DROP COLUMN "handed_over_at";
-- reverse: modify "audit_heads" table
ALTER TABLE "audit_heads" DROP COLUMN "ids";
