-- name: ListDeliveries :many
-- Newest first, from the beginning or after a given delivery. The columns of the order never change.
-- Sequence 0 stands for a test event, which sorts before the other deliveries of its time. Null
-- disables a filter: it is planned for each call (Replanned).
SELECT event_id, coalesce(sequence, 0)::bigint AS sequence, type, state, attempts, due_at, created_at, finished_at, corrected_at
FROM delivery d WHERE partner_id = sqlc.arg(partner_id)
  AND (sqlc.narg(state)::text IS NULL OR d.state = sqlc.narg(state)::text)
  AND (sqlc.narg(type)::text IS NULL OR d.type = sqlc.narg(type)::text)
  AND (sqlc.narg(tx_hash)::bytea IS NULL OR d.tx_hash = sqlc.narg(tx_hash)::bytea)
  AND d.created_at >= coalesce(sqlc.narg(first_at)::timestamptz, '-infinity') AND d.created_at <= coalesce(sqlc.narg(last_at)::timestamptz, 'infinity')
  AND d.created_at <= coalesce(sqlc.narg(after_at)::timestamptz, 'infinity')
  AND (sqlc.narg(after_at)::timestamptz IS NULL OR d.created_at < sqlc.narg(after_at)::timestamptz
    OR coalesce(d.sequence, 9223372036854775807) < coalesce(nullif(sqlc.arg(after_sequence)::bigint, 0), 9223372036854775807)
    OR coalesce(d.sequence, 0) = sqlc.arg(after_sequence)::bigint AND d.event_id > sqlc.arg(after_event)::uuid)
ORDER BY d.created_at DESC, d.sequence DESC, d.event_id LIMIT sqlc.arg('limit') OFFSET sqlc.arg('offset');

-- name: CountFiltered :one
-- The number of filtered deliveries, counted up to at_most.
SELECT count(*) AS deliveries FROM (
  SELECT FROM delivery d WHERE d.partner_id = sqlc.arg(partner_id)
    AND (sqlc.narg(state)::text IS NULL OR d.state = sqlc.narg(state)::text)
    AND (sqlc.narg(type)::text IS NULL OR d.type = sqlc.narg(type)::text)
    AND (sqlc.narg(tx_hash)::bytea IS NULL OR d.tx_hash = sqlc.narg(tx_hash)::bytea)
    AND d.created_at >= coalesce(sqlc.narg(first_at)::timestamptz, '-infinity') AND d.created_at <= coalesce(sqlc.narg(last_at)::timestamptz, 'infinity')
  LIMIT sqlc.arg(at_most)::integer) counted;

-- name: CountDeliveries :one
-- A partner's sequence has no gaps and deliveries are kept for ever, so the last sequence
-- is their number, without counting. Test events have no sequence, and are few.
SELECT (coalesce((SELECT max(d.sequence) FROM delivery d WHERE d.partner_id = sqlc.arg(partner_id)), 0)
  + (SELECT count(*) FROM delivery t WHERE t.partner_id = sqlc.arg(partner_id) AND t.sequence IS NULL))::bigint AS deliveries;

-- name: DeliveryAttempts :many
-- The newest attempts of each event, oldest first.
SELECT a.event_id, a.number, a.url, a.started_at, a.duration_ms, a.status, a.error
FROM unnest(sqlc.arg(event_ids)::uuid[]) AS e (id) CROSS JOIN LATERAL (
  SELECT l.event_id, l.number, l.url, l.started_at, l.duration_ms, l.status, l.error
  FROM attempt l WHERE l.event_id = e.id ORDER BY l.number DESC LIMIT sqlc.arg(of_each)
) a ORDER BY a.event_id, a.number;

-- name: EventsAfter :many
-- The pull stream: stored bytes, ordered by the partner's sequence.
SELECT sequence::bigint AS sequence, body FROM delivery d
WHERE partner_id = sqlc.arg(partner_id) AND d.sequence > sqlc.arg(sequence)::bigint ORDER BY d.sequence LIMIT sqlc.arg('limit');

