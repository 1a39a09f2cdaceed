-- name: TakeLease :one
-- Takes a lease; no row: another owner holds it. The fence increases whenever a lease is
-- taken or dropped, even by the same owner, so that it names exactly one lease and a late
-- operation cannot affect another. A project of the version before leases holds a lock of
-- its session instead.
INSERT INTO job_lease AS l (kind, key, owner, fence, until)
SELECT sqlc.arg(kind)::text, sqlc.arg(key)::bigint, sqlc.arg(owner)::uuid, 1, now() + sqlc.arg(milliseconds)::bigint * interval '1 millisecond'
WHERE sqlc.arg(kind)::text <> 'generation' OR NOT locked_by_old_project(sqlc.arg(key)::bigint)
ON CONFLICT (kind, key) DO UPDATE SET fence = l.fence + 1, owner = excluded.owner, until = excluded.until
WHERE l.owner = excluded.owner OR l.until <= now()
RETURNING fence;

-- name: RenewLeases :many
-- Renews those leases of an owner that were neither taken by another nor dropped, and
-- returns their fences by key. One that has expired is renewed too, unless another owner took it.
UPDATE job_lease l SET until = now() + sqlc.arg(milliseconds)::bigint * interval '1 millisecond'
FROM (SELECT unnest(sqlc.arg(keys)::bigint[]) AS key, unnest(sqlc.arg(fences)::bigint[]) AS fence) held
WHERE l.kind = sqlc.arg(kind) AND l.key = held.key AND l.fence = held.fence AND l.owner = sqlc.arg(owner)
  AND (l.kind <> 'generation' OR NOT locked_by_old_project(l.key))
RETURNING l.key, l.fence;

-- name: DropLease :exec
-- Drops the lease with this fence, and no later one of the same owner. epoch and not now(): it
-- stays free if PostgreSQL's clock is set back.
UPDATE job_lease SET until = 'epoch', fence = fence + 1
WHERE kind = sqlc.arg(kind) AND key = sqlc.arg(key) AND owner = sqlc.arg(owner) AND fence = sqlc.arg(fence);
