-- +goose Up
ALTER TABLE "scan_coverages" ADD COLUMN "products" integer NULL;

-- +goose Down
ALTER TABLE "scan_coverages" DROP COLUMN "products";
