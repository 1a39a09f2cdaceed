-- +goose Up

-- A record that could not become a delivery may be valid for a newer dispatcher: it
-- has an id and can be retried.
ALTER TABLE dead_record
  ADD COLUMN id bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
  -- When a retry was last requested. Written by `navlog webhook`.
  ADD COLUMN retry_at timestamptz,
  -- Which request was done last, and when the record became a delivery or was found
  -- to be one. Written by dispatch.
  ADD COLUMN retried_at timestamptz,
  ADD COLUMN resolved_at timestamptz;
CREATE INDEX dead_record_retry ON dead_record (retry_at) WHERE retry_at IS NOT NULL AND (retried_at IS NULL OR retried_at < retry_at);
CREATE INDEX dead_record_open ON dead_record (id) WHERE resolved_at IS NULL;

-- +goose Down
ALTER TABLE dead_record DROP COLUMN id, DROP COLUMN retry_at, DROP COLUMN retried_at, DROP COLUMN resolved_at;
