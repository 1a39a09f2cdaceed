-- name: ListGenerations :many
SELECT id, log_id, schema, state, created_at, without, outdated, vaults FROM generation ORDER BY id;

-- name: LiveGeneration :one
SELECT id, log_id, schema, vaults FROM generation WHERE state = 'live';

-- name: CreateGeneration :exec
INSERT INTO generation (id, log_id, schema, state, without, vaults)
VALUES ($1, $2, $3, $4, coalesce(sqlc.arg(without)::bytea[], '{}'), coalesce(sqlc.arg(vaults)::bytea[], '{}'));

-- name: SetGenerationState :execrows
UPDATE generation SET state = sqlc.arg(new_state) WHERE id = sqlc.arg(id) AND state = sqlc.arg(old_state);

-- name: MarkGenerationBad :execrows
UPDATE generation SET state = 'bad' WHERE id = $1 AND state IN ('live', 'standby', 'building', 'bad');

-- name: MarkGenerationOutdated :exec
UPDATE generation SET outdated = true WHERE id = $1 AND NOT outdated;

-- name: KeepGenerationReport :exec
UPDATE generation SET report = $2 WHERE id = $1;

-- name: GenerationReport :one
SELECT state, report FROM generation WHERE id = $1;

-- name: PutStatus :exec
INSERT INTO program_status (program, instance, at, status) VALUES ($1, $2, now(), $3)
ON CONFLICT (program, instance) DO UPDATE SET at = now(), status = excluded.status;

-- name: ListStatus :many
SELECT program, instance, at, (extract(epoch FROM now() - at) * 1000)::bigint AS age_ms, status
FROM program_status ORDER BY program, instance;

-- name: DeleteOldStatus :exec
DELETE FROM program_status WHERE at < now() - interval '1 day';
