-- Reading the referral topics.

-- name: CreatePositions :exec
INSERT INTO position (topic_id, partition, topic, next_offset)
SELECT sqlc.arg(topic_id)::uuid, unnest(sqlc.arg(partitions)::integer[]), sqlc.arg(topic)::text, 0
ON CONFLICT DO NOTHING;

-- name: Positions :many
SELECT partition, next_offset FROM position WHERE topic_id = $1;

-- name: MovePosition :execrows
-- 0 rows: another dispatcher moved it first, or another log has been followed since; roll
-- back and read the position again. A batch without referrals has no log.
UPDATE position SET next_offset = sqlc.arg(next_offset), log_id = coalesce(sqlc.narg(log_id), log_id)
WHERE topic_id = sqlc.arg(topic_id) AND partition = sqlc.arg(partition) AND next_offset = sqlc.arg(read_offset)
  AND (log_id IS NULL OR sqlc.narg(log_id)::bytea IS NULL OR log_id = sqlc.narg(log_id));

-- name: FollowedLog :one
-- The log that deliveries were made from; no row: there are none yet.
SELECT log_id::bytea AS log_id FROM position WHERE log_id IS NOT NULL LIMIT 1;

-- name: LockStreams :many
-- Creates and locks the counters of these partners, always in the order of the ids.
INSERT INTO stream (partner_id, last_sequence)
SELECT id, 0 FROM unnest(sqlc.arg(partner_ids)::bigint[]) AS id ORDER BY id
ON CONFLICT (partner_id) DO UPDATE SET last_sequence = stream.last_sequence
RETURNING partner_id, last_sequence;

-- name: SetStreams :exec
UPDATE stream s SET last_sequence = n.last_sequence
FROM (SELECT unnest(sqlc.arg(partner_ids)::bigint[]) AS partner_id, unnest(sqlc.arg(last_sequences)::bigint[]) AS last_sequence) n
WHERE s.partner_id = n.partner_id;

-- name: KnownPartners :many
-- Those of the ids that are partners, and whether each has an endpoint to send to.
SELECT p.id, (e.url IS NOT NULL AND NOT p.disabled)::boolean AS reachable
FROM partner p JOIN endpoint e ON e.partner_id = p.id WHERE p.id = ANY(sqlc.arg(ids)::bigint[]) ORDER BY p.id;

-- name: PartnersToBackfill :many
-- The partners whose earlier events have not been backfilled yet.
SELECT p.id FROM partner p WHERE NOT EXISTS (SELECT FROM adopted a WHERE a.partner_id = p.id) ORDER BY p.id;

-- name: PositionsPassed :many
-- The positions, behind transactions that move them: records after a position are accepted by
-- a dispatcher that knows all partners that this one knows.
SELECT topic_id, partition, next_offset FROM position
WHERE topic_id = ANY(sqlc.arg(topic_ids)::uuid[]) ORDER BY topic_id, partition FOR SHARE;

-- name: MarkBackfilled :exec
INSERT INTO adopted (partner_id) SELECT unnest(sqlc.arg(partner_ids)::bigint[]) ON CONFLICT DO NOTHING;

-- name: KnownDeliveries :many
-- The deliveries with one of these ids or of one of these transactions, by sequence.
SELECT event_id, partner_id, type, body, tx_hash, block_hash, coalesce(log_index, -1)::bigint AS log_index, coalesce(seq, 0)::bigint AS seq
FROM delivery d WHERE event_id = ANY(sqlc.arg(event_ids)::uuid[]) OR tx_hash = ANY(sqlc.arg(tx_hashes)::bytea[])
ORDER BY d.partner_id, d.sequence;

-- name: CorrectDelivery :exec
-- Gives a delivery the place and the body of its transaction's newest mining, and keeps the old body. If the body is the
-- same, nothing is corrected for the partner.
WITH replaced AS (
  INSERT INTO correction (event_id, revision, body) SELECT o.event_id, o.revision, o.body FROM delivery o
  WHERE o.event_id = sqlc.arg(event_id) AND o.body <> sqlc.arg(body)
)
UPDATE delivery d SET body = sqlc.arg(body), block_hash = sqlc.arg(block_hash), log_index = sqlc.arg(log_index)::bigint, seq = sqlc.arg(seq)::bigint,
  revision = d.revision + (d.body <> sqlc.arg(body))::integer,
  corrected_at = CASE WHEN d.body <> sqlc.arg(body) THEN clock_timestamp() ELSE d.corrected_at END
