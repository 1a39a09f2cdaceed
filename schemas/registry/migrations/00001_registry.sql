-- +goose Up

-- Partners: written by `navlog partner`.
CREATE TABLE partner (
  id bigint PRIMARY KEY CHECK (id BETWEEN 1 AND 4294967295),
  name text NOT NULL CHECK (name <> ''),
  disabled boolean NOT NULL DEFAULT false,
  -- Requests a minute; NULL: the default of the configuration.
  rate_limit integer CHECK (rate_limit > 0),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- API keys: only the SHA-256 of a key is kept. Written by `navlog partner`.
CREATE TABLE api_key (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id bigint NOT NULL REFERENCES partner (id),
  hash bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
  last4 text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz
);
CREATE INDEX api_key_partner ON api_key (partner_id);

-- The URL and the secret of a partner: one row, read as one snapshot, whose
-- version increases with every change. query writes url, `navlog partner` the
-- encrypted secret.
CREATE TABLE endpoint (
  partner_id bigint PRIMARY KEY REFERENCES partner (id),
  version bigint NOT NULL DEFAULT 1,
  url text,
  secret bytea NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now()
);

-- Commands from query to dispatch (test events, replays): query inserts, dispatch
-- sets done_at.
CREATE TABLE command (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id bigint NOT NULL REFERENCES partner (id),
  kind text NOT NULL CHECK (kind IN ('test', 'replay')),
  event_id uuid,
  created_at timestamptz NOT NULL DEFAULT now(),
  done_at timestamptz
);
CREATE INDEX command_open ON command (id) WHERE done_at IS NULL;

-- Only dispatch writes the following tables.

-- The positions in the referral topics, moved in the transaction that inserts the
-- deliveries. A recreated topic has another id and starts at 0.
CREATE TABLE position (
  topic_id uuid NOT NULL,
  partition integer NOT NULL,
  topic text NOT NULL,
  next_offset bigint NOT NULL,
  PRIMARY KEY (topic_id, partition)
);

-- The last sequence handed out per partner id, known partner or not.
CREATE TABLE stream (
  partner_id bigint PRIMARY KEY,
  last_sequence bigint NOT NULL
);

-- One row per event, for ever. States: schemas/registry/registry.go.
CREATE TABLE delivery (
  event_id uuid PRIMARY KEY,
  partner_id bigint NOT NULL,
  -- Contiguous per partner; NULL for test events, which are not in the stream.
  sequence bigint,
  type text NOT NULL,
  body bytea NOT NULL,
  state text NOT NULL CHECK (state IN ('pending', 'parked', 'delivered', 'failed', 'no_endpoint')),
  -- Attempts that count against the retry budget.
  attempts integer NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  UNIQUE (partner_id, sequence)
);
-- Deliveries to send, each state in its order.
CREATE INDEX delivery_due ON delivery (partner_id, state, due_at, sequence) WHERE state IN ('pending', 'parked');
CREATE INDEX delivery_given_up ON delivery (state) WHERE state IN ('failed', 'no_endpoint');
CREATE INDEX delivery_newest ON delivery (partner_id, created_at, sequence);

-- One row per POST.
CREATE TABLE attempt (
  event_id uuid NOT NULL REFERENCES delivery (event_id),
  number integer NOT NULL,
  url text NOT NULL,
  endpoint_version bigint NOT NULL,
  started_at timestamptz NOT NULL,
  duration_ms integer NOT NULL,
  status integer,
  error text,
  response bytea,
  PRIMARY KEY (event_id, number)
);

-- Breakers that are not closed, so that they survive a restart. One per partner,
-- because only the newest version of its endpoint is called.
CREATE TABLE breaker (
  partner_id bigint PRIMARY KEY,
  endpoint_version bigint NOT NULL,
  url text NOT NULL,
  state text NOT NULL CHECK (state IN ('open', 'half-open')),
  opened_at timestamptz NOT NULL,
  open_until timestamptz NOT NULL,
  open_ms bigint NOT NULL
);

-- The dispatcher that sends a partner's events. Every write of a result checks fence.
CREATE TABLE lease (
  partner_id bigint PRIMARY KEY,
  owner uuid NOT NULL,
  fence bigint NOT NULL,
  until timestamptz NOT NULL
);

-- Records of the referral topics that could not become a delivery.
CREATE TABLE dead_record (
  topic_id uuid NOT NULL,
  partition integer NOT NULL,
  "offset" bigint NOT NULL,
  topic text NOT NULL,
  reason text NOT NULL CHECK (reason IN ('poison', 'conflict')),
  error text NOT NULL,
  value bytea,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (topic_id, partition, "offset")
);

-- The only list of generations and the only pointer to the live one. Written
-- by project and `navlog projection`.
CREATE TABLE generation (
  id integer PRIMARY KEY,
  log_id bytea NOT NULL CHECK (octet_length(log_id) = 16),
  schema text NOT NULL,
  state text NOT NULL CHECK (state IN ('building', 'live', 'standby', 'bad', 'dropped')),
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX generation_live ON generation ((true)) WHERE state = 'live';

-- What each program reports about itself once a second.
CREATE TABLE program_status (
  program text NOT NULL,
  instance text NOT NULL,
  at timestamptz NOT NULL,
  status jsonb NOT NULL,
  PRIMARY KEY (program, instance)
);

-- +goose Down
DROP TABLE program_status, generation, dead_record, lease, breaker, attempt, delivery, stream, position, command, endpoint, api_key, partner;
