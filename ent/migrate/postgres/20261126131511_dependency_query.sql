-- +goose Up
-- Dependency queries are on unless a person turned them off, which the audit trail tells.
UPDATE "deployments" SET "dependency_query" = true WHERE NOT "dependency_query" AND NOT EXISTS (
  SELECT 1 FROM "audit_entries" WHERE "audit_entries"."deployment_id" = "deployments"."id"
    AND "audit_entries"."method" = '/palisade.deployments.v1.DeploymentService/UpdateDeploymentHasDependencyQuery'
    AND "audit_entries"."code" = 'OK'
);

-- +goose Down
SELECT 1;
