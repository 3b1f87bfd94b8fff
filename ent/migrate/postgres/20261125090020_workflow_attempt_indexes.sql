-- +goose NO TRANSACTION
-- +goose Up
-- Runs go on while they are built. What is left of one that was cut off is built again.
DROP INDEX CONCURRENTLY IF EXISTS "workflow_attempts_active";
CREATE INDEX CONCURRENTLY "workflow_attempts_active" ON "workflow_attempts" ("deployment_id", "run_id", "id") WHERE (finished_at IS NULL);
DROP INDEX CONCURRENTLY IF EXISTS "workflow_attempts_by_turn";
CREATE INDEX CONCURRENTLY "workflow_attempts_by_turn" ON "workflow_attempts" ("deployment_id", "run_id", "id") WHERE (external AND (finished_at IS NULL));

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS "workflow_attempts_by_turn";
DROP INDEX CONCURRENTLY IF EXISTS "workflow_attempts_active";
