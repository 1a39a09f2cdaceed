-- name: CreatePartner :one
-- Takes the id after the largest one, including ids chosen by hand.
INSERT INTO partner (id, name) SELECT coalesce(max(id), 0) + 1, sqlc.arg(name) FROM partner RETURNING id;

-- name: CreatePartnerWithID :one
INSERT INTO partner (id, name) VALUES ($1, $2) RETURNING id;

-- name: CreateEndpoint :exec
INSERT INTO endpoint (partner_id, secret) VALUES ($1, $2);

-- name: AnyEndpoint :one
-- A sealed secret to check the key with.
SELECT partner_id, secret FROM endpoint ORDER BY partner_id LIMIT 1;

-- name: CreateKey :exec
INSERT INTO api_key (partner_id, hash, last4) VALUES ($1, $2, $3);

-- name: ListPartners :many
-- For operators.
SELECT p.id, p.name, p.disabled, p.rate_limit, p.created_at, e.url, e.held,
  (SELECT count(*) FROM api_key k WHERE k.partner_id = p.id AND k.revoked_at IS NULL) AS live_keys
FROM partner p JOIN endpoint e ON e.partner_id = p.id ORDER BY p.id;

-- name: GetPartner :one
SELECT p.id, p.name, p.disabled, p.rate_limit, p.created_at, e.url, e.version, e.updated_at, e.held
FROM partner p JOIN endpoint e ON e.partner_id = p.id WHERE p.id = $1;

-- name: SetPartnerDisabled :execrows
UPDATE partner SET disabled = $2 WHERE id = $1;

-- name: SetPartnerRateLimit :execrows
UPDATE partner SET rate_limit = sqlc.narg('rate_limit') WHERE id = $1;

-- name: LockPartner :one
-- Locks the row of the partner's endpoint, and returns its URL and the partner's name. Every change of the partner's
-- keys, endpoint and certificates has this lock. (It needs the right to update the row, which serve has only there.)
SELECT e.url, p.name FROM endpoint e JOIN partner p ON p.id = e.partner_id WHERE e.partner_id = $1 FOR UPDATE OF e;

-- name: ListLiveKeys :many
SELECT id, last4, created_at FROM api_key WHERE partner_id = $1 AND revoked_at IS NULL ORDER BY id;

-- name: RevokeKey :exec
UPDATE api_key SET revoked_at = now() WHERE id = $1 AND revoked_at IS NULL;

-- name: RevokeKeys :many
-- The live keys of a partner with this ending; '' for all of them.
UPDATE api_key SET revoked_at = now()
WHERE partner_id = sqlc.arg(partner_id) AND revoked_at IS NULL AND sqlc.arg(last4)::text IN ('', last4)
RETURNING last4;

-- name: PartnerByKey :one
-- The caller of the API: one row for a live key, whatever the partner's state.
SELECT p.id, p.name, p.disabled, p.rate_limit
FROM api_key k JOIN partner p ON p.id = k.partner_id
WHERE k.hash = $1 AND k.revoked_at IS NULL;

-- name: OwnerOfKey :one
-- The partner of a key, even if the key was revoked.
SELECT partner_id FROM api_key WHERE hash = $1;

-- name: PartnersByKeys :many
-- PartnerByKey for many keys at once: no row for a key that is not live.
SELECT k.hash, p.id, p.name, p.disabled, p.rate_limit
FROM api_key k JOIN partner p ON p.id = k.partner_id
WHERE k.hash = ANY(sqlc.arg(hashes)::bytea[]) AND k.revoked_at IS NULL;

-- name: SetWebhookURL :execrows
UPDATE endpoint SET url = $2, version = version + 1, updated_at = now() WHERE partner_id = $1;

-- name: SetSecret :execrows
-- Without overlap; this also ends a rotation under way.
UPDATE endpoint SET secret = $2, next_secret = NULL, next_at = NULL,
  version = version + CASE WHEN next_at <= now() THEN 2 ELSE 1 END, updated_at = now()
WHERE partner_id = $1;

-- name: RotateSecret :execrows
-- With overlap. The next secret of a finished rotation is the old one now. No row: the last
-- rotation has not ended, and replacing its secret would mean that the partner never sees a
-- signature with it.
UPDATE endpoint SET secret = CASE WHEN next_at <= now() THEN next_secret ELSE secret END,
  next_secret = sqlc.arg(next_secret)::bytea, next_at = now() + sqlc.arg(overlap_seconds)::bigint * interval '1 second',
  version = version + CASE WHEN next_at <= now() THEN 2 ELSE 1 END, updated_at = now()
WHERE partner_id = sqlc.arg(partner_id) AND (next_at IS NULL OR next_at <= now());

-- name: EndOfRotation :one
-- When the last rotation ends or ended; now if there was none.
SELECT coalesce(next_at, now())::timestamptz AS at FROM endpoint WHERE partner_id = $1;

-- name: HoldEndpoint :execrows
UPDATE endpoint SET held = $2 WHERE partner_id = $1;

-- name: CreateCommand :one
INSERT INTO command (partner_id, kind, event_id) VALUES ($1, $2, $3) RETURNING id;

-- name: CreateBucket :exec
INSERT INTO rate_bucket (partner_id, policy) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: DrawTokens :one
-- Takes up to want requests from the quota of a window, which is window_ns long and starts
-- with the first request after the previous window; at is now. A window that ends later than
-- window_ns from now was started by a clock that is ahead, and is shortened. No row: there is no
-- bucket yet.
WITH bucket AS (
  SELECT CASE WHEN b.window_end > sqlc.arg(at)::bigint THEN least(b.window_end, sqlc.arg(at)::bigint + sqlc.arg(window_ns)::bigint)
      ELSE sqlc.arg(at)::bigint + sqlc.arg(window_ns)::bigint END AS window_end,
    CASE WHEN b.window_end > sqlc.arg(at)::bigint THEN b.used ELSE 0 END AS used
  FROM rate_bucket b WHERE b.partner_id = sqlc.arg(partner_id) AND b.policy = sqlc.arg(policy) FOR UPDATE
), drawn AS (
  SELECT greatest(0, least(sqlc.arg(want)::bigint, sqlc.arg(quota)::bigint - bucket.used)) AS tokens, bucket.window_end, bucket.used FROM bucket
)
UPDATE rate_bucket b SET window_end = drawn.window_end, used = drawn.used + drawn.tokens
FROM drawn WHERE b.partner_id = sqlc.arg(partner_id) AND b.policy = sqlc.arg(policy)
RETURNING drawn.tokens::bigint AS tokens, b.window_end, b.used;

-- name: CreateReplayRange :one
INSERT INTO command (partner_id, kind, first_sequence, last_sequence, only_state)
VALUES (sqlc.arg(partner_id), 'replay-range', sqlc.arg(first_sequence)::bigint, sqlc.arg(last_sequence)::bigint, sqlc.narg(only_state))
RETURNING id;

-- name: CommandResult :one
SELECT done_at, deliveries FROM command WHERE id = $1;
