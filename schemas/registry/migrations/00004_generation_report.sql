-- +goose Up

-- The comparison of a rebuild before its generation became live or bad, as
-- `navlog projection show` prints it. NULL: nothing was compared.
ALTER TABLE generation ADD COLUMN report jsonb;

-- +goose Down
ALTER TABLE generation DROP COLUMN report;