WHERE d.event_id = sqlc.arg(event_id);

-- name: Corrections :many
-- The earlier bodies of an event, oldest first.
SELECT body FROM correction WHERE event_id = $1 ORDER BY revision;

-- name: InsertDeliveries :exec
-- clock_timestamp and not the start of the transaction: a partner's times must not decrease
-- while its sequence increases, and the transaction may have waited for the sequence's
-- lock.
INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, created_at, due_at, finished_at, tx_hash, block_hash, log_index, seq, traceparent)
SELECT n.event_id, n.partner_id, n.sequence, n.type, n.body, n.state, clock.at, clock.at,
  CASE WHEN n.state = 'no_endpoint' THEN clock.at END, n.tx_hash, n.block_hash, n.log_index, n.seq, nullif(n.traceparent, '')
FROM (SELECT clock_timestamp() AS at OFFSET 0) clock,
  (SELECT unnest(sqlc.arg(event_ids)::uuid[]) AS event_id, unnest(sqlc.arg(partner_ids)::bigint[]) AS partner_id,
    unnest(sqlc.arg(sequences)::bigint[]) AS sequence, unnest(sqlc.arg(types)::text[]) AS type,
    unnest(sqlc.arg(bodies)::bytea[]) AS body, unnest(sqlc.arg(states)::text[]) AS state,
    unnest(sqlc.arg(tx_hashes)::bytea[]) AS tx_hash, unnest(sqlc.arg(block_hashes)::bytea[]) AS block_hash,
    unnest(sqlc.arg(log_indexes)::bigint[]) AS log_index, unnest(sqlc.arg(seqs)::bigint[]) AS seq,
    unnest(sqlc.arg(traceparents)::text[]) AS traceparent) n;

-- name: InsertTest :execrows
-- A test event is a delivery without a sequence: it is sent, retried, parked and logged like
-- any other, but is not in the pull stream. 0 rows: the partner has as many unfinished ones
-- as it may have. (ORDER BY makes the planner use the index of the tests.)
INSERT INTO delivery (event_id, partner_id, type, body, state)
SELECT sqlc.arg(event_id), sqlc.arg(partner_id), sqlc.arg(type), sqlc.arg(body), 'pending'
WHERE (SELECT count(*) FROM (
  SELECT FROM delivery d WHERE d.sequence IS NULL AND d.finished_at IS NULL AND d.partner_id = sqlc.arg(partner_id)
  ORDER BY d.finished_at LIMIT sqlc.arg(unfinished)::integer
) counted) < sqlc.arg(unfinished)::integer;

-- Sending.

-- name: Endpoints :many
-- Every partner to which events can be sent, with URL, secrets and the certificates of the URL
-- (0: none) in one snapshot. The end of a rotation counts as a new version. Certificates of a
-- known id never change, and come without their texts.
SELECT e.partner_id, (e.version + CASE WHEN e.next_at <= now() THEN 1 ELSE 0 END)::bigint AS version, e.url::text AS url, e.held,
  (CASE WHEN e.next_at <= now() THEN e.next_secret ELSE e.secret END)::bytea AS secret,
  (CASE WHEN e.next_at > now() THEN e.next_secret ELSE '' END)::bytea AS next_secret,
  coalesce(c.id, 0)::bigint AS certificates_id, coalesce(n.authorities, '')::text AS authorities,
  coalesce(n.client, '')::text AS client, coalesce(n.client_key, '')::bytea AS client_key
FROM endpoint e JOIN partner p ON p.id = e.partner_id
LEFT JOIN endpoint_certificates c ON c.partner_id = e.partner_id AND c.url = e.url
LEFT JOIN endpoint_certificates n ON n.id = c.id AND NOT coalesce(n.id = ANY(sqlc.arg(known_certificates)::bigint[]), false)
WHERE e.url IS NOT NULL AND NOT p.disabled;

