-- +goose Up
-- disable the enforcement of foreign-keys constraints
PRAGMA foreign_keys = off;
-- create "new_audit_entries" table
CREATE TABLE `new_audit_entries` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `sequence` integer NOT NULL DEFAULT (0), `actor_kind` text NOT NULL, `actor_id` integer NOT NULL, `actor_name` text NOT NULL DEFAULT (''), `user_id` integer NOT NULL DEFAULT (0), `method` text NOT NULL, `code` text NOT NULL, `request` text NOT NULL, `request_id` text NOT NULL, `remote` text NOT NULL, `changes` json NULL, `at` integer NOT NULL, `previous_hash` blob NULL, `hash` blob NULL);
-- copy rows from old table "audit_entries" to new temporary table "new_audit_entries"
INSERT INTO `new_audit_entries` (`id`, `deployment_id`, `actor_kind`, `actor_id`, `method`, `code`, `request`, `request_id`, `remote`, `at`) SELECT `id`, `deployment_id`, `actor_kind`, `actor_id`, `method`, `code`, `request`, `request_id`, `remote`, `at` FROM `audit_entries`;
-- drop "audit_entries" table after copying rows
DROP TABLE `audit_entries`;
-- rename temporary table "new_audit_entries" to "audit_entries"
ALTER TABLE `new_audit_entries` RENAME TO `audit_entries`;
-- create index "audit_entries_by_time" to table: "audit_entries"
CREATE INDEX `audit_entries_by_time` ON `audit_entries` (`deployment_id`, `at`, `id`);
-- create index "audit_entries_by_request" to table: "audit_entries"
CREATE INDEX `audit_entries_by_request` ON `audit_entries` (`deployment_id`, `request_id`, `at`, `id`);
-- create index "audit_entries_chain" to table: "audit_entries"
CREATE UNIQUE INDEX `audit_entries_chain` ON `audit_entries` (`deployment_id`, `sequence`) WHERE sequence > 0;
-- create "new_deployments" table
CREATE TABLE `new_deployments` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `slug` text NOT NULL, `name` text NOT NULL, `default_role` text NOT NULL DEFAULT ('ORG_ROLE_ADMIN'), `triage_via_comment` bool NOT NULL DEFAULT (false), `cross_file_analysis` bool NOT NULL DEFAULT (false), `dependency_query` bool NOT NULL DEFAULT (false), `products` blob NULL, `created_at` integer NOT NULL);
-- copy rows from old table "deployments" to new temporary table "new_deployments"
INSERT INTO `new_deployments` (`id`, `slug`, `name`, `default_role`, `created_at`) SELECT `id`, `slug`, `name`, `default_role`, `created_at` FROM `deployments`;
-- drop "deployments" table after copying rows
DROP TABLE `deployments`;
-- rename temporary table "new_deployments" to "deployments"
ALTER TABLE `new_deployments` RENAME TO `deployments`;
-- create index "deployments_by_slug" to table: "deployments"
CREATE UNIQUE INDEX `deployments_by_slug` ON `deployments` (`slug`);
-- create "new_finding_events" table
CREATE TABLE `new_finding_events` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `finding_id` integer NOT NULL, `kind` text NOT NULL, `from_status` text NOT NULL, `to_status` text NOT NULL, `reason` text NOT NULL DEFAULT (''), `note` text NOT NULL DEFAULT (''), `actor_kind` text NOT NULL, `actor_id` integer NOT NULL, `actor_name` text NOT NULL DEFAULT (''), `scan_id` integer NULL, `at` integer NOT NULL);
-- copy rows from old table "finding_events" to new temporary table "new_finding_events"
INSERT INTO `new_finding_events` (`id`, `deployment_id`, `finding_id`, `kind`, `from_status`, `to_status`, `reason`, `note`, `actor_kind`, `actor_id`, `scan_id`, `at`) SELECT `id`, `deployment_id`, `finding_id`, `kind`, `from_status`, `to_status`, `reason`, `note`, `actor_kind`, `actor_id`, `scan_id`, `at` FROM `finding_events`;
-- drop "finding_events" table after copying rows
DROP TABLE `finding_events`;
-- rename temporary table "new_finding_events" to "finding_events"
ALTER TABLE `new_finding_events` RENAME TO `finding_events`;
-- create index "finding_events_of_finding" to table: "finding_events"
CREATE INDEX `finding_events_of_finding` ON `finding_events` (`deployment_id`, `finding_id`, `id`);
-- create index "finding_events_by_time" to table: "finding_events"
CREATE INDEX `finding_events_by_time` ON `finding_events` (`deployment_id`, `at`);
-- add column "updated_at" to table: "memberships"
ALTER TABLE `memberships` ADD COLUMN `updated_at` integer NULL;
-- add column "settings" to table: "users"
ALTER TABLE `users` ADD COLUMN `settings` blob NULL;
-- create "audit_heads" table
CREATE TABLE `audit_heads` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `sequence` integer NOT NULL DEFAULT (0), `hash` blob NULL, `seal` blob NULL);
-- create index "audit_heads_by_deployment" to table: "audit_heads"
CREATE UNIQUE INDEX `audit_heads_by_deployment` ON `audit_heads` (`deployment_id`);
-- create "deliveries" table
CREATE TABLE `deliveries` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `rule_id` integer NOT NULL, `event_id` text NOT NULL, `kind` text NOT NULL, `project_id` integer NOT NULL DEFAULT (0), `scan_id` integer NOT NULL DEFAULT (0), `payload` blob NOT NULL, `state` text NOT NULL, `attempts` integer NOT NULL DEFAULT (0), `next_attempt_at` integer NOT NULL, `locked_until` integer NOT NULL DEFAULT (0), `give_up_at` integer NOT NULL, `last_status` integer NOT NULL DEFAULT (0), `last_error` text NOT NULL DEFAULT (''), `replay_of` integer NULL, `created_at` integer NOT NULL, `finished_at` integer NULL);
-- create index "deliveries_list" to table: "deliveries"
CREATE INDEX `deliveries_list` ON `deliveries` (`deployment_id`, `id`);
-- create index "deliveries_of_rule" to table: "deliveries"
CREATE INDEX `deliveries_of_rule` ON `deliveries` (`deployment_id`, `rule_id`, `id`);
-- create index "deliveries_by_state" to table: "deliveries"
CREATE INDEX `deliveries_by_state` ON `deliveries` (`deployment_id`, `state`, `id`);
-- create index "deliveries_by_event" to table: "deliveries"
CREATE INDEX `deliveries_by_event` ON `deliveries` (`deployment_id`, `event_id`);
-- create index "deliveries_of_scan" to table: "deliveries"
CREATE INDEX `deliveries_of_scan` ON `deliveries` (`deployment_id`, `scan_id`, `rule_id`);
-- create index "deliveries_due" to table: "deliveries"
CREATE INDEX `deliveries_due` ON `deliveries` (`next_attempt_at`, `id`) WHERE finished_at IS NULL;
-- create index "deliveries_finished" to table: "deliveries"
CREATE INDEX `deliveries_finished` ON `deliveries` (`finished_at`, `id`) WHERE finished_at IS NOT NULL;
-- create "delivery_attempts" table
CREATE TABLE `delivery_attempts` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `delivery_id` integer NOT NULL, `status` integer NOT NULL, `error` text NOT NULL, `duration_us` integer NOT NULL, `at` integer NOT NULL);
-- create index "delivery_attempts_of_delivery" to table: "delivery_attempts"
CREATE INDEX `delivery_attempts_of_delivery` ON `delivery_attempts` (`deployment_id`, `delivery_id`, `id`);
-- create "invitations" table
CREATE TABLE `invitations` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `email` text NOT NULL, `invited_by` integer NOT NULL, `created_at` integer NOT NULL, `accepted_at` integer NULL);
-- create index "invitations_by_email" to table: "invitations"
CREATE UNIQUE INDEX `invitations_by_email` ON `invitations` (`deployment_id`, `email`);
-- create index "invitations_of_email" to table: "invitations"
CREATE INDEX `invitations_of_email` ON `invitations` (`email`);
-- create "notifications" table
CREATE TABLE `notifications` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `dedup_key` text NOT NULL, `title` text NOT NULL, `description` text NOT NULL, `severity` text NOT NULL, `admin_only` bool NOT NULL, `link` text NOT NULL, `is_external_link` bool NOT NULL, `link_text` text NOT NULL, `created_at` integer NOT NULL);
-- create index "notifications_by_key" to table: "notifications"
CREATE UNIQUE INDEX `notifications_by_key` ON `notifications` (`deployment_id`, `dedup_key`);
-- create index "notifications_list" to table: "notifications"
CREATE INDEX `notifications_list` ON `notifications` (`deployment_id`, `created_at`, `id`);
-- create "notification_events" table
CREATE TABLE `notification_events` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `scan_id` integer NOT NULL, `after_finding_id` integer NOT NULL DEFAULT (0), `not_before` integer NOT NULL, `created_at` integer NOT NULL);
-- create index "notification_events_of_scan" to table: "notification_events"
CREATE UNIQUE INDEX `notification_events_of_scan` ON `notification_events` (`deployment_id`, `scan_id`);
-- create index "notification_events_due" to table: "notification_events"
CREATE INDEX `notification_events_due` ON `notification_events` (`not_before`, `id`);
-- create "notification_rules" table
CREATE TABLE `notification_rules` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `channel` text NOT NULL, `name` text NOT NULL, `config` json NOT NULL, `secrets` blob NULL, `is_enabled` bool NOT NULL DEFAULT (false), `policy_slugs` json NOT NULL, `use_network_broker` bool NOT NULL DEFAULT (false), `send_scan_completion` bool NOT NULL DEFAULT (true), `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "notification_rules_list" to table: "notification_rules"
CREATE INDEX `notification_rules_list` ON `notification_rules` (`deployment_id`, `id`);
-- create index "notification_rules_by_channel" to table: "notification_rules"
CREATE INDEX `notification_rules_by_channel` ON `notification_rules` (`deployment_id`, `channel`, `id`);
-- create "notification_seens" table
CREATE TABLE `notification_seens` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `notification_id` integer NOT NULL, `user_id` integer NOT NULL, `at` integer NOT NULL);
-- create index "notifications_seen_by_user" to table: "notification_seens"
CREATE UNIQUE INDEX `notifications_seen_by_user` ON `notification_seens` (`deployment_id`, `user_id`, `notification_id`);
-- create "notification_webhooks" table
CREATE TABLE `notification_webhooks` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `name` text NOT NULL, `url` text NOT NULL, `secret` blob NULL, `use_network_broker` bool NOT NULL DEFAULT (false), `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "notification_webhooks_by_name" to table: "notification_webhooks"
CREATE UNIQUE INDEX `notification_webhooks_by_name` ON `notification_webhooks` (`deployment_id`, `name`);
-- create "onboarding_tasks" table
CREATE TABLE `onboarding_tasks` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `user_id` integer NOT NULL, `type` text NOT NULL, `state` text NOT NULL, `updated_at` integer NOT NULL);
-- create index "onboarding_tasks_by_type" to table: "onboarding_tasks"
CREATE UNIQUE INDEX `onboarding_tasks_by_type` ON `onboarding_tasks` (`deployment_id`, `user_id`, `type`);
-- create "package_manager_configs" table
CREATE TABLE `package_manager_configs` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `name` text NOT NULL, `url` text NOT NULL, `requires_auth` bool NOT NULL DEFAULT (false), `ecosystem` text NOT NULL, `use_network_broker` bool NOT NULL DEFAULT (false), `additional_config` blob NULL, `registry_type` text NOT NULL, `credential_kind` text NOT NULL DEFAULT (''), `credentials` blob NULL, `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "package_manager_configs_by_name" to table: "package_manager_configs"
CREATE UNIQUE INDEX `package_manager_configs_by_name` ON `package_manager_configs` (`deployment_id`, `name`);
-- create "product_feedbacks" table
CREATE TABLE `product_feedbacks` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `feature_action` text NOT NULL, `feedback` text NOT NULL, `actor_kind` text NOT NULL, `actor_id` integer NOT NULL, `created_at` integer NOT NULL);
-- create index "product_feedback_by_time" to table: "product_feedbacks"
CREATE INDEX `product_feedback_by_time` ON `product_feedbacks` (`deployment_id`, `created_at`);
-- create "review_comment_contents" table
CREATE TABLE `review_comment_contents` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `content_type` text NOT NULL, `product_type` text NOT NULL, `content` text NOT NULL, `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "review_comment_contents_by_product" to table: "review_comment_contents"
CREATE UNIQUE INDEX `review_comment_contents_by_product` ON `review_comment_contents` (`deployment_id`, `content_type`, `product_type`);
-- create "scm_apps" table
CREATE TABLE `scm_apps` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `request_id` text NOT NULL, `state` text NOT NULL, `scm_type` text NOT NULL, `base_url` text NOT NULL, `namespace` text NOT NULL, `entity_type` text NOT NULL DEFAULT (''), `scm_config_id` integer NULL, `created_by` integer NOT NULL, `slug` text NOT NULL DEFAULT (''), `app_id` text NOT NULL DEFAULT (''), `name` text NOT NULL DEFAULT (''), `code_access` bool NOT NULL DEFAULT (false), `tenant_id` text NOT NULL DEFAULT (''), `client_id` text NOT NULL DEFAULT (''), `installation_id` text NOT NULL DEFAULT (''), `suspended` bool NOT NULL DEFAULT (false), `client_secret` blob NULL, `private_key` blob NULL, `webhook_key` text NOT NULL DEFAULT (''), `webhook_secret` blob NULL, `previous_webhook_secret` blob NULL, `webhook_rotated_at` integer NULL, `created_at` integer NOT NULL, `expires_at` integer NOT NULL, `completed_at` integer NULL);
-- create index "scm_apps_by_request" to table: "scm_apps"
CREATE UNIQUE INDEX `scm_apps_by_request` ON `scm_apps` (`request_id`);
-- create index "scm_apps_list" to table: "scm_apps"
CREATE INDEX `scm_apps_list` ON `scm_apps` (`deployment_id`, `id`);
-- create index "scm_apps_by_webhook" to table: "scm_apps"
CREATE INDEX `scm_apps_by_webhook` ON `scm_apps` (`webhook_key`);
-- create "scm_configs" table
CREATE TABLE `scm_configs` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `type` text NOT NULL, `namespace` text NOT NULL, `source_id` text NOT NULL DEFAULT (''), `base_url` text NOT NULL, `scm_id` text NOT NULL DEFAULT (''), `scm_app_id` integer NULL, `access_token` blob NULL, `installed` bool NOT NULL DEFAULT (false), `suspended` bool NOT NULL DEFAULT (false), `entity_type` text NOT NULL DEFAULT (''), `auto_scan` bool NOT NULL DEFAULT (false), `diff_enabled` bool NOT NULL DEFAULT (false), `use_network_broker` bool NOT NULL DEFAULT (false), `checked_at` integer NULL, `check_ok` bool NOT NULL DEFAULT (false), `check_error` text NOT NULL DEFAULT (''), `token_scopes` blob NULL, `last_successful_sync_at` integer NULL, `webhook_key` text NOT NULL DEFAULT (''), `webhook_secret` blob NULL, `previous_webhook_secret` blob NULL, `webhook_rotated_at` integer NULL, `subscriptions` json NULL, `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "scm_configs_by_namespace" to table: "scm_configs"
CREATE UNIQUE INDEX `scm_configs_by_namespace` ON `scm_configs` (`deployment_id`, `type`, `base_url`, `namespace`);
-- create index "scm_configs_by_name" to table: "scm_configs"
CREATE INDEX `scm_configs_by_name` ON `scm_configs` (`deployment_id`, `namespace`, `id`);
-- create index "scm_configs_by_sync" to table: "scm_configs"
CREATE INDEX `scm_configs_by_sync` ON `scm_configs` (`deployment_id`, `last_successful_sync_at`, `id`);
-- create index "scm_configs_by_webhook" to table: "scm_configs"
CREATE INDEX `scm_configs_by_webhook` ON `scm_configs` (`webhook_key`);
-- create "teams" table
CREATE TABLE `teams` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `name` text NOT NULL, `slug` text NOT NULL, `parent_id` integer NULL, `is_project_default` bool NOT NULL DEFAULT (false), `is_user_default` bool NOT NULL DEFAULT (false), `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "teams_by_slug" to table: "teams"
CREATE UNIQUE INDEX `teams_by_slug` ON `teams` (`deployment_id`, `slug`);
-- create index "teams_by_name" to table: "teams"
CREATE UNIQUE INDEX `teams_by_name` ON `teams` (`deployment_id`, `name`);
-- create index "teams_of_parent" to table: "teams"
CREATE INDEX `teams_of_parent` ON `teams` (`deployment_id`, `parent_id`, `id`);
-- create "team_members" table
CREATE TABLE `team_members` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `team_id` integer NOT NULL, `user_id` integer NOT NULL, `role` text NOT NULL, `created_at` integer NOT NULL);
-- create index "team_members_of_team" to table: "team_members"
CREATE UNIQUE INDEX `team_members_of_team` ON `team_members` (`deployment_id`, `team_id`, `user_id`);
-- create index "team_members_of_user" to table: "team_members"
CREATE INDEX `team_members_of_user` ON `team_members` (`deployment_id`, `user_id`, `team_id`);
-- create "team_projects" table
CREATE TABLE `team_projects` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `team_id` integer NOT NULL, `project_id` integer NOT NULL, `created_at` integer NOT NULL);
-- create index "team_projects_of_team" to table: "team_projects"
CREATE UNIQUE INDEX `team_projects_of_team` ON `team_projects` (`deployment_id`, `team_id`, `project_id`);
-- create index "team_projects_of_project" to table: "team_projects"
CREATE INDEX `team_projects_of_project` ON `team_projects` (`deployment_id`, `project_id`, `team_id`);
-- create "webhook_receipts" table
CREATE TABLE `webhook_receipts` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `webhook_key` text NOT NULL, `delivery_id` text NOT NULL, `received_at` integer NOT NULL);
-- create index "webhook_receipts_by_delivery" to table: "webhook_receipts"
CREATE UNIQUE INDEX `webhook_receipts_by_delivery` ON `webhook_receipts` (`deployment_id`, `webhook_key`, `delivery_id`);
-- create index "webhook_receipts_by_time" to table: "webhook_receipts"
CREATE INDEX `webhook_receipts_by_time` ON `webhook_receipts` (`received_at`);
-- enable back the enforcement of foreign-keys constraints
PRAGMA foreign_keys = on;

