-- +goose Up

-- The database sets login and time of an audit row, whatever the statement contains, so that
-- a login cannot write as another one. operator is the name given to the command.
-- +goose StatementBegin
CREATE FUNCTION audit_actor() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  NEW.login := session_user;
  NEW.at := clock_timestamp();
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_actor BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_actor();

-- The public keys that have signed statements. One key signs at a time; a retired key stays,
-- so that old statements can be verified. Written by query.
CREATE TABLE statement_key (
  public_key bytea PRIMARY KEY CHECK (octet_length(public_key) = 32),
  since timestamptz NOT NULL DEFAULT now(),
  retired_at timestamptz CHECK (retired_at >= since)
);
CREATE UNIQUE INDEX statement_key_current ON statement_key ((true)) WHERE retired_at IS NULL;

-- +goose Down
DROP TABLE statement_key;
DROP TRIGGER audit_actor ON audit;
DROP FUNCTION audit_actor;