-- name: PartnersToSend :many
-- The partners that have deliveries to send and are not held by another dispatcher. It
-- steps through the index from partner to partner, so that a million parked deliveries
-- cost no more than one. (Every ORDER BY names the whole index, so that the planner uses
-- no other and never reads the table.)
WITH RECURSIVE waiting (partner_id) AS (
  (SELECT d.partner_id FROM delivery d WHERE d.state IN ('pending', 'parked')
    ORDER BY d.partner_id, d.state, d.due_at LIMIT 1)
  UNION ALL
  SELECT (SELECT d.partner_id FROM delivery d WHERE d.state IN ('pending', 'parked') AND d.partner_id > waiting.partner_id
    ORDER BY d.partner_id, d.state, d.due_at LIMIT 1)
  FROM waiting WHERE waiting.partner_id IS NOT NULL
)
SELECT waiting.partner_id::bigint AS partner_id, ((
  SELECT true FROM delivery d WHERE d.state IN ('pending', 'parked')
    AND d.partner_id = waiting.partner_id AND d.state = 'pending' AND d.due_at <= now()
    ORDER BY d.partner_id, d.state, d.due_at LIMIT 1
) IS NOT NULL)::boolean AS due
FROM waiting
WHERE waiting.partner_id IS NOT NULL AND NOT EXISTS (
  SELECT FROM job_lease l WHERE l.kind = 'partner' AND l.key = waiting.partner_id AND l.owner <> sqlc.arg(owner) AND l.until > now()
);

-- name: DueDeliveries :many
-- The next deliveries in order. The two states are queried separately, because only then
-- does the index return each in its order.
SELECT due.event_id, due.sequence, due.type, due.body, due.attempts, due.revision, coalesce(due.traceparent, '')::text AS traceparent FROM (
  (SELECT d.event_id, d.type, d.body, d.attempts, d.revision, d.due_at, d.sequence, d.traceparent FROM delivery d
    WHERE d.partner_id = sqlc.arg(partner_id) AND d.state = 'pending' AND d.due_at <= now()
      AND NOT (d.event_id = ANY(sqlc.arg(in_flight)::uuid[]))
    ORDER BY d.due_at, d.sequence LIMIT sqlc.arg(max_rows)::integer)
  UNION ALL
  (SELECT d.event_id, d.type, d.body, d.attempts, d.revision, d.due_at, d.sequence, d.traceparent FROM delivery d
    WHERE d.partner_id = sqlc.arg(partner_id) AND d.state = 'parked' AND d.due_at <= now()
      AND NOT (d.event_id = ANY(sqlc.arg(in_flight)::uuid[]))
    ORDER BY d.due_at, d.sequence LIMIT sqlc.arg(max_rows)::integer)
) due ORDER BY due.due_at, due.sequence LIMIT sqlc.arg(max_rows)::integer;

-- name: NextDue :one
-- Milliseconds until a delivery that is not in flight is due; -1: there is none.
SELECT coalesce((
  SELECT greatest(0, ceil(extract(epoch FROM next.at - now()) * 1000)) FROM (SELECT least(
    (SELECT min(p.due_at) FROM delivery p
      WHERE p.partner_id = sqlc.arg(partner_id) AND p.state = 'pending' AND NOT (p.event_id = ANY(sqlc.arg(in_flight)::uuid[]))),
    (SELECT min(k.due_at) FROM delivery k
      WHERE k.partner_id = sqlc.arg(partner_id) AND k.state = 'parked' AND NOT (k.event_id = ANY(sqlc.arg(in_flight)::uuid[])))
  ) AS at) next WHERE next.at IS NOT NULL
), -1)::bigint AS milliseconds;

