-- +goose Up

-- without: the vaults that had left the configuration when the generation was created; every
-- writer builds it without them, however often it restarts. outdated: its writer has found
-- that it cannot match the log, because a vault joined, left or came back; every instance of
-- project must know, because another one may write its successor.
ALTER TABLE generation
  ADD COLUMN without bytea[] NOT NULL DEFAULT '{}',
  ADD COLUMN outdated boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE generation DROP COLUMN without, DROP COLUMN outdated;
