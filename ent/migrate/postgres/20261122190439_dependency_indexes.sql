-- +goose NO TRANSACTION
-- +goose Up
-- Scans write dependencies while they are built. What is left of one that was cut off is built again. Those that they replace go
-- last.
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_by_ecosystem";
CREATE INDEX CONCURRENTLY "dependencies_by_ecosystem" ON "dependencies" ("deployment_id", "ecosystem", "id", "project_id");
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_by_lockfile";
CREATE INDEX CONCURRENTLY "dependencies_by_lockfile" ON "dependencies" ("deployment_id", "lockfile", "id", "project_id");
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_by_package";
CREATE INDEX CONCURRENTLY "dependencies_by_package" ON "dependencies" ("deployment_id", "package", "id", "project_id", "ecosystem", "version");
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_by_transitivity";
CREATE INDEX CONCURRENTLY "dependencies_by_transitivity" ON "dependencies" ("deployment_id", "transitivity", "id", "project_id");
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_by_version";
CREATE INDEX CONCURRENTLY "dependencies_by_version" ON "dependencies" ("deployment_id", "version", "id", "project_id");
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_list_ecosystem";
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_list_license";
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_list_lockfile";
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_list_package";
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_list_transitivity";
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_list_version";

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_list_ecosystem";
CREATE INDEX CONCURRENTLY "dependencies_list_ecosystem" ON "dependencies" ("deployment_id", "ecosystem", "id");
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_list_license";
CREATE INDEX CONCURRENTLY "dependencies_list_license" ON "dependencies" ("deployment_id", "license", "id") WHERE (license IS NOT NULL);
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_list_lockfile";
CREATE INDEX CONCURRENTLY "dependencies_list_lockfile" ON "dependencies" ("deployment_id", "lockfile", "id");
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_list_package";
CREATE INDEX CONCURRENTLY "dependencies_list_package" ON "dependencies" ("deployment_id", "package", "id");
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_list_transitivity";
CREATE INDEX CONCURRENTLY "dependencies_list_transitivity" ON "dependencies" ("deployment_id", "transitivity", "id");
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_list_version";
CREATE INDEX CONCURRENTLY "dependencies_list_version" ON "dependencies" ("deployment_id", "version", "id");
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_by_ecosystem";
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_by_lockfile";
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_by_package";
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_by_transitivity";
DROP INDEX CONCURRENTLY IF EXISTS "dependencies_by_version";