-- name: FinishAttempts :many
-- Writes the results of POSTs: the attempts always, each new state only under the fence.
-- Returns event and fence of each written result, because two results of one event, sent
-- under two leases, may come together. If a result is missing, another lease has the
-- partner, and the event is sent again under it. A result that is written twice, because the
-- response to the first write was lost, is still one attempt, and a change of its delivery
-- since then, such as a replay, stays. Only the last attempts of an event are kept, and a
-- repeated one is searched among the newest, so the cost does not grow with their number. A
-- POST whose body was replaced meanwhile counts as finished before the correction.
-- The lease is read without a lock. So while another dispatcher takes it, this may still write:
-- an event whose new result the other one writes within the same milliseconds gets the older
-- result, and may be sent again. With a lock, the other one would have to wait until PostgreSQL
-- ends the transaction of a dispatcher whose host is gone.
WITH result AS MATERIALIZED (
  SELECT n.*, before.last, before.known,
    before.last + row_number() OVER (PARTITION BY n.event_id, before.known ORDER BY n.started_at, n.fence) AS number
  FROM (
    SELECT unnest(sqlc.arg(event_ids)::uuid[]) AS event_id, unnest(sqlc.arg(partner_ids)::bigint[]) AS partner_id,
      unnest(sqlc.arg(fences)::bigint[]) AS fence, unnest(sqlc.arg(states)::text[]) AS state,
      unnest(sqlc.arg(attempts)::integer[]) AS attempts, unnest(sqlc.arg(revisions)::integer[]) AS revision, unnest(sqlc.arg(wait_ms)::bigint[]) AS wait_ms,
      unnest(sqlc.arg(finished)::boolean[]) AS finished, unnest(sqlc.arg(urls)::text[]) AS url,
      unnest(sqlc.arg(endpoint_versions)::bigint[]) AS endpoint_version, unnest(sqlc.arg(started_at)::timestamptz[]) AS started_at,
      unnest(sqlc.arg(duration_ms)::integer[]) AS duration_ms, unnest(sqlc.arg(statuses)::integer[]) AS status,
      unnest(sqlc.arg(errors)::text[]) AS error, unnest(sqlc.arg(responses)::bytea[]) AS response,
      unnest(sqlc.arg(dns_us)::integer[]) AS dns_us, unnest(sqlc.arg(connect_us)::integer[]) AS connect_us,
      unnest(sqlc.arg(tls_us)::integer[]) AS tls_us, unnest(sqlc.arg(first_byte_us)::integer[]) AS first_byte_us
  ) n, LATERAL (
    SELECT coalesce(max(newest.number), 0) AS last, coalesce(bool_or(newest.started_at = n.started_at), false) AS known
    FROM (SELECT a.number, a.started_at FROM attempt a WHERE a.event_id = n.event_id ORDER BY a.number DESC LIMIT 8) newest
  ) before
), done AS (
  UPDATE delivery d SET state = r.state, attempts = r.attempts,
    due_at = now() + r.wait_ms * interval '1 millisecond',
    finished_at = CASE WHEN r.finished THEN now() END,
    corrected_at = CASE WHEN d.revision = r.revision THEN d.corrected_at ELSE now() END
  FROM result r JOIN job_lease l ON l.kind = 'partner' AND l.key = r.partner_id AND l.owner = sqlc.arg(owner) AND l.fence = r.fence
  WHERE d.event_id = r.event_id AND NOT r.known
  RETURNING d.event_id, l.fence
), logged AS (
  INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status, error, response,
    dns_us, connect_us, tls_us, first_byte_us)
  SELECT r.event_id, r.number, r.url, r.endpoint_version, r.started_at, r.duration_ms, nullif(r.status, 0), nullif(r.error, ''), r.response,
    nullif(r.dns_us, -1), nullif(r.connect_us, -1), nullif(r.tls_us, -1), nullif(r.first_byte_us, -1)
  FROM result r WHERE NOT r.known
), trimmed AS (
  DELETE FROM attempt a USING result r
  WHERE a.event_id = r.event_id AND a.number <= r.number - sqlc.arg(attempts_kept)::integer AND NOT r.known
)
SELECT event_id, fence FROM done
UNION ALL
SELECT r.event_id, l.fence FROM result r JOIN job_lease l ON l.kind = 'partner' AND l.key = r.partner_id AND l.owner = sqlc.arg(owner) AND l.fence = r.fence
WHERE r.known;

-- name: LimitLocks :exec
-- Limits how long each statement of this transaction waits for a lock.
SELECT set_config('lock_timeout', sqlc.arg(milliseconds)::bigint::text, true);

