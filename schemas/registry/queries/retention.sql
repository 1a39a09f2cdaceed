-- name: RetentionStart :one
-- The time before which details are old, by PostgreSQL's clock: that of one dispatcher may be
-- wrong, and what is pruned too early is lost.
SELECT (now() - sqlc.arg(days)::integer * interval '1 day')::timestamptz AS start;

-- name: ClaimRetention :one
-- The next part of the attempts that are old: from the time up to which they are pruned, at_most attempts and those of the
-- same time as the last one, or all that are left. No row: another dispatcher prunes, or none is old.
SELECT r.until AS first, coalesce((
  SELECT o.started_at + interval '1 microsecond' FROM attempt o
  WHERE o.started_at >= r.until AND o.started_at < sqlc.arg(before)::timestamptz
  ORDER BY o.started_at OFFSET sqlc.arg(at_most)::integer - 1 LIMIT 1), sqlc.arg(before)::timestamptz)::timestamptz AS until
FROM retention r WHERE r.what = 'attempt' AND r.until < sqlc.arg(before)::timestamptz FOR UPDATE SKIP LOCKED;

-- name: PruneAttempts :one
-- Prunes the attempts of a time range, and the earlier ones of the same events, which were the last ones when they were
-- pruned: the last ones of each event stay, without response body and phases. (As a part of ClaimRetention it would read
-- the whole table, because the planner would not know how short the range is.)
WITH old AS MATERIALIZED (
  SELECT o.event_id, o.number, (SELECT max(l.number) FROM attempt l WHERE l.event_id = o.event_id) AS last
  FROM attempt o WHERE o.started_at >= sqlc.arg(first)::timestamptz AND o.started_at < sqlc.arg(until)::timestamptz
), gone AS (
  DELETE FROM attempt a USING old
  WHERE a.event_id = old.event_id AND a.number <= old.number AND a.number <= old.last - sqlc.arg(attempts_kept)::integer
  RETURNING a.number
), stripped AS (
  UPDATE attempt a SET response = NULL, dns_us = NULL, connect_us = NULL, tls_us = NULL, first_byte_us = NULL FROM old
  WHERE a.event_id = old.event_id AND a.number = old.number AND old.number > old.last - sqlc.arg(attempts_kept)::integer
    AND (a.response IS NOT NULL OR a.first_byte_us IS NOT NULL)
  RETURNING a.number
), moved AS (
  UPDATE retention SET until = sqlc.arg(until)::timestamptz WHERE what = 'attempt'
)
SELECT (SELECT count(*) FROM gone) AS gone, (SELECT count(*) FROM stripped) AS stripped;

-- name: PruneCommands :execrows
DELETE FROM command WHERE id IN (SELECT c.id FROM command c WHERE c.done_at < sqlc.arg(before)::timestamptz ORDER BY c.done_at LIMIT sqlc.arg('limit'));

-- name: PruneTests :execrows
-- Test events are in no stream, so an old one is deleted completely.
WITH gone AS (
  DELETE FROM delivery d WHERE d.event_id IN (
    SELECT t.event_id FROM delivery t WHERE t.sequence IS NULL AND t.finished_at < sqlc.arg(before)::timestamptz ORDER BY t.finished_at LIMIT sqlc.arg('limit'))
    AND d.sequence IS NULL AND d.finished_at < sqlc.arg(before)::timestamptz
  RETURNING d.event_id
), log AS (
  DELETE FROM attempt a USING gone WHERE a.event_id = gone.event_id
)
SELECT event_id FROM gone;
