-- name: Audit :exec
INSERT INTO audit (operator, command, partner_id, detail, outcome)
VALUES (sqlc.arg(operator), sqlc.arg(command), sqlc.narg(partner_id), sqlc.arg(detail), sqlc.arg(outcome));

-- name: ListAudit :many
-- Newest first: about one partner or (0) everything.
SELECT id, at, operator, login, command, coalesce(partner_id, 0)::bigint AS partner_id, detail, outcome FROM audit a
WHERE sqlc.arg(partner_id)::bigint = 0 OR a.partner_id = sqlc.arg(partner_id)::bigint
ORDER BY a.id DESC LIMIT sqlc.arg('limit');

-- name: LockSecrets :many
-- All sealed secrets. The lock keeps rotations from happening between this read and the
-- writes of ReplaceSealed.
SELECT partner_id, secret, next_secret FROM endpoint ORDER BY partner_id FOR UPDATE;

-- name: SealedSecrets :many
-- All sealed secrets, to check whether a key opens them.
SELECT partner_id, secret, next_secret FROM endpoint ORDER BY partner_id;

-- name: ReplaceSealed :exec
-- The same secrets under another key: nothing changes for receivers, so the version stays.
UPDATE endpoint SET secret = sqlc.arg(secret), next_secret = sqlc.narg(next_secret) WHERE partner_id = sqlc.arg(partner_id);

-- name: DispatchersWithoutKey :one
-- How many running dispatchers cannot open values sealed with this key.
SELECT count(*) FROM dispatcher d WHERE d.until > now() AND NOT coalesce(sqlc.arg(key_id)::text = ANY(d.key_ids), false);

-- name: FollowLog :execrows
-- From now on deliveries are made from this log. The lock keeps dispatchers from moving
-- positions with the old log.
UPDATE position SET log_id = sqlc.arg(log_id)::bytea WHERE log_id <> sqlc.arg(log_id)::bytea;
