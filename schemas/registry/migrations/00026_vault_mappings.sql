-- +goose Up

-- The vault records whose mappings a generation uses to map logs: the newest ones in the
-- log when the generation was made, for every writer and after every restart. Without a
-- record here, the first one in the log counts.
ALTER TABLE generation ADD COLUMN vaults bytea[] NOT NULL DEFAULT '{}';

-- A command that adds a vault has its vault record as the argument, without the fields that
-- ingest reads from the chain.
ALTER TABLE vault_command
  ADD COLUMN argument bytea NOT NULL DEFAULT '',
  DROP CONSTRAINT vault_command_kind_check,
  ADD CONSTRAINT vault_command_kind_check CHECK (kind IN ('remove', 'restore', 'add'));

-- +goose Down
DELETE FROM vault_command WHERE kind = 'add';
ALTER TABLE vault_command
  DROP COLUMN argument,
  DROP CONSTRAINT vault_command_kind_check,
  ADD CONSTRAINT vault_command_kind_check CHECK (kind IN ('remove', 'restore'));
ALTER TABLE generation DROP COLUMN vaults;