-- name: ParkDeliveries :execrows
-- Parks the first pending deliveries, except those in flight. due_at stays, because it is
-- the order. (ORDER BY names the whole index, so that the planner uses no other. The rows are
-- locked as they are chosen: repeating the state in a condition on d would give the planner
-- a second way to find them, which it takes when its statistics show no pending delivery, and
-- which then reads all of them for each row.)
UPDATE delivery d SET state = 'parked'
FROM job_lease l
WHERE d.event_id IN (
    SELECT w.event_id FROM delivery w
    WHERE w.partner_id = sqlc.arg(partner_id) AND w.state = 'pending' AND NOT (w.event_id = ANY(sqlc.arg(in_flight)::uuid[]))
    ORDER BY w.partner_id, w.state, w.due_at LIMIT sqlc.arg(max_rows)::integer FOR UPDATE)
  AND l.kind = 'partner' AND l.key = d.partner_id AND l.owner = sqlc.arg(owner) AND l.fence = sqlc.arg(fence);

-- name: GiveUpDeliveries :one
-- Ends the first pending and parked deliveries, except those in flight, because there is no
-- endpoint to send them to. It finds and locks them as ParkDeliveries does. If there is an
-- endpoint, it ends none. One statement has one snapshot: an event that was accepted because
-- of a URL is seen only with that URL.
WITH reachable AS MATERIALIZED (
  SELECT FROM endpoint e JOIN partner p ON p.id = e.partner_id
  WHERE e.partner_id = sqlc.arg(partner_id) AND e.url IS NOT NULL AND NOT p.disabled
), ended AS (
  UPDATE delivery d SET state = 'no_endpoint', finished_at = now()
  FROM job_lease l
  WHERE d.event_id IN (
      SELECT w.event_id FROM delivery w
      WHERE w.partner_id = sqlc.arg(partner_id) AND w.state IN ('pending', 'parked') AND NOT (w.event_id = ANY(sqlc.arg(in_flight)::uuid[]))
      ORDER BY w.partner_id, w.state, w.due_at LIMIT sqlc.arg(max_rows)::integer FOR UPDATE)
    AND l.kind = 'partner' AND l.key = d.partner_id AND l.owner = sqlc.arg(owner) AND l.fence = sqlc.arg(fence)
    AND NOT EXISTS (SELECT FROM reachable)
  RETURNING d.event_id
)
SELECT EXISTS (SELECT FROM reachable) AS reachable, (SELECT count(*) FROM ended) AS ended;

-- name: ReplayDelivery :execrows
UPDATE delivery SET state = 'pending', attempts = 0, due_at = now(), finished_at = NULL
WHERE event_id = $1 AND partner_id = $2 AND state IN ('delivered', 'failed', 'no_endpoint');

-- name: MeasureQueue :one
-- How many deliveries are pending and parked, how long the oldest of each has been due, and how
-- many are failed and no_endpoint: these are kept for ever, so they are counted only up to a
-- limit. Of the breakers it counts those of current URLs of enabled partners: the breaker of a
-- disabled partner or of an older URL stays as long as nothing is sent, but blocks nothing.
SELECT w.pending, w.parked, w.oldest_pending_seconds, w.oldest_parked_seconds,
  (SELECT count(*) FROM (SELECT FROM delivery d WHERE d.state = 'failed' LIMIT sqlc.arg(at_most)::integer) counted) AS failed,
  (SELECT count(*) FROM (SELECT FROM delivery d WHERE d.state = 'no_endpoint' LIMIT sqlc.arg(at_most)::integer) counted) AS no_endpoint,
  (SELECT count(*) FROM breaker b JOIN endpoint e ON e.partner_id = b.partner_id AND e.url = b.url
    JOIN partner p ON p.id = b.partner_id WHERE NOT p.disabled) AS open_breakers
FROM (
  SELECT count(*) FILTER (WHERE d.state = 'pending') AS pending, count(*) FILTER (WHERE d.state = 'parked') AS parked,
    greatest(0, extract(epoch FROM now() - min(d.due_at) FILTER (WHERE d.state = 'pending')))::double precision AS oldest_pending_seconds,
    greatest(0, extract(epoch FROM now() - min(d.due_at) FILTER (WHERE d.state = 'parked')))::double precision AS oldest_parked_seconds
  FROM delivery d WHERE d.state IN ('pending', 'parked')
) w;

-- Breakers.

