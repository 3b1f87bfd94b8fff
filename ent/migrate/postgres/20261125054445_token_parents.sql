-- +goose Up
-- modify "notification_webhooks" table
ALTER TABLE "notification_webhooks" ADD COLUMN "sealed_url" bytea NULL;
-- modify "tokens" table
ALTER TABLE "tokens" ADD COLUMN "parent_id" bigint NULL;

-- +goose Down
-- reverse: modify "tokens" table
ALTER TABLE "tokens" DROP COLUMN "parent_id";
-- reverse: modify "notification_webhooks" table
ALTER TABLE "notification_webhooks" DROP COLUMN "sealed_url";