-- +goose Down
-- reverse: create index "webhook_receipts_by_time" to table: "webhook_receipts"
DROP INDEX `webhook_receipts_by_time`;
-- reverse: create index "webhook_receipts_by_delivery" to table: "webhook_receipts"
DROP INDEX `webhook_receipts_by_delivery`;
-- reverse: create "webhook_receipts" table
DROP TABLE `webhook_receipts`;
-- reverse: create index "team_projects_of_project" to table: "team_projects"
DROP INDEX `team_projects_of_project`;
-- reverse: create index "team_projects_of_team" to table: "team_projects"
DROP INDEX `team_projects_of_team`;
-- reverse: create "team_projects" table
DROP TABLE `team_projects`;
-- reverse: create index "team_members_of_user" to table: "team_members"
DROP INDEX `team_members_of_user`;
-- reverse: create index "team_members_of_team" to table: "team_members"
DROP INDEX `team_members_of_team`;
-- reverse: create "team_members" table
DROP TABLE `team_members`;
-- reverse: create index "teams_of_parent" to table: "teams"
DROP INDEX `teams_of_parent`;
-- reverse: create index "teams_by_name" to table: "teams"
DROP INDEX `teams_by_name`;
-- reverse: create index "teams_by_slug" to table: "teams"
DROP INDEX `teams_by_slug`;
-- reverse: create "teams" table
DROP TABLE `teams`;
-- reverse: create index "scm_configs_by_webhook" to table: "scm_configs"
DROP INDEX `scm_configs_by_webhook`;
-- reverse: create index "scm_configs_by_sync" to table: "scm_configs"
DROP INDEX `scm_configs_by_sync`;
-- reverse: create index "scm_configs_by_name" to table: "scm_configs"
DROP INDEX `scm_configs_by_name`;
-- reverse: create index "scm_configs_by_namespace" to table: "scm_configs"
DROP INDEX `scm_configs_by_namespace`;
-- reverse: create "scm_configs" table
DROP TABLE `scm_configs`;
-- reverse: create index "scm_apps_by_webhook" to table: "scm_apps"
DROP INDEX `scm_apps_by_webhook`;
-- reverse: create index "scm_apps_list" to table: "scm_apps"
DROP INDEX `scm_apps_list`;
-- reverse: create index "scm_apps_by_request" to table: "scm_apps"
DROP INDEX `scm_apps_by_request`;
-- reverse: create "scm_apps" table
DROP TABLE `scm_apps`;
-- reverse: create index "review_comment_contents_by_product" to table: "review_comment_contents"
DROP INDEX `review_comment_contents_by_product`;
-- reverse: create "review_comment_contents" table
DROP TABLE `review_comment_contents`;
-- reverse: create index "product_feedback_by_time" to table: "product_feedbacks"
DROP INDEX `product_feedback_by_time`;
-- reverse: create "product_feedbacks" table
DROP TABLE `product_feedbacks`;
-- reverse: create index "package_manager_configs_by_name" to table: "package_manager_configs"
DROP INDEX `package_manager_configs_by_name`;
-- reverse: create "package_manager_configs" table
DROP TABLE `package_manager_configs`;
-- reverse: create index "onboarding_tasks_by_type" to table: "onboarding_tasks"
DROP INDEX `onboarding_tasks_by_type`;
-- reverse: create "onboarding_tasks" table
DROP TABLE `onboarding_tasks`;
-- reverse: create index "notification_webhooks_by_name" to table: "notification_webhooks"
DROP INDEX `notification_webhooks_by_name`;
-- reverse: create "notification_webhooks" table
DROP TABLE `notification_webhooks`;
-- reverse: create index "notifications_seen_by_user" to table: "notification_seens"
DROP INDEX `notifications_seen_by_user`;
-- reverse: create "notification_seens" table
DROP TABLE `notification_seens`;
-- reverse: create index "notification_rules_by_channel" to table: "notification_rules"
DROP INDEX `notification_rules_by_channel`;
-- reverse: create index "notification_rules_list" to table: "notification_rules"
DROP INDEX `notification_rules_list`;
-- reverse: create "notification_rules" table
DROP TABLE `notification_rules`;
-- reverse: create index "notification_events_due" to table: "notification_events"
DROP INDEX `notification_events_due`;
-- reverse: create index "notification_events_of_scan" to table: "notification_events"
DROP INDEX `notification_events_of_scan`;
-- reverse: create "notification_events" table
DROP TABLE `notification_events`;
-- reverse: create index "notifications_list" to table: "notifications"
DROP INDEX `notifications_list`;
-- reverse: create index "notifications_by_key" to table: "notifications"
DROP INDEX `notifications_by_key`;
-- reverse: create "notifications" table
DROP TABLE `notifications`;
-- reverse: create index "invitations_of_email" to table: "invitations"
DROP INDEX `invitations_of_email`;
-- reverse: create index "invitations_by_email" to table: "invitations"
DROP INDEX `invitations_by_email`;
-- reverse: create "invitations" table
DROP TABLE `invitations`;
-- reverse: create index "delivery_attempts_of_delivery" to table: "delivery_attempts"
DROP INDEX `delivery_attempts_of_delivery`;
-- reverse: create "delivery_attempts" table
DROP TABLE `delivery_attempts`;
-- reverse: create index "deliveries_finished" to table: "deliveries"
DROP INDEX `deliveries_finished`;
-- reverse: create index "deliveries_due" to table: "deliveries"
DROP INDEX `deliveries_due`;
-- reverse: create index "deliveries_of_scan" to table: "deliveries"
DROP INDEX `deliveries_of_scan`;
-- reverse: create index "deliveries_by_event" to table: "deliveries"
DROP INDEX `deliveries_by_event`;
-- reverse: create index "deliveries_by_state" to table: "deliveries"
DROP INDEX `deliveries_by_state`;
-- reverse: create index "deliveries_of_rule" to table: "deliveries"
DROP INDEX `deliveries_of_rule`;
-- reverse: create index "deliveries_list" to table: "deliveries"
DROP INDEX `deliveries_list`;
-- reverse: create "deliveries" table
DROP TABLE `deliveries`;
-- reverse: create index "audit_heads_by_deployment" to table: "audit_heads"
DROP INDEX `audit_heads_by_deployment`;
-- reverse: create "audit_heads" table
DROP TABLE `audit_heads`;
-- reverse: add column "settings" to table: "users"
ALTER TABLE `users` DROP COLUMN `settings`;
-- reverse: add column "updated_at" to table: "memberships"
ALTER TABLE `memberships` DROP COLUMN `updated_at`;
-- reverse: create index "finding_events_by_time" to table: "finding_events"
DROP INDEX `finding_events_by_time`;
-- reverse: create index "finding_events_of_finding" to table: "finding_events"
DROP INDEX `finding_events_of_finding`;
-- reverse: create "new_finding_events" table
DROP TABLE `new_finding_events`;
-- reverse: create index "deployments_by_slug" to table: "deployments"
DROP INDEX `deployments_by_slug`;
-- reverse: create "new_deployments" table
DROP TABLE `new_deployments`;
-- reverse: create index "audit_entries_chain" to table: "audit_entries"
DROP INDEX `audit_entries_chain`;
-- reverse: create index "audit_entries_by_request" to table: "audit_entries"
DROP INDEX `audit_entries_by_request`;
-- reverse: create index "audit_entries_by_time" to table: "audit_entries"
DROP INDEX `audit_entries_by_time`;
-- reverse: create "new_audit_entries" table
DROP TABLE `new_audit_entries`;
