-- +goose Up
ALTER TABLE "notification_rules" ADD COLUMN "send_freshness" boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE "notification_rules" DROP COLUMN "send_freshness";
