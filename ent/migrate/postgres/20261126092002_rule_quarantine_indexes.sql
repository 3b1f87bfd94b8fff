-- +goose NO TRANSACTION
-- +goose Up
-- Rules are imported while the indexes are built. What is left of one that was cut off is built again.
DROP INDEX CONCURRENTLY IF EXISTS "rule_documents_quarantined";
CREATE INDEX CONCURRENTLY "rule_documents_quarantined" ON "rule_documents" ("deployment_id", "name") WHERE (quarantined_version = version);
DROP INDEX CONCURRENTLY IF EXISTS "rule_documents_unproven";
CREATE INDEX CONCURRENTLY "rule_documents_unproven" ON "rule_documents" ("deployment_id", "product") WHERE (proven_version < version);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "rule_documents_unproven";
DROP INDEX CONCURRENTLY IF EXISTS "rule_documents_quarantined";
