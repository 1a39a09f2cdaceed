-- name: ClaimRetention :one
-- From when on old attempts are looked at; no row: another dispatcher does.
SELECT until FROM retention WHERE what = 'attempt' FOR UPDATE SKIP LOCKED;

-- name: PruneAttempts :one
-- Of the attempts of a span of time the last ones of each event stay, without the
-- body of the answer and the times of the phases.
WITH old AS MATERIALIZED (
  SELECT o.event_id, o.number, (SELECT max(l.number) FROM attempt l WHERE l.event_id = o.event_id) AS last
  FROM attempt o WHERE o.started_at >= sqlc.arg(first)::timestamptz AND o.started_at < sqlc.arg(until)::timestamptz
), gone AS (
  DELETE FROM attempt a USING old
  WHERE a.event_id = old.event_id AND a.number = old.number AND old.number <= old.last - sqlc.arg(attempts_kept)::integer
  RETURNING a.number
), stripped AS (
  UPDATE attempt a SET response = NULL, dns_us = NULL, connect_us = NULL, tls_us = NULL, first_byte_us = NULL FROM old
  WHERE a.event_id = old.event_id AND a.number = old.number AND old.number > old.last - sqlc.arg(attempts_kept)::integer
    AND (a.response IS NOT NULL OR a.first_byte_us IS NOT NULL)
  RETURNING a.number
)
SELECT (SELECT count(*) FROM gone) AS gone, (SELECT count(*) FROM stripped) AS stripped;

-- name: MoveRetention :exec
UPDATE retention SET until = sqlc.arg(until) WHERE what = 'attempt';

-- name: PruneCommands :execrows
DELETE FROM command WHERE id IN (SELECT c.id FROM command c WHERE c.done_at < sqlc.arg(before)::timestamptz ORDER BY c.done_at LIMIT sqlc.arg('limit'));

-- name: PruneTests :execrows
-- Test events are in no stream: an old one goes as a whole.
WITH gone AS (
  DELETE FROM delivery d WHERE d.event_id IN (
    SELECT t.event_id FROM delivery t WHERE t.sequence IS NULL AND t.finished_at < sqlc.arg(before)::timestamptz ORDER BY t.finished_at LIMIT sqlc.arg('limit'))
    AND d.sequence IS NULL AND d.finished_at < sqlc.arg(before)::timestamptz
  RETURNING d.event_id
), log AS (
  DELETE FROM attempt a USING gone WHERE a.event_id = gone.event_id
)
SELECT event_id FROM gone;
