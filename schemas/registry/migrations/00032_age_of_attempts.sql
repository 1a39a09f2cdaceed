-- +goose NO TRANSACTION
-- +goose Up

-- Finds the oldest attempts. The index by page ranges found them only during the first retention: later the table
-- reuses the space of deleted attempts, so that most ranges have old and new ones. CONCURRENTLY, because dispatchers
-- write attempts meanwhile. An interrupted migration may leave an index that is not valid.
DROP INDEX CONCURRENTLY IF EXISTS attempt_started;
CREATE INDEX CONCURRENTLY attempt_started ON attempt (started_at);
DROP INDEX CONCURRENTLY IF EXISTS attempt_age;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS attempt_age ON attempt USING brin (started_at) WITH (autosummarize = on);
DROP INDEX CONCURRENTLY IF EXISTS attempt_started;
