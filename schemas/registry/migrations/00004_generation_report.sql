-- +goose Up

-- What a rebuild compared before the generation was made live or refused, as
-- `navlog projection show` prints it. NULL: nothing was compared.
ALTER TABLE generation ADD COLUMN report jsonb;

-- +goose Down
ALTER TABLE generation DROP COLUMN report;
