-- +goose Up

ALTER TABLE endpoint
  -- A rotation with overlap: until next_at, attempts are signed with both
  -- secrets; from then on next_secret is the only one. Written by `navlog
  -- partner`.
  ADD COLUMN next_secret bytea,
  ADD COLUMN next_at timestamptz,
  -- An operator parked the partner. Written by `navlog webhook`.
  ADD COLUMN held boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT endpoint_next_check CHECK ((next_secret IS NULL) = (next_at IS NULL));

ALTER TABLE attempt
  -- How long each phase took, in microseconds; NULL: it did not happen, as on a
  -- reused connection.
  ADD COLUMN dns_us integer,
  ADD COLUMN connect_us integer,
  ADD COLUMN tls_us integer,
  -- From the start of the POST to the first byte of the response.
  ADD COLUMN first_byte_us integer,
  -- Deliveries are kept for ever: the check of each attempt would prove nothing
  -- and lock the busiest row.
  DROP CONSTRAINT attempt_event_id_fkey;

ALTER TABLE command
  DROP CONSTRAINT command_kind_check,
  ADD CONSTRAINT command_kind_check CHECK (kind IN ('test', 'replay', 'replay-range')),
  -- Of a replay-range, both included. dispatch raises first_sequence as it goes.
  ADD COLUMN first_sequence bigint,
  ADD COLUMN last_sequence bigint,
  -- NULL: deliveries of every finished state.
  ADD COLUMN only_state text,
  -- How many deliveries it made or sent again. Written by dispatch.
  ADD COLUMN deliveries bigint NOT NULL DEFAULT 0;

-- The running dispatchers, which divide the partners among them.
CREATE TABLE dispatcher (
  owner uuid PRIMARY KEY,
  until timestamptz NOT NULL
);

-- +goose Down
DROP TABLE dispatcher;
DELETE FROM command WHERE kind = 'replay-range';
ALTER TABLE command
  DROP COLUMN first_sequence, DROP COLUMN last_sequence, DROP COLUMN only_state, DROP COLUMN deliveries,
  DROP CONSTRAINT command_kind_check,
  ADD CONSTRAINT command_kind_check CHECK (kind IN ('test', 'replay'));
ALTER TABLE attempt
  DROP COLUMN dns_us, DROP COLUMN connect_us, DROP COLUMN tls_us, DROP COLUMN first_byte_us,
  ADD CONSTRAINT attempt_event_id_fkey FOREIGN KEY (event_id) REFERENCES delivery (event_id);
ALTER TABLE endpoint DROP COLUMN next_secret, DROP COLUMN next_at, DROP COLUMN held;
