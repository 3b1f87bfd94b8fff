-- +goose Up
-- create "page_boundaries" table
CREATE TABLE `page_boundaries` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `list` blob NOT NULL, `rows` integer NOT NULL, `walk` integer NOT NULL, `relevant_since` integer NOT NULL, `finding_id` integer NOT NULL, `ended` bool NOT NULL, `served_at` integer NOT NULL);
-- create index "page_boundaries_by_place" to table: "page_boundaries"
CREATE UNIQUE INDEX `page_boundaries_by_place` ON `page_boundaries` (`deployment_id`, `list`, `rows`);

-- +goose Down
-- reverse: create index "page_boundaries_by_place" to table: "page_boundaries"
DROP INDEX `page_boundaries_by_place`;
-- reverse: create "page_boundaries" table
DROP TABLE `page_boundaries`;
