-- +goose Up
-- One table in a transaction: uploads lock these tables in another order.
-- modify "deployments" table
ALTER TABLE "deployments" ADD COLUMN "close_limits" bytea NULL;

-- +goose Down
-- reverse: modify "deployments" table
ALTER TABLE "deployments" DROP COLUMN "close_limits";
