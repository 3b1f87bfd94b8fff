-- +goose Up
ALTER TABLE "freshnesses" ADD COLUMN "scanner_version" character varying NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE "freshnesses" DROP COLUMN "scanner_version";
