-- +goose Up

-- A limit is a number of requests per window of one minute, which begins with its first
-- request. Requests late in a window do not raise the number.
-- window_end is in Unix nanoseconds. Only earlier versions used full_at; it is neither
-- read nor written any more. Tests and replays have a separate limit.
ALTER TABLE rate_bucket
  DROP CONSTRAINT rate_bucket_policy_check,
  ADD CONSTRAINT rate_bucket_policy_check CHECK (policy IN ('partner', 'webhooks', 'sends')),
  ALTER COLUMN full_at SET DEFAULT 0,
  ADD COLUMN window_end bigint NOT NULL DEFAULT 0,
  ADD COLUMN used bigint NOT NULL DEFAULT 0;

-- +goose Down
DELETE FROM rate_bucket WHERE policy = 'sends';
ALTER TABLE rate_bucket
  DROP COLUMN window_end, DROP COLUMN used,
  ALTER COLUMN full_at DROP DEFAULT,
  DROP CONSTRAINT rate_bucket_policy_check,
  ADD CONSTRAINT rate_bucket_policy_check CHECK (policy IN ('partner', 'webhooks'));
