-- +goose Up
-- modify "workflow_runs" table
ALTER TABLE "workflow_runs" ADD COLUMN "requested_ref" character varying NULL, ADD COLUMN "planned_tasks" bigint NOT NULL DEFAULT 0;

-- +goose Down
-- reverse: modify "workflow_runs" table
ALTER TABLE "workflow_runs" DROP COLUMN "planned_tasks", DROP COLUMN "requested_ref";
