-- +goose Up

-- Operators' changes with their commands; append-only. A change of the registry has
-- one row, in its own transaction; a change of another store has a row before it,
-- begun, and one after it.
CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The operator as given to the command, and the login.
  operator text NOT NULL CHECK (operator <> ''),
  login text NOT NULL DEFAULT session_user,
  command text NOT NULL,
  partner_id bigint,
  -- Names and numbers; never a key or a secret.
  detail text NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('done', 'begun', 'failed'))
);
CREATE INDEX audit_partner ON audit (partner_id, id);

-- The ids, in hex, of the sealing keys that a running dispatcher has, so that nothing
-- is sealed that one of them could not open. NULL: a dispatcher of a version
-- without key ids.
ALTER TABLE dispatcher ADD COLUMN key_ids text[];

-- +goose Down
ALTER TABLE dispatcher DROP COLUMN key_ids;
DROP TABLE audit;
