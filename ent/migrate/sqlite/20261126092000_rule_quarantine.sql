-- +goose Up
-- add column "send_rule_alerts" to table: "notification_rules"
ALTER TABLE `notification_rules` ADD COLUMN `send_rule_alerts` bool NOT NULL DEFAULT false;
-- add columns to table: "rule_documents"
ALTER TABLE `rule_documents` ADD COLUMN `proven_version` integer NOT NULL DEFAULT 0;
ALTER TABLE `rule_documents` ADD COLUMN `quarantined_version` integer NOT NULL DEFAULT 0;
ALTER TABLE `rule_documents` ADD COLUMN `quarantine_reason` text NOT NULL DEFAULT '';
ALTER TABLE `rule_documents` ADD COLUMN `quarantine_scan_id` integer NOT NULL DEFAULT 0;
ALTER TABLE `rule_documents` ADD COLUMN `quarantined_at` integer NULL;
-- create index "rule_documents_unproven" to table: "rule_documents"
CREATE INDEX `rule_documents_unproven` ON `rule_documents` (`deployment_id`, `product`) WHERE proven_version < version;
-- create index "rule_documents_quarantined" to table: "rule_documents"
CREATE INDEX `rule_documents_quarantined` ON `rule_documents` (`deployment_id`, `name`) WHERE quarantined_version = version;

-- +goose Down
DROP INDEX `rule_documents_quarantined`;
DROP INDEX `rule_documents_unproven`;
ALTER TABLE `rule_documents` DROP COLUMN `quarantined_at`;
ALTER TABLE `rule_documents` DROP COLUMN `quarantine_scan_id`;
ALTER TABLE `rule_documents` DROP COLUMN `quarantine_reason`;
ALTER TABLE `rule_documents` DROP COLUMN `quarantined_version`;
ALTER TABLE `rule_documents` DROP COLUMN `proven_version`;
ALTER TABLE `notification_rules` DROP COLUMN `send_rule_alerts`;
