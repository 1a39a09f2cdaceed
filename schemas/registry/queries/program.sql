-- name: ListGenerations :many
SELECT id, log_id, schema, state, created_at, without, outdated, vaults FROM generation ORDER BY id;

-- name: LiveGeneration :one
SELECT id, log_id, schema, without, vaults FROM generation WHERE state = 'live';

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

-- name: NoteUptime :exec
-- Counts the time since the previous report of any instance of the program, which is running now
-- and, if working, in its role. A gap of 5 s or more between reports is not counted. Each row is
-- written every 2 s at most, whatever the number of instances. The first report of a day also
-- counts the rest of the day before, and deletes old rows.
WITH clock AS (
  SELECT now() AS at, (now() AT TIME ZONE 'UTC')::date AS today,
    (now() AT TIME ZONE 'UTC')::date::timestamp AT TIME ZONE 'UTC' AS midnight,
    now() - interval '5 seconds' AS recent, now() - interval '2 seconds' AS due,
    now() + interval '5 seconds' AS ahead -- of a clock that was set back
), counted AS (
  UPDATE uptime u SET
    running_ms = u.running_ms + CASE WHEN u.running_at BETWEEN c.recent AND c.at
      THEN (extract(epoch FROM c.at - u.running_at) * 1000)::bigint ELSE 0 END,
    running_at = c.at,
    working_ms = u.working_ms + CASE WHEN sqlc.arg(working)::boolean AND u.working_at BETWEEN c.recent AND c.at
      THEN (extract(epoch FROM c.at - u.working_at) * 1000)::bigint ELSE 0 END,
    working_at = CASE WHEN sqlc.arg(working)::boolean THEN c.at ELSE u.working_at END
  FROM clock c WHERE u.program = sqlc.arg(program) AND u.day = c.today
    AND (u.running_at <= c.due OR u.running_at > c.ahead
      OR sqlc.arg(working)::boolean AND (u.working_at IS NULL OR u.working_at <= c.due OR u.working_at > c.ahead))
), yesterday AS (
  UPDATE uptime u SET
    running_ms = u.running_ms + (extract(epoch FROM c.midnight - u.running_at) * 1000)::bigint,
    running_at = c.midnight,
    working_ms = u.working_ms + CASE WHEN sqlc.arg(working)::boolean AND u.working_at BETWEEN c.recent AND c.midnight
      THEN (extract(epoch FROM c.midnight - u.working_at) * 1000)::bigint ELSE 0 END
  FROM clock c WHERE u.program = sqlc.arg(program) AND u.day = c.today - 1
    AND u.running_at < c.midnight AND u.running_at >= c.recent
), begun AS (
  INSERT INTO uptime (program, day, began_at, running_at, working_at, running_ms, working_ms)
  SELECT sqlc.arg(program), c.today, c.at, c.at, CASE WHEN sqlc.arg(working)::boolean THEN c.at END,
    CASE WHEN y.running_at >= c.recent THEN (extract(epoch FROM c.at - c.midnight) * 1000)::bigint ELSE 0 END,
    CASE WHEN sqlc.arg(working)::boolean AND y.working_at >= c.recent THEN (extract(epoch FROM c.at - c.midnight) * 1000)::bigint ELSE 0 END
  FROM clock c LEFT JOIN uptime y ON y.program = sqlc.arg(program) AND y.day = c.today - 1
  WHERE NOT EXISTS (SELECT FROM uptime t WHERE t.program = sqlc.arg(program) AND t.day = c.today)
  ON CONFLICT DO NOTHING RETURNING day
)
DELETE FROM uptime u USING begun b WHERE u.program = sqlc.arg(program) AND u.day < b.day - 100;

-- name: ListUptime :many
-- The recorded days of the last 90, with today first. recorded_seconds is how much of a day there
-- is to compare with: less than all of it on the program's first day, and today.
SELECT u.program, (c.today - u.day)::integer AS days_ago, to_char(c.today, 'YYYY-MM-DD') AS today, u.recorded_seconds::bigint AS recorded_seconds,
  least(u.running_ms / 1000, u.recorded_seconds)::bigint AS running_seconds,
  least(u.working_ms / 1000, u.recorded_seconds)::bigint AS working_seconds
FROM (SELECT (now() AT TIME ZONE 'UTC')::date AS today) c CROSS JOIN LATERAL (
  SELECT r.program, r.day, r.running_ms, r.working_ms, greatest(0, floor(extract(epoch FROM
    CASE WHEN r.day < c.today THEN (r.day + 1)::timestamp AT TIME ZONE 'UTC'
      WHEN r.running_at > now() - interval '5 seconds' THEN r.running_at ELSE now() END
    - CASE WHEN r.day = min(r.day) OVER (PARTITION BY r.program) THEN r.began_at
      ELSE r.day::timestamp AT TIME ZONE 'UTC' END)))::bigint AS recorded_seconds
  FROM uptime r) u
WHERE u.day BETWEEN c.today - 89 AND c.today ORDER BY u.program, u.day DESC;

-- name: Notify :exec
-- Sends a notification for each id, once the transaction is committed.
SELECT pg_notify(sqlc.arg(channel)::text, id::text) FROM unnest(sqlc.arg(ids)::bigint[]) AS id;
