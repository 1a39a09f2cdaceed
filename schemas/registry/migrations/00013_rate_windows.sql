-- +goose Up

-- A limit is so many requests in each minute, which begins with the first of them: it
-- grants what it says, and no more because some of them come later in the minute.
-- window_end is in Unix nanoseconds. full_at is of versions before, which read nothing
-- else, and is neither read nor written any more. Tests and replays have a limit of
-- their own.
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
