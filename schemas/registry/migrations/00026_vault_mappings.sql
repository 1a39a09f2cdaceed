-- +goose Up

-- The vault records with mappings by which a generation maps logs, whoever writes it and
-- however often that begins anew: the newest ones of the log when it was made. Without a
-- record here, the first one of the log counts.
ALTER TABLE generation ADD COLUMN vaults bytea[] NOT NULL DEFAULT '{}';

-- A command that adds a vault says what it is: the vault record, without what only the chain
-- knows.
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
