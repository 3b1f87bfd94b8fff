-- +goose Up
-- modify "rule_documents" table
ALTER TABLE "rule_documents" ADD COLUMN "proven_version" integer NOT NULL DEFAULT 0, ADD COLUMN "quarantined_version" integer NOT NULL DEFAULT 0, ADD COLUMN "quarantine_reason" character varying NOT NULL DEFAULT '', ADD COLUMN "quarantine_scan_id" bigint NOT NULL DEFAULT 0, ADD COLUMN "quarantined_at" bigint NULL;

-- +goose Down
-- reverse: modify "rule_documents" table
ALTER TABLE "rule_documents" DROP COLUMN "quarantined_at", DROP COLUMN "quarantine_scan_id", DROP COLUMN "quarantine_reason", DROP COLUMN "quarantined_version", DROP COLUMN "proven_version";
