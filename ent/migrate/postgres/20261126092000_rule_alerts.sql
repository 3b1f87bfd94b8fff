-- +goose Up
-- One table in a transaction: uploads lock these tables in another order.
-- modify "notification_rules" table
ALTER TABLE "notification_rules" ADD COLUMN "send_rule_alerts" boolean NOT NULL DEFAULT false;

-- +goose Down
-- reverse: modify "notification_rules" table
ALTER TABLE "notification_rules" DROP COLUMN "send_rule_alerts";
