-- +goose Up
-- The default comes after the column, so that existing rows keep null and the table is not rewritten.
ALTER TABLE "finding_events" ADD COLUMN "tx" bigint NULL;
ALTER TABLE "finding_events" ALTER COLUMN "tx" SET DEFAULT ((pg_current_xact_id())::text)::bigint;

-- +goose Down
ALTER TABLE "finding_events" DROP COLUMN "tx";
