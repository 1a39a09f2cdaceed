-- +goose Up

-- Operators' commands for the vaults of a chain, in order. ingest reads the rows without an
-- outcome, appends a record to the log for each, and writes the outcome.
CREATE TABLE vault_command (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  chain_id bigint NOT NULL CHECK (chain_id > 0),
  kind text NOT NULL CHECK (kind IN ('remove', 'restore')),
  vault bytea NOT NULL CHECK (length(vault) = 20),
  outcome text CHECK (outcome IN ('done', 'refused')),
  -- What was done, or why it was refused.
  detail text NOT NULL DEFAULT '',
  finished_at timestamptz
);
CREATE INDEX vault_command_pending ON vault_command (chain_id, id) WHERE outcome IS NULL;

-- +goose Down
DROP TABLE vault_command;
