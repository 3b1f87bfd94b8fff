-- +goose Up
-- create "tickets" table
CREATE TABLE `tickets` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `instance_id` integer NOT NULL, `project` text NOT NULL, `marker` text NOT NULL, `key` text NOT NULL DEFAULT (''), `url` text NOT NULL DEFAULT (''), `open` bool NOT NULL DEFAULT (true), `closed_here` bool NOT NULL DEFAULT (false), `checked_at` integer NOT NULL DEFAULT (0), `claimed_until` integer NULL, `created_at` integer NOT NULL);
-- create index "tickets_by_key" to table: "tickets"
CREATE UNIQUE INDEX `tickets_by_key` ON `tickets` (`deployment_id`, `instance_id`, `key`) WHERE claimed_until IS NULL;
-- create index "tickets_by_check" to table: "tickets"
CREATE INDEX `tickets_by_check` ON `tickets` (`deployment_id`, `instance_id`, `checked_at`, `id`) WHERE claimed_until IS NULL;
-- create "ticket_links" table
CREATE TABLE `ticket_links` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `ticket_id` integer NOT NULL, `project_id` integer NOT NULL, `finding_id` integer NOT NULL);
-- create index "ticket_links_of_finding" to table: "ticket_links"
CREATE UNIQUE INDEX `ticket_links_of_finding` ON `ticket_links` (`deployment_id`, `finding_id`);
-- create index "ticket_links_of_ticket" to table: "ticket_links"
CREATE INDEX `ticket_links_of_ticket` ON `ticket_links` (`deployment_id`, `ticket_id`, `finding_id`);
-- create index "ticket_links_of_project" to table: "ticket_links"
CREATE INDEX `ticket_links_of_project` ON `ticket_links` (`deployment_id`, `project_id`, `id`);
-- create "ticketing_instances" table
CREATE TABLE `ticketing_instances` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `kind` text NOT NULL, `base_url` text NOT NULL, `account` text NOT NULL DEFAULT (''), `token` blob NULL, `refused` bool NOT NULL DEFAULT (false), `project` text NOT NULL DEFAULT (''), `issue_type` text NOT NULL DEFAULT (''), `fields` blob NULL, `labels` json NULL, `mappings` json NULL, `close_at` text NOT NULL DEFAULT (''), `transition` text NOT NULL DEFAULT (''), `closed_state` text NOT NULL DEFAULT (''), `closed_reason` text NOT NULL DEFAULT (''), `automatic` json NULL, `automatic_after` integer NOT NULL DEFAULT (0), `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "ticketing_instances_of_deployment" to table: "ticketing_instances"
CREATE INDEX `ticketing_instances_of_deployment` ON `ticketing_instances` (`deployment_id`, `id`);

-- +goose Down
-- reverse: create index "ticketing_instances_of_deployment" to table: "ticketing_instances"
DROP INDEX `ticketing_instances_of_deployment`;
-- reverse: create "ticketing_instances" table
DROP TABLE `ticketing_instances`;
-- reverse: create index "ticket_links_of_project" to table: "ticket_links"
DROP INDEX `ticket_links_of_project`;
-- reverse: create index "ticket_links_of_ticket" to table: "ticket_links"
DROP INDEX `ticket_links_of_ticket`;
-- reverse: create index "ticket_links_of_finding" to table: "ticket_links"
DROP INDEX `ticket_links_of_finding`;
-- reverse: create "ticket_links" table
DROP TABLE `ticket_links`;
-- reverse: create index "tickets_by_check" to table: "tickets"
DROP INDEX `tickets_by_check`;
-- reverse: create index "tickets_by_key" to table: "tickets"
DROP INDEX `tickets_by_key`;
-- reverse: create "tickets" table
DROP TABLE `tickets`;
