-- +goose Up
ALTER TABLE "notification_rules" ADD COLUMN "send_findings" boolean NOT NULL DEFAULT true;
ALTER TABLE "notification_rules" ADD COLUMN "send_report" bytea NULL;
ALTER TABLE "notification_rules" ADD COLUMN "next_report_at" bigint NULL;
ALTER TABLE "notification_rules" ADD COLUMN "last_report_at" bigint NULL;

-- +goose Down
ALTER TABLE "notification_rules" DROP COLUMN "last_report_at";
ALTER TABLE "notification_rules" DROP COLUMN "next_report_at";
ALTER TABLE "notification_rules" DROP COLUMN "send_report";
ALTER TABLE "notification_rules" DROP COLUMN "send_findings";
