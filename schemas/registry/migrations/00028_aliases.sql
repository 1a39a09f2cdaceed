-- +goose Up

-- Commands about the aliases of a vault's attribution values: one is added or removed, or the
-- earlier referrals of a partner go to the referral topics.
ALTER TABLE vault_command
  DROP CONSTRAINT vault_command_kind_check,
  ADD CONSTRAINT vault_command_kind_check
    CHECK (kind IN ('remove', 'restore', 'add', 'alias', 'unalias', 'backfill'));

-- +goose Down
DELETE FROM vault_command WHERE kind IN ('alias', 'unalias', 'backfill');
ALTER TABLE vault_command
  DROP CONSTRAINT vault_command_kind_check,
  ADD CONSTRAINT vault_command_kind_check CHECK (kind IN ('remove', 'restore', 'add'));
