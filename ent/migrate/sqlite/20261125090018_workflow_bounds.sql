-- +goose Up
-- create index "workflow_attempts_active" to table: "workflow_attempts"
CREATE INDEX `workflow_attempts_active` ON `workflow_attempts` (`deployment_id`, `run_id`, `id`) WHERE finished_at IS NULL;
-- create index "workflow_attempts_by_turn" to table: "workflow_attempts"
CREATE INDEX `workflow_attempts_by_turn` ON `workflow_attempts` (`deployment_id`, `run_id`, `id`) WHERE external AND finished_at IS NULL;
-- add columns to table: "workflow_runs"
ALTER TABLE `workflow_runs` ADD COLUMN `requested_ref` text NULL;
ALTER TABLE `workflow_runs` ADD COLUMN `planned_tasks` integer NOT NULL DEFAULT (0);

-- +goose Down
-- reverse: add columns to table: "workflow_runs"
ALTER TABLE `workflow_runs` DROP COLUMN `planned_tasks`;
ALTER TABLE `workflow_runs` DROP COLUMN `requested_ref`;
-- reverse: create index "workflow_attempts_by_turn" to table: "workflow_attempts"
DROP INDEX `workflow_attempts_by_turn`;
-- reverse: create index "workflow_attempts_active" to table: "workflow_attempts"
DROP INDEX `workflow_attempts_active`;