-- name: LastSuccess :one
-- The time of a partner's last successful delivery; no row: there was none.
SELECT finished_at FROM delivery
WHERE partner_id = $1 AND state = 'delivered' AND finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT 1;

-- name: LastFailure :one
-- The time of a partner's last failed attempt; no row: there was none.
SELECT a.started_at FROM attempt a WHERE a.failed_partner_id = sqlc.arg(partner_id)::bigint ORDER BY a.started_at DESC LIMIT 1;

-- name: DeliveryOwner :one
SELECT partner_id FROM delivery WHERE event_id = $1;

-- name: ListDeliveriesOf :many
-- For operators, newest first: of one partner or (0) of all, in one state or ('') in
-- all.
SELECT event_id, partner_id, coalesce(sequence, 0)::bigint AS sequence, type, state, attempts, due_at, created_at, finished_at
FROM delivery d WHERE (sqlc.arg(partner_id)::bigint = 0 OR partner_id = sqlc.arg(partner_id)::bigint)
  AND (sqlc.arg(state)::text = '' OR state = sqlc.arg(state)::text)
ORDER BY d.created_at DESC, d.sequence DESC, d.event_id LIMIT sqlc.arg('limit');

-- name: GetDelivery :one
SELECT event_id, partner_id, coalesce(sequence, 0)::bigint AS sequence, type, body, state, attempts, due_at, created_at, finished_at, corrected_at,
  coalesce(traceparent, '')::text AS traceparent
FROM delivery WHERE event_id = $1;

-- name: AttemptLog :many
-- Everything known about the POSTs of an event.
SELECT number, url, started_at, duration_ms, status, error, response, dns_us, connect_us, tls_us, first_byte_us
FROM attempt WHERE event_id = $1 ORDER BY number;

-- name: EndpointDays :many
-- The attempts of a partner on each of some days (UTC), the last one first: deliveries that
-- succeeded then, failed attempts, and the median duration of the newest successful attempts,
-- -1 without one. Each day reads at most at_most rows of each of two indexes.
SELECT to_char(days.day, 'YYYY-MM-DD') AS day, succeeded.n AS succeeded, failed.n AS failed, typical.ms AS median_ms
FROM (
  SELECT d.day, d.day::timestamp AT TIME ZONE 'UTC' AS first, (d.day + 1)::timestamp AT TIME ZONE 'UTC' AS next
  FROM (SELECT coalesce(sqlc.narg(last_day)::date, (now() AT TIME ZONE 'UTC')::date) - n AS day
    FROM generate_series(0, sqlc.arg(days)::integer - 1) AS n) d
) days CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM (SELECT FROM delivery s WHERE s.partner_id = sqlc.arg(partner_id) AND s.state = 'delivered'
    AND s.finished_at >= days.first AND s.finished_at < days.next LIMIT sqlc.arg(at_most)::integer) counted
) succeeded CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM (SELECT FROM attempt f WHERE f.failed_partner_id = sqlc.arg(partner_id)
    AND f.started_at >= days.first AND f.started_at < days.next LIMIT sqlc.arg(at_most)::integer) counted
) failed CROSS JOIN LATERAL (
  SELECT coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY answered.duration_ms), -1)::integer AS ms
  FROM (SELECT s.event_id FROM delivery s WHERE s.partner_id = sqlc.arg(partner_id) AND s.state = 'delivered'
    AND s.finished_at >= days.first AND s.finished_at < days.next ORDER BY s.finished_at DESC LIMIT sqlc.arg(measured)::integer) newest
  CROSS JOIN LATERAL (SELECT a.duration_ms FROM attempt a WHERE a.event_id = newest.event_id AND a.status BETWEEN 200 AND 299
    ORDER BY a.number DESC LIMIT 1) answered
) typical
ORDER BY days.day DESC;
