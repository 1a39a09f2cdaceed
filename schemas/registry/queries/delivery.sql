-- name: ListDeliveries :many
-- Newest first, from the beginning or after the delivery that a row before said: what orders them never changes.
-- Sequence 0: a test event, which has none and goes before those of its time.
SELECT event_id, coalesce(sequence, 0)::bigint AS sequence, type, state, attempts, due_at, created_at, finished_at, corrected_at
FROM delivery d WHERE partner_id = sqlc.arg(partner_id) AND d.created_at <= coalesce(sqlc.narg(after_at)::timestamptz, 'infinity')
  AND (sqlc.narg(after_at)::timestamptz IS NULL OR d.created_at < sqlc.narg(after_at)::timestamptz
    OR coalesce(d.sequence, 9223372036854775807) < coalesce(nullif(sqlc.arg(after_sequence)::bigint, 0), 9223372036854775807)
    OR coalesce(d.sequence, 0) = sqlc.arg(after_sequence)::bigint AND d.event_id > sqlc.arg(after_event)::uuid)
ORDER BY d.created_at DESC, d.sequence DESC, d.event_id LIMIT sqlc.arg('limit') OFFSET sqlc.arg('offset');

-- name: FilterDeliveries :many
-- ListDeliveries of those that all given filters hold for; null leaves a filter out.
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
-- How many these are, counted up to the reach of page x pageSize.
SELECT count(*) AS deliveries FROM (
  SELECT FROM delivery d WHERE d.partner_id = sqlc.arg(partner_id)
    AND (sqlc.narg(state)::text IS NULL OR d.state = sqlc.narg(state)::text)
    AND (sqlc.narg(type)::text IS NULL OR d.type = sqlc.narg(type)::text)
    AND (sqlc.narg(tx_hash)::bytea IS NULL OR d.tx_hash = sqlc.narg(tx_hash)::bytea)
    AND d.created_at >= coalesce(sqlc.narg(first_at)::timestamptz, '-infinity') AND d.created_at <= coalesce(sqlc.narg(last_at)::timestamptz, 'infinity')
  LIMIT sqlc.arg(at_most)::integer) counted;

-- name: CountDeliveries :one
-- A partner's sequence has no gaps and deliveries are kept for ever, so its end is
-- their number, without counting them. Test events have none, and are few.
SELECT (coalesce((SELECT max(d.sequence) FROM delivery d WHERE d.partner_id = sqlc.arg(partner_id)), 0)
  + (SELECT count(*) FROM delivery t WHERE t.partner_id = sqlc.arg(partner_id) AND t.sequence IS NULL))::bigint AS deliveries;

-- name: CountDeliveriesByState :many
SELECT state, count(*) AS deliveries FROM delivery GROUP BY state ORDER BY state;

-- name: DeliveryAttempts :many
-- The newest of each event, oldest first.
SELECT a.event_id, a.number, a.url, a.started_at, a.duration_ms, a.status, a.error
FROM unnest(sqlc.arg(event_ids)::uuid[]) AS e (id) CROSS JOIN LATERAL (
  SELECT l.event_id, l.number, l.url, l.started_at, l.duration_ms, l.status, l.error
  FROM attempt l WHERE l.event_id = e.id ORDER BY l.number DESC LIMIT sqlc.arg(of_each)
) a ORDER BY a.event_id, a.number;

-- name: EventsAfter :many
-- The pull stream: stored bytes, in the order of the partner's sequence.
SELECT sequence::bigint AS sequence, body FROM delivery d
WHERE partner_id = sqlc.arg(partner_id) AND d.sequence > sqlc.arg(sequence)::bigint ORDER BY d.sequence LIMIT sqlc.arg('limit');

-- name: LastSuccess :one
-- When a partner was last told; no row for never.
SELECT finished_at FROM delivery
WHERE partner_id = $1 AND state = 'delivered' AND finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT 1;

-- name: LastFailure :one
-- When telling a partner last went wrong; no row for never.
SELECT a.started_at FROM attempt a WHERE a.failed_partner_id = sqlc.arg(partner_id)::bigint ORDER BY a.started_at DESC LIMIT 1;

-- name: DeliveryOwner :one
SELECT partner_id FROM delivery WHERE event_id = $1;

-- name: ListDeliveriesOf :many
-- For operators, newest first: of one partner or (0) of all, in one state or
-- ('') in all.
SELECT event_id, partner_id, coalesce(sequence, 0)::bigint AS sequence, type, state, attempts, due_at, created_at, finished_at
FROM delivery d WHERE (sqlc.arg(partner_id)::bigint = 0 OR partner_id = sqlc.arg(partner_id)::bigint)
  AND (sqlc.arg(state)::text = '' OR state = sqlc.arg(state)::text)
ORDER BY d.created_at DESC, d.sequence DESC, d.event_id LIMIT sqlc.arg('limit');

-- name: GetDelivery :one
SELECT event_id, partner_id, coalesce(sequence, 0)::bigint AS sequence, type, body, state, attempts, due_at, created_at, finished_at, corrected_at
FROM delivery WHERE event_id = $1;

-- name: AttemptLog :many
-- All that is known of the POSTs of an event.
SELECT number, url, endpoint_version, started_at, duration_ms, status, error, response, dns_us, connect_us, tls_us, first_byte_us
FROM attempt WHERE event_id = $1 ORDER BY number;
