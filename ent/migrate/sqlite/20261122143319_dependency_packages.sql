-- +goose Up
-- create "dependency_packages" table
CREATE TABLE `dependency_packages` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `deployment_id` integer NOT NULL, `ecosystem` text NOT NULL, `package` text NOT NULL, `license` text NOT NULL DEFAULT (''));
-- create index "dependency_packages_by_name" to table: "dependency_packages"
CREATE UNIQUE INDEX `dependency_packages_by_name` ON `dependency_packages` (`deployment_id`, `ecosystem`, `package`, `license`);
-- the packages of the dependencies that there are. Those that nodes of the version before store meanwhile are added by a periodic job
INSERT INTO dependency_packages (deployment_id, ecosystem, package, license)
SELECT DISTINCT deployment_id, ecosystem, package, COALESCE(license, '') FROM dependencies;

-- +goose Down
-- reverse: create index "dependency_packages_by_name" to table: "dependency_packages"
DROP INDEX `dependency_packages_by_name`;
-- reverse: create "dependency_packages" table
DROP TABLE `dependency_packages`;
