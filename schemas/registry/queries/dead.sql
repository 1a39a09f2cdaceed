-- name: InsertDeadRecord :execrows
-- 0 rows: it is stored already, because the record was read before.
INSERT INTO dead_record (topic_id, partition, "offset", topic, reason, error, value)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING;

-- name: ListDeadRecords :many
-- The newest first; resolved ones only if requested.
SELECT id, topic, partition, "offset", reason, error, at, retried_at, resolved_at FROM dead_record d
WHERE sqlc.arg(resolved_too)::boolean OR d.resolved_at IS NULL ORDER BY d.id DESC LIMIT sqlc.arg('limit');

-- name: GetDeadRecord :one
SELECT id, topic_id, topic, partition, "offset", reason, error, value, at, retry_at, retried_at, resolved_at FROM dead_record WHERE id = $1;

-- name: RetryDeadRecords :many
-- Requests a retry of these, or (if none are given) of all that are not resolved.
UPDATE dead_record SET retry_at = clock_timestamp()
WHERE resolved_at IS NULL AND (id = ANY(sqlc.arg(ids)::bigint[]) OR cardinality(sqlc.arg(ids)::bigint[]) = 0)
RETURNING id;

-- name: RetriedDeadRecords :one
-- How many of these still wait for their retry, and how many are resolved.
SELECT count(*) FILTER (WHERE d.retried_at IS NULL OR d.retried_at < d.retry_at) AS waiting,
  count(*) FILTER (WHERE d.resolved_at IS NOT NULL) AS resolved
FROM dead_record d WHERE d.id = ANY(sqlc.arg(ids)::bigint[]);

-- name: ClaimDeadRecord :one
-- The next one to retry; no row: there is none, or other dispatchers have them.
SELECT id, topic_id, topic, partition, "offset", value, retry_at::timestamptz AS retry_at FROM dead_record
WHERE retry_at IS NOT NULL AND (retried_at IS NULL OR retried_at < retry_at)
ORDER BY retry_at, id LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: ResolveDeadRecord :exec
UPDATE dead_record SET retried_at = sqlc.arg(retried_at)::timestamptz, resolved_at = now() WHERE id = sqlc.arg(id);

-- name: KeepDeadRecord :exec
-- It was retried and still cannot be a delivery.
UPDATE dead_record SET retried_at = sqlc.arg(retried_at)::timestamptz, reason = sqlc.arg(reason), error = sqlc.arg(error) WHERE id = sqlc.arg(id);
