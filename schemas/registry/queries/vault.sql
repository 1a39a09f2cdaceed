-- name: AddVaultCommand :one
INSERT INTO vault_command (chain_id, kind, vault, argument) VALUES ($1, $2, $3, coalesce(sqlc.arg(argument)::bytea, '')) RETURNING id;

-- name: PendingVaultCommands :many
SELECT id, kind, vault, argument FROM vault_command WHERE chain_id = $1 AND outcome IS NULL ORDER BY id LIMIT 100;

-- name: FinishVaultCommand :exec
-- A second outcome changes nothing: a replaced writer may still report one.
UPDATE vault_command SET outcome = sqlc.arg(outcome)::text, detail = sqlc.arg(detail), finished_at = now()
WHERE id = sqlc.arg(id) AND outcome IS NULL;

-- name: VaultCommand :one
SELECT kind, vault, coalesce(outcome, '')::text AS outcome, detail FROM vault_command WHERE id = $1;