-- name: SaveBreaker :exec
INSERT INTO breaker (partner_id, endpoint_version, url, state, opened_at, open_until, open_ms, refusing)
SELECT l.key, sqlc.arg(endpoint_version), sqlc.arg(url), 'open', now(),
  now() + sqlc.arg(open_ms)::bigint * interval '1 millisecond', sqlc.arg(open_ms), sqlc.arg(refusing)
FROM job_lease l WHERE l.kind = 'partner' AND l.key = sqlc.arg(partner_id) AND l.owner = sqlc.arg(owner) AND l.fence = sqlc.arg(fence)
ON CONFLICT (partner_id) DO UPDATE SET endpoint_version = excluded.endpoint_version, url = excluded.url,
  state = excluded.state, opened_at = excluded.opened_at, open_until = excluded.open_until, open_ms = excluded.open_ms,
  refusing = excluded.refusing;

-- name: ProbeBreaker :exec
-- The open time is over and a probe is in flight.
UPDATE breaker b SET state = 'half-open' FROM job_lease l
WHERE b.partner_id = sqlc.arg(partner_id) AND b.url = sqlc.arg(url)
  AND l.kind = 'partner' AND l.key = b.partner_id AND l.owner = sqlc.arg(owner) AND l.fence = sqlc.arg(fence);

-- name: DeleteBreaker :exec
DELETE FROM breaker b USING job_lease l
WHERE b.partner_id = sqlc.arg(partner_id)
  AND l.kind = 'partner' AND l.key = b.partner_id AND l.owner = sqlc.arg(owner) AND l.fence = sqlc.arg(fence);

-- name: GetBreaker :one
-- By URL and not by version of the endpoint: neither another secret nor the same URL again
-- revives a receiver.
SELECT state, open_until, open_ms, greatest(0, extract(epoch FROM open_until - now()) * 1000)::bigint AS remaining_ms, refusing
FROM breaker WHERE partner_id = $1 AND url = $2;

-- Commands of query and of `navlog webhook`.

-- name: DueCommands :many
-- In fair turns: one command of every partner, then a second one of every partner. A range
-- waits for an earlier range of its partner, so that their parts do not mix.
SELECT due.id, due.partner_id FROM (
  SELECT c.id, c.partner_id, c.due_at, row_number() OVER (PARTITION BY c.partner_id ORDER BY c.due_at, c.id) AS turn
  FROM command c WHERE c.done_at IS NULL AND c.due_at <= now() AND NOT (c.kind = 'replay-range' AND EXISTS (
    SELECT FROM command o WHERE o.partner_id = c.partner_id AND o.kind = 'replay-range' AND o.done_at IS NULL AND o.id < c.id))
) due ORDER BY due.turn, due.due_at, due.id LIMIT 100;

-- name: LimitStatements :exec
-- Limits each statement of this transaction. The server enforces it, so that nothing of the
-- transaction is still running when the error arrives.
SELECT set_config('statement_timeout', sqlc.arg(milliseconds)::bigint::text, true);

-- name: ClaimCommand :one
-- A command, with the last sequence of its partner. No row: another dispatcher runs it, or has just run it.
SELECT c.id, c.partner_id, c.kind, c.event_id, c.first_sequence, c.last_sequence, c.only_state, c.deliveries,
  coalesce((SELECT s.last_sequence FROM stream s WHERE s.partner_id = c.partner_id), 0)::bigint AS newest_sequence
FROM command c WHERE c.id = $1 AND c.done_at IS NULL AND c.due_at <= now() FOR UPDATE SKIP LOCKED;

-- name: PutOffCommand :exec
-- Delays a failed command by as long as it has been open, at least a second and at most a
-- minute, unless another dispatcher runs it.
UPDATE command c SET due_at = now() + least(greatest(now() - c.created_at, interval '1 second'), interval '1 minute')
WHERE c.id = (SELECT o.id FROM command o WHERE o.id = $1 AND o.done_at IS NULL FOR UPDATE SKIP LOCKED);

-- name: FinishCommand :exec
UPDATE command SET done_at = now(), deliveries = deliveries + sqlc.arg(deliveries)::bigint WHERE id = sqlc.arg(id);

