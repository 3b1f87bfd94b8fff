-- +goose Up
-- One table in a transaction: uploads lock these tables in another order.
-- modify "projects" table
ALTER TABLE "projects" ADD COLUMN "close_limits" bytea NULL;

-- +goose Down
-- reverse: modify "projects" table
ALTER TABLE "projects" DROP COLUMN "close_limits";
