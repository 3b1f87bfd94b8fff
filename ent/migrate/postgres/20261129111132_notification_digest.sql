-- +goose Up
-- modify "notification_events" table
ALTER TABLE "notification_events" ADD COLUMN "digest" bytea NULL;

-- +goose Down
-- reverse: modify "notification_events" table
ALTER TABLE "notification_events" DROP COLUMN "digest";