-- name: AdvanceCommand :exec
-- A part of a replay-range is done or waits. The next part is due last, after everything that
-- is due by then.
UPDATE command SET first_sequence = sqlc.arg(first_sequence)::bigint, deliveries = deliveries + sqlc.arg(deliveries)::bigint,
  due_at = clock_timestamp() + sqlc.arg(wait_ms)::bigint * interval '1 millisecond'
WHERE id = sqlc.arg(id);

-- name: PartIsBeingSent :one
-- Whether a delivery of these sequences is still to be sent and a dispatcher holds the
-- partner's lease. Failed ones that are due later do not count; parked ones do, because they
-- come before all newer events. (ORDER BY makes the planner use the index of the sequences, of
-- which there are few.)
SELECT (EXISTS (SELECT FROM job_lease l WHERE l.kind = 'partner' AND l.key = sqlc.arg(partner_id) AND l.until > now()) AND (
  SELECT true FROM delivery d
  WHERE d.partner_id = sqlc.arg(partner_id) AND d.sequence BETWEEN sqlc.arg(first_sequence)::bigint AND sqlc.arg(last_sequence)::bigint
    AND d.state IN ('pending', 'parked') AND d.due_at <= now()
  ORDER BY d.partner_id, d.sequence LIMIT 1
) IS NOT NULL)::boolean AS being_sent;

-- name: ReplayRange :execrows
-- A state of '' means every finished state.
UPDATE delivery SET state = 'pending', attempts = 0, due_at = now(), finished_at = NULL
WHERE partner_id = sqlc.arg(partner_id) AND sequence BETWEEN sqlc.arg(first_sequence)::bigint AND sqlc.arg(last_sequence)::bigint
  AND state IN ('delivered', 'failed', 'no_endpoint') AND sqlc.arg(only_state)::text IN ('', state);

-- Dividing the partners between dispatchers.

-- name: Announce :one
-- Announces this dispatcher and its sealing keys, and returns how many running dispatchers
-- could take its partners: those that share no key with it cannot open their secrets. (A
-- dispatcher that can open no secret does not call this, but each of two keys may open other
-- secrets.) Dispatchers of versions without key ids count too. It also returns how many
-- partners have a dispatcher, and PostgreSQL's time, with which the dispatcher compares its
-- own clock.
WITH me AS (
  INSERT INTO dispatcher (owner, until, key_ids)
  VALUES (sqlc.arg(owner), now() + sqlc.arg(milliseconds)::bigint * interval '1 millisecond', sqlc.arg(key_ids)::text[])
  ON CONFLICT (owner) DO UPDATE SET until = excluded.until, key_ids = excluded.key_ids
), gone AS (
  DELETE FROM dispatcher WHERE until < now() - interval '1 hour' AND owner <> sqlc.arg(owner)
)
SELECT (1 + count(*))::bigint AS running, clock_timestamp()::timestamptz AS at,
  (SELECT count(*) FROM job_lease l WHERE l.kind = 'partner' AND l.until > now()) AS leases FROM dispatcher d
WHERE d.until > now() AND d.owner <> sqlc.arg(owner) AND (d.key_ids IS NULL OR d.key_ids && sqlc.arg(key_ids)::text[]);

-- name: Leave :exec
DELETE FROM dispatcher WHERE owner = $1;

-- name: ListPositions :many
-- The positions in the referral topics, including those of topics that were recreated.
SELECT topic_id, topic, partition, next_offset FROM position WHERE topic = ANY(sqlc.arg(topics)::text[]) ORDER BY topic, topic_id, partition;

-- name: RewindPositions :execrows
-- Moves positions backwards only: referrals that a position passes over would be lost.
UPDATE position SET next_offset = sqlc.arg(next_offset)
WHERE topic = ANY(sqlc.arg(topics)::text[]) AND next_offset > sqlc.arg(next_offset)
  AND (sqlc.narg(partition)::integer IS NULL OR partition = sqlc.narg(partition));

-- name: RunningDispatchers :one
-- The number of dispatchers that have announced themselves or have written their state in the
-- last seconds.
SELECT ((SELECT count(*) FROM dispatcher d WHERE d.until > now())
  + (SELECT count(*) FROM program_status s WHERE s.program = 'dispatch' AND s.at > now() - interval '5 seconds'))::bigint AS running;
