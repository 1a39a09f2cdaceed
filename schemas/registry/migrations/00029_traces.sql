-- +goose Up

-- The trace of the event, from its record in the referral topic (schemas/telemetry): all attempts belong to it. NULL
-- if tracing was off when the record was read.
ALTER TABLE delivery ADD COLUMN traceparent text;

-- +goose Down
ALTER TABLE delivery DROP COLUMN traceparent;
