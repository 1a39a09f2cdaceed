-- +goose Up

-- A breaker that opened because nothing was accepted, although the receiver answered:
-- only an accepted probe closes it. Written by dispatch.
ALTER TABLE breaker ADD COLUMN refusing boolean NOT NULL DEFAULT false;

-- Up to which time old details were pruned. Written by dispatch.
CREATE TABLE retention (
  what text PRIMARY KEY CHECK (what IN ('attempt')),
  until timestamptz NOT NULL
);
INSERT INTO retention SELECT 'attempt', coalesce(min(started_at), now()) FROM attempt;

-- Attempts are stored roughly in the order of their times: a summary of each page
-- range finds the old ones, and costs almost nothing at an insert.
CREATE INDEX attempt_age ON attempt USING brin (started_at) WITH (autosummarize = on);
CREATE INDEX command_done ON command (done_at) WHERE done_at IS NOT NULL;
CREATE INDEX delivery_test ON delivery (finished_at) WHERE sequence IS NULL;

-- +goose Down
DROP INDEX attempt_age, command_done, delivery_test;
DROP TABLE retention;
ALTER TABLE breaker DROP COLUMN refusing;
