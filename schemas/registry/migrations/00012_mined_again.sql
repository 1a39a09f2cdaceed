-- +goose Up

-- The mining of its transaction that a delivery describes: before finality a
-- transaction may be mined again in another block (docs/adr/0007). NULL for test events, and for
-- events from before this version. seq is of the referral's record in the log.
ALTER TABLE delivery
  ADD COLUMN tx_hash bytea,
  ADD COLUMN block_hash bytea,
  ADD COLUMN log_index bigint,
  ADD COLUMN seq bigint,
  -- How often the body was replaced, and when the newest body replaced one that may
  -- have been sent.
  ADD COLUMN revision integer NOT NULL DEFAULT 0,
  ADD COLUMN corrected_at timestamptz;
CREATE INDEX delivery_mined ON delivery USING hash (tx_hash);

-- The replaced bodies with their revisions. Kept for ever, because they may have been
-- sent. Written by dispatch.
CREATE TABLE correction (
  event_id uuid NOT NULL REFERENCES delivery (event_id),
  revision integer NOT NULL,
  body bytea NOT NULL,
  replaced_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (event_id, revision)
);

-- +goose Down
DROP TABLE correction;
DROP INDEX delivery_mined;
ALTER TABLE delivery
  DROP COLUMN tx_hash, DROP COLUMN block_hash, DROP COLUMN log_index, DROP COLUMN seq, DROP COLUMN revision, DROP COLUMN corrected_at;
