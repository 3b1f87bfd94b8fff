-- +goose Up
-- create "cloud_posture_credentials" table
CREATE TABLE `cloud_posture_credentials` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `client_id` text NOT NULL, `client_secret` blob NULL, `api_url` text NOT NULL, `token_url` text NOT NULL, `audience` text NOT NULL DEFAULT (''));
-- create index "cloud_posture_credentials_of_deployment" to table: "cloud_posture_credentials"
CREATE INDEX `cloud_posture_credentials_of_deployment` ON `cloud_posture_credentials` (`deployment_id`, `id`);
-- create "support_cases" table
CREATE TABLE `support_cases` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `number` integer NOT NULL, `user_id` integer NOT NULL, `kind` text NOT NULL, `priority` text NOT NULL, `subject` text NOT NULL, `description` text NOT NULL, `email` text NOT NULL, `status` text NOT NULL, `owner` text NOT NULL DEFAULT (''), `created_at` integer NOT NULL, `updated_at` integer NOT NULL);
-- create index "support_cases_by_number" to table: "support_cases"
CREATE UNIQUE INDEX `support_cases_by_number` ON `support_cases` (`deployment_id`, `number`);
-- create index "support_cases_of_user" to table: "support_cases"
CREATE INDEX `support_cases_of_user` ON `support_cases` (`deployment_id`, `user_id`, `number`);
-- create "survey_responses" table
CREATE TABLE `survey_responses` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `survey` text NOT NULL, `user_id` integer NOT NULL, `data` blob NOT NULL, `submitted_at` integer NOT NULL);
-- create index "survey_responses_of_user" to table: "survey_responses"
CREATE UNIQUE INDEX `survey_responses_of_user` ON `survey_responses` (`deployment_id`, `user_id`, `survey`);
-- create index "survey_responses_by_time" to table: "survey_responses"
CREATE INDEX `survey_responses_by_time` ON `survey_responses` (`deployment_id`, `survey`, `submitted_at`, `id`);

-- +goose Down
-- reverse: create index "survey_responses_by_time" to table: "survey_responses"
DROP INDEX `survey_responses_by_time`;
-- reverse: create index "survey_responses_of_user" to table: "survey_responses"
DROP INDEX `survey_responses_of_user`;
-- reverse: create "survey_responses" table
DROP TABLE `survey_responses`;
-- reverse: create index "support_cases_of_user" to table: "support_cases"
DROP INDEX `support_cases_of_user`;
-- reverse: create index "support_cases_by_number" to table: "support_cases"
DROP INDEX `support_cases_by_number`;
-- reverse: create "support_cases" table
DROP TABLE `support_cases`;
-- reverse: create index "cloud_posture_credentials_of_deployment" to table: "cloud_posture_credentials"
DROP INDEX `cloud_posture_credentials_of_deployment`;
-- reverse: create "cloud_posture_credentials" table
DROP TABLE `cloud_posture_credentials`;
