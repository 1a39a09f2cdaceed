-- +goose Up

-- The vaults that had left the configuration when the generation was made: it is made
-- without them, whoever writes it and however often that begins anew. outdated: whoever
-- writes it has seen that it cannot have what the log says, of a vault that joined, left or
-- came back; every instance of project has to know, for another one may write its successor.
ALTER TABLE generation
  ADD COLUMN without bytea[] NOT NULL DEFAULT '{}',
  ADD COLUMN outdated boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE generation DROP COLUMN without, DROP COLUMN outdated;
