-- +goose Up
-- modify "deliveries" table
ALTER TABLE "deliveries" ADD COLUMN "delivered_to" jsonb NULL;
-- modify "notification_rules" table
ALTER TABLE "notification_rules" ADD COLUMN "refused_recipients" jsonb NULL;

-- +goose Down
-- reverse: modify "notification_rules" table
ALTER TABLE "notification_rules" DROP COLUMN "refused_recipients";
-- reverse: modify "deliveries" table
ALTER TABLE "deliveries" DROP COLUMN "delivered_to";
