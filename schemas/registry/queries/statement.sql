-- name: StatementKeys :many
-- The keys that have signed statements, oldest first.
SELECT public_key, since, retired_at FROM statement_key ORDER BY since, public_key;

-- name: StatementKeyRetired :one
-- Whether a known key is retired; no row: the key is unknown.
SELECT (retired_at IS NOT NULL)::boolean AS retired FROM statement_key WHERE public_key = $1;

-- name: RetireStatementKey :exec
-- Retires the current signing key.
UPDATE statement_key SET retired_at = now() WHERE retired_at IS NULL;

-- name: AddStatementKey :exec
INSERT INTO statement_key (public_key) VALUES ($1);
