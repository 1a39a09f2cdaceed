CREATE DATABASE IF NOT EXISTS navlog_g7 ON CLUSTER main ENGINE = Atomic;

CREATE TABLE IF NOT EXISTS navlog_g7.events ON CLUSTER main (
  seq UInt64 CODEC(Delta, LZ4),
  sub UInt8,
  sign Int8,
  retracts UInt64,
  writer UInt64,
  record Enum8('log' = 0, 'block' = 1, 'vault' = 2, 'decision' = 3),
  event LowCardinality(String),
  effect Enum8('none' = 0, 'deposit' = 1, 'sweep' = 2, 'settled' = 3, 'valuation' = 4, 'requested' = 5, 'funded' = 6, 'claimed' = 7, 'cancelled' = 8, 'expired' = 9, 'priced_deposits' = 10, 'priced_requests' = 11, 'void' = 12, 'supply' = 13, 'instant' = 14),
  effects UInt8,
  boundary Bool,
  quarantined Bool,
  passed Bool,
  block UInt64 CODEC(Delta, LZ4),
  hash FixedString(32),
  ts UInt32 CODEC(Delta, LZ4),
  vault FixedString(20),
  user FixedString(20),
  other FixedString(20),
  partner UInt32,
  id UInt64,
  id_to UInt64,
  by Enum8('none' = 0, 'id' = 1, 'source' = 2, 'owner' = 3, 'group' = 4, 'up_to_group' = 5, 'fifo' = 6, 'fifo_unfunded' = 7),
  grouped Bool,
  group_id UInt64,
  group_to UInt64,
  source_id FixedString(32),
  matures UInt64,
  attribution FixedString(32),
  no_nav Bool,
  no_assets Bool,
  no_shares Bool,
  nav_digits UInt8,
  shares Int256,
  assets Int256,
  nav Int256,
  expires UInt64,
  tx FixedString(32),
  log_index UInt32,
  payload String,
  INDEX named (user, tx) TYPE bloom_filter GRANULARITY 1,
  INDEX numbered seq TYPE minmax GRANULARITY 1
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}') PARTITION BY seq = 0 PRIMARY KEY (record, block) ORDER BY (record, block, seq, sub)
SETTINGS replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 315360000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 1024;

CREATE VIEW IF NOT EXISTS navlog_g7.deposits ON CLUSTER main AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
  by, grouped, group_id, group_to, source_id, matures, no_nav, no_assets, no_shares, nav_digits,
  toUInt128(block) * 1099511627776 + toUInt64(log_index) * 256 + sub AS place,
  toFixedString(concat(toFixedString('', 16), reverse(reinterpretAsFixedString(partner))), 20) AS partner_owner
FROM navlog_g7.events
WHERE record = 'log' AND effect != 'none' AND sign = 1 AND seq <= 18446744073709551615 AND NOT passed AND NOT quarantined
  AND seq NOT IN (SELECT retracts FROM navlog_g7.events WHERE sign = -1 AND seq <= 18446744073709551615)
), reached AS (
SELECT vault, id_to, block, ts, place, before
FROM (
  SELECT vault, id_to, block, ts, place, max(id_to) OVER earlier AS before
  FROM live
  WHERE effect = 'sweep'
  WINDOW earlier AS (PARTITION BY vault ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
WHERE id_to > before
), reach AS (
SELECT effect, vault, place, block, ts, assets, shares, bound, before IS NULL OR bound > before AS raises
FROM (
  SELECT effect, vault, place, block, ts, assets, shares,
    max(group_to) OVER (PARTITION BY effect, vault ORDER BY place ROWS UNBOUNDED PRECEDING) AS bound,
    max(toNullable(group_to)) OVER (PARTITION BY effect, vault ORDER BY place
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM live
  WHERE by = 'up_to_group'
)
), exact AS (
SELECT effect, vault, arrayJoin(arrayMap(x -> toUInt64(group_id + x), range(toUInt64(group_to - group_id + 1)))) AS group_id,
  place, block, assets, shares
FROM live
WHERE by = 'group'
), grouped_deposit AS (
SELECT * EXCEPT (price, price_to, void),
  void.1 > 0 AND (price.1 = 0 OR void.1 < price.1) AS is_void, price.1 > 0 AND NOT is_void AS is_priced,
  price.3 AS price_assets, price.4 AS price_shares,
  if(is_priced, if(price_assets > 0 AND assets >= 0 AND price_shares >= 0, toInt256(arrayMap(q -> if(q < bitShiftLeft(toUInt256(1), 191), q, 0), [arrayFold((acc, piece) -> ( least(acc.1, bitShiftLeft(toUInt256(1), 191)) * toUInt256('18446744073709551616') + least(intDiv(acc.2 * toUInt256('18446744073709551616') + piece * toUInt256(price_shares), toUInt256(greatest(price_assets, 1))), bitShiftLeft(toUInt256(1), 191)), (acc.2 * toUInt256('18446744073709551616') + piece * toUInt256(price_shares)) % toUInt256(greatest(price_assets, 1))), [intDiv(toUInt256(assets), toUInt256('18446744073709551616') * toUInt256('18446744073709551616')), intDiv(toUInt256(assets), toUInt256('18446744073709551616')) % toUInt256('18446744073709551616'), toUInt256(assets) % toUInt256('18446744073709551616')], (toUInt256(0), toUInt256(0))).1])[1]), toInt256(0)), 0) AS shares,
  if(is_priced, price.2, 18446744073709551615) AS priced_block,
  if(is_void, void.2, 18446744073709551615) AS closed_block, if(is_void, void.3, 0) AS closed_ts
FROM (
  SELECT d.block AS block, d.log_index AS log_index, d.sub AS sub, d.ts AS ts, d.vault AS vault, d.user AS user,
    d.other AS other, d.partner AS partner, d.partner_owner AS partner_owner, d.id AS id, d.assets AS assets, d.tx
    AS tx, d.grouped AS grouped, d.group_id AS group_id,
    multiIf(first_price.place = 0, (toUInt128(0), toUInt64(0), toInt256(0), toInt256(0)),
      first_price.place > d.place, (first_price.place, first_price.block, first_price.assets, first_price.shares),
      (next_price.place, next_price.block, next_price.assets, next_price.shares)) AS price_to,
    if(exact_price.place > 0 AND (price_to.1 = 0 OR exact_price.place < price_to.1),
      (exact_price.place, exact_price.block, exact_price.assets, exact_price.shares), price_to) AS price,
    if(by_id.place > 0 AND (by_owner.place = 0 OR by_id.place < by_owner.place),
      (by_id.place, by_id.block, by_id.ts), (by_owner.place, by_owner.block, by_owner.ts)) AS void
  FROM (SELECT * FROM live WHERE effect = 'deposit' AND grouped) AS d
  ASOF LEFT JOIN (SELECT * FROM exact WHERE effect = 'priced_deposits') AS exact_price
    ON d.vault = exact_price.vault AND d.group_id = exact_price.group_id AND d.place < exact_price.place
  ASOF LEFT JOIN (SELECT * FROM reach WHERE effect = 'priced_deposits' AND raises) AS first_price
    ON d.vault = first_price.vault AND d.group_id <= first_price.bound
  ASOF LEFT JOIN (SELECT * FROM reach WHERE effect = 'priced_deposits') AS next_price
    ON d.vault = next_price.vault AND d.place < next_price.place
  ASOF LEFT JOIN (SELECT * FROM live WHERE effect = 'void' AND by = 'id') AS by_id
    ON d.vault = by_id.vault AND d.id = by_id.id AND d.place < by_id.place
  ASOF LEFT JOIN (SELECT * FROM live WHERE effect = 'void' AND by = 'owner') AS by_owner
    ON d.vault = by_owner.vault AND d.user = by_owner.user AND d.group_id = by_owner.group_id
      AND d.place < by_owner.place
)
), deposit AS (
SELECT d.block, d.log_index, d.sub, d.ts, d.vault, d.user, d.other, d.partner, d.partner_owner, d.id, d.shares, d.assets,
  d.tx, d.grouped, d.group_id, toUInt64(0) AS priced_block,
  s.place > 0 AS swept,
  if(swept, greatest(d.block, s.block), 18446744073709551615) AS closed_block,
  multiIf(NOT swept, 0, s.block > d.block, s.ts, d.ts) AS closed_ts,
  if(swept, 'sweep', 'none') AS closed_by
FROM (SELECT * FROM live WHERE effect = 'deposit' AND NOT grouped) AS d
ASOF LEFT JOIN reached AS s ON d.vault = s.vault AND d.id <= s.id_to
UNION ALL
SELECT block, log_index, sub, ts, vault, user, other, partner, partner_owner, id, shares, assets, tx, grouped, group_id,
  priced_block, false, closed_block, closed_ts, if(is_void, 'void', 'none')
FROM grouped_deposit
)
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, id AS deposit_id,
  concat('0x', lower(hex(user))) AS user, concat('0x', lower(hex(other))) AS sender, partner, assets,
  if(priced_block = 18446744073709551615, NULL, shares) AS shares, if(grouped AND priced_block != 18446744073709551615, priced_block, NULL) AS priced_block,
  if(closed_by = 'void', closed_block, NULL) AS void_block,
  if(swept, closed_block, NULL) AS swept_block, if(swept, toDateTime(closed_ts, 'UTC'), NULL) AS swept_time,
  concat('0x', lower(hex(tx))) AS tx
FROM deposit
;

CREATE VIEW IF NOT EXISTS navlog_g7.withdrawal_events ON CLUSTER main AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
  by, grouped, group_id, group_to, source_id, matures, no_nav, no_assets, no_shares, nav_digits,
  toUInt128(block) * 1099511627776 + toUInt64(log_index) * 256 + sub AS place,
  toFixedString(concat(toFixedString('', 16), reverse(reinterpretAsFixedString(partner))), 20) AS partner_owner
FROM navlog_g7.events
WHERE record = 'log' AND effect != 'none' AND sign = 1 AND seq <= 18446744073709551615 AND NOT passed AND NOT quarantined
  AND seq NOT IN (SELECT retracts FROM navlog_g7.events WHERE sign = -1 AND seq <= 18446744073709551615)
)
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, toString(effect) AS event,
  concat('0x', lower(hex(vault))) AS vault,
  id AS request_id, concat('0x', lower(hex(user))) AS user, concat('0x', lower(hex(other))) AS receiver, partner,
  shares, assets,
  if(expires = 0, NULL, toDateTime64(expires, 0, 'UTC')) AS expires_time, concat('0x', lower(hex(tx))) AS tx
FROM live
WHERE effect IN ('requested', 'funded', 'claimed', 'cancelled', 'expired')
;

CREATE VIEW IF NOT EXISTS navlog_g7.requests ON CLUSTER main AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
  by, grouped, group_id, group_to, source_id, matures, no_nav, no_assets, no_shares, nav_digits,
  toUInt128(block) * 1099511627776 + toUInt64(log_index) * 256 + sub AS place,
  toFixedString(concat(toFixedString('', 16), reverse(reinterpretAsFixedString(partner))), 20) AS partner_owner
FROM navlog_g7.events
WHERE record = 'log' AND effect != 'none' AND sign = 1 AND seq <= 18446744073709551615 AND NOT passed AND NOT quarantined
  AND seq NOT IN (SELECT retracts FROM navlog_g7.events WHERE sign = -1 AND seq <= 18446744073709551615)
), reach AS (
SELECT effect, vault, place, block, ts, assets, shares, bound, before IS NULL OR bound > before AS raises
FROM (
  SELECT effect, vault, place, block, ts, assets, shares,
    max(group_to) OVER (PARTITION BY effect, vault ORDER BY place ROWS UNBOUNDED PRECEDING) AS bound,
    max(toNullable(group_to)) OVER (PARTITION BY effect, vault ORDER BY place
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM live
  WHERE by = 'up_to_group'
)
), exact AS (
SELECT effect, vault, arrayJoin(arrayMap(x -> toUInt64(group_id + x), range(toUInt64(group_to - group_id + 1)))) AS group_id,
  place, block, assets, shares
FROM live
WHERE by = 'group'
), special AS (
SELECT DISTINCT vault
FROM live
WHERE effect = 'requested' AND (grouped OR by != 'none')
), about AS (
SELECT *
FROM live
WHERE effect = 'requested' OR effect IN ('funded', 'claimed', 'cancelled', 'expired') AND by = 'id'
UNION ALL
SELECT e.* REPLACE (s.id AS id, if(s.place = 0, 'none', 'source') AS by)
FROM (SELECT * FROM live WHERE effect IN ('funded', 'claimed', 'cancelled', 'expired') AND by = 'source') AS e
LEFT JOIN (
  SELECT vault, first.2 AS source_id, argMin(id, first.1) AS id, min(first.1) AS place
  FROM (
    SELECT vault, id, argMin((place, source_id), place) AS first
    FROM live
    WHERE effect = 'requested' AND vault IN (SELECT vault FROM live WHERE source_id != toFixedString('', 32))
    GROUP BY vault, id
  )
  WHERE source_id != toFixedString('', 32)
  GROUP BY vault, source_id
) AS s ON e.vault = s.vault AND e.source_id = s.source_id
), keyed AS (
SELECT vault, id, asked.1 AS place, asked.2 AS block, asked.3 AS log_index, asked.4 AS sub, asked.5 AS ts, asked.6 AS user, asked.7 AS other,
  asked.8 AS partner, asked.9 AS partner_owner, asked.10 AS shares, asked.11 AS assets, asked.12 AS expires,
  asked.13 AS hash, asked.14 AS by, asked.15 AS grouped, asked.16 AS group_id, asked.17 AS source_id,
  asked.18 AS matures,
  ended, funding
FROM (
  SELECT vault, id,
    argMinIf((place, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires, tx,
      by, grouped, group_id, source_id, matures), place, effect = 'requested') AS asked,
    arrayFirst(x -> x.1 > asked.1, arraySort(x -> x.1, groupArrayIf(
      (place, block, ts, assets, effect, no_assets), effect IN ('claimed', 'cancelled', 'expired')))) AS ended,
    arrayFirst(x -> x.1 > asked.1 AND (ended.1 = 0 OR x.1 < ended.1), arraySort(x -> x.1,
      groupArrayIf((place, block, ts, assets, no_assets), effect = 'funded'))) AS funding
  FROM about
  WHERE by != 'none' AND effect != 'requested' AND vault IN special OR effect = 'requested' AND vault IN special
  GROUP BY vault, id
  HAVING countIf(effect = 'requested') > 0
)
), settled AS (
SELECT *,
  found.1 > 0 AND (stop.1 = 0 OR found.1 < stop.1) AS is_funded,
  price.1 > 0 AND (stop.1 = 0 OR price.1 < stop.1) AND (NOT is_funded OR price.1 < found.1) AS is_priced,
  multiIf(NOT grouped, 0, is_priced, price.2, 18446744073709551615) AS priced_block,
  price.3 AS price_assets, price.4 AS price_shares,
  if(is_priced, if(price_shares > 0 AND shares >= 0 AND price_assets >= 0, toInt256(arrayMap(q -> if(q < bitShiftLeft(toUInt256(1), 191), q, 0), [arrayFold((acc, piece) -> ( least(acc.1, bitShiftLeft(toUInt256(1), 191)) * toUInt256('18446744073709551616') + least(intDiv(acc.2 * toUInt256('18446744073709551616') + piece * toUInt256(price_assets), toUInt256(greatest(price_shares, 1))), bitShiftLeft(toUInt256(1), 191)), (acc.2 * toUInt256('18446744073709551616') + piece * toUInt256(price_assets)) % toUInt256(greatest(price_shares, 1))), [intDiv(toUInt256(shares), toUInt256('18446744073709551616') * toUInt256('18446744073709551616')), intDiv(toUInt256(shares), toUInt256('18446744073709551616')) % toUInt256('18446744073709551616'), toUInt256(shares) % toUInt256('18446744073709551616')], (toUInt256(0), toUInt256(0))).1])[1]), toInt256(0)), 0) AS priced_assets,
  if(is_funded, found.2, 18446744073709551615) AS funded_block, if(is_funded, found.3, 0) AS funded_ts,
  multiIf(NOT is_funded, 0, single AND NOT funding.5, funding.4, is_priced, priced_assets, assets) AS funded_assets,
  if(is_funded, ended, stop) AS last,
  by = 'fifo' AND is_funded OR by = 'fifo_unfunded' AS in_line,
  if(by = 'fifo', found.1, place) AS line_place
FROM (
  SELECT k.vault AS vault, k.id AS id, k.place AS place, k.block AS block, k.log_index AS log_index, k.sub AS sub, k.ts
    AS ts, k.user AS user, k.other AS other, k.partner AS partner, k.partner_owner AS partner_owner, k.shares AS
    shares, k.assets AS assets, k.expires AS expires, k.hash AS hash, k.by AS by, k.grouped AS grouped, k.group_id
    AS group_id, k.source_id AS source_id, k.matures AS matures, k.ended AS ended, k.funding AS funding,
    if(k.grouped AND cancel.place > 0 AND (k.ended.1 = 0 OR cancel.place < k.ended.1),
      (cancel.place, cancel.block, cancel.ts, toInt256(0), cancel.effect, false), k.ended) AS stop,
    multiIf(NOT k.grouped OR first_reach.place = 0, (toUInt128(0), toUInt64(0), toUInt32(0)),
      first_reach.place > k.place, (first_reach.place, first_reach.block, first_reach.ts),
      (next_reach.place, next_reach.block, next_reach.ts)) AS with_group,
    k.funding.1 > 0 AND (with_group.1 = 0 OR k.funding.1 < with_group.1) AS single,
    if(single, (k.funding.1, k.funding.2, k.funding.3), with_group) AS found,
    multiIf(first_price.place = 0, (toUInt128(0), toUInt64(0), toInt256(0), toInt256(0)),
      first_price.place > k.place, (first_price.place, first_price.block, first_price.assets, first_price.shares),
      (next_price.place, next_price.block, next_price.assets, next_price.shares)) AS price_to,
    multiIf(NOT k.grouped, (toUInt128(0), toUInt64(0), toInt256(0), toInt256(0)),
      exact_price.place > 0 AND (price_to.1 = 0 OR exact_price.place < price_to.1),
      (exact_price.place, exact_price.block, exact_price.assets, exact_price.shares), price_to) AS price
  FROM keyed AS k
  ASOF LEFT JOIN (SELECT * FROM reach WHERE effect = 'funded' AND raises) AS first_reach
    ON k.vault = first_reach.vault AND k.group_id <= first_reach.bound
  ASOF LEFT JOIN (SELECT * FROM reach WHERE effect = 'funded') AS next_reach
    ON k.vault = next_reach.vault AND k.place < next_reach.place
  ASOF LEFT JOIN (SELECT * FROM exact WHERE effect = 'priced_requests') AS exact_price
    ON k.vault = exact_price.vault AND k.group_id = exact_price.group_id AND k.place < exact_price.place
  ASOF LEFT JOIN (SELECT * FROM reach WHERE effect = 'priced_requests' AND raises) AS first_price
    ON k.vault = first_price.vault AND k.group_id <= first_price.bound
  ASOF LEFT JOIN (SELECT * FROM reach WHERE effect = 'priced_requests') AS next_price
    ON k.vault = next_price.vault AND k.place < next_price.place
  ASOF LEFT JOIN (SELECT * FROM live WHERE effect = 'cancelled' AND by = 'owner') AS cancel
    ON k.vault = cancel.vault AND k.user = cancel.user AND k.group_id = cancel.group_id AND k.place < cancel.place
)
), line AS (
SELECT *,
  if(in_line, argMinIf((place, block, ts, last.5), taken, raises)
    OVER (PARTITION BY vault, user ORDER BY if(is_claim, taken, cum_to) DESC, is_claim DESC ROWS UNBOUNDED PRECEDING),
    (toUInt128(0), toUInt64(0), toUInt32(0), last.5)) AS paid
FROM (
  SELECT *, taken > lagInFrame(taken, 1, toInt256(0))
      OVER (PARTITION BY vault, user ORDER BY line_place, place ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS more,
    is_claim AND more AS raises
  FROM (
    SELECT *, claimed - greatest(toInt256(0), max(claimed - cum_to)
      OVER (PARTITION BY vault, user ORDER BY line_place, place ROWS UNBOUNDED PRECEDING)) AS taken
    FROM (
      SELECT *, sumIf(shares, is_claim) OVER so_far AS claimed, sumIf(shares, in_line) OVER so_far AS cum_to
      FROM (
        SELECT vault, id, place, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires,
          hash, by, grouped, group_id, source_id, matures, priced_block, toInt256(priced_assets) AS priced_assets,
          funded_block, funded_ts, funded_assets, last, in_line, line_place, false AS is_claim
        FROM settled
        UNION ALL
        SELECT vault, id, place, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires,
          tx, by, grouped, group_id, source_id, matures, 0, 0, 0, 0, 0, (place, block, ts, assets, effect, false),
          false, place, true
        FROM live
        WHERE effect = 'claimed' AND by = 'owner' OR effect = 'cancelled' AND by = 'fifo'
      )
      WINDOW so_far AS (PARTITION BY vault, user ORDER BY line_place, place ROWS UNBOUNDED PRECEDING)
    )
  )
)
), plain AS (
SELECT vault, id,
  asked.2 AS block, asked.3 AS log_index, asked.4 AS sub, asked.5 AS ts, asked.6 AS user, asked.7 AS other,
  asked.8 AS partner,
  asked.9 AS partner_owner, asked.10 AS shares, asked.11 AS assets, asked.12 AS expires, asked.13 AS hash,
  asked.14 AS source_id, asked.15 AS matures,
  if(funded.1 = 0, 18446744073709551615, funded.2) AS funded_block, funded.3 AS funded_ts,
  if(funded.5, assets, funded.4) AS funded_assets,
  if(closed.1 = 0, 18446744073709551615, closed.2) AS closed_block, closed.3 AS closed_ts,
  if(closed.6, assets, closed.4) AS closed_assets,
  closed.5 AS closed_by
FROM (
  SELECT vault, id,
    argMinIf((place, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires, tx,
      source_id, matures), place, effect = 'requested') AS asked,
    arrayFirst(x -> x.1 > asked.1, arraySort(x -> x.1, groupArrayIf(
      (place, block, ts, assets, effect, no_assets), effect IN ('claimed', 'cancelled', 'expired')))) AS closed,
    arrayFirst(x -> x.1 > asked.1 AND (closed.1 = 0 OR x.1 < closed.1), arraySort(x -> x.1,
      groupArrayIf((place, block, ts, assets, no_assets), effect = 'funded'))) AS funded
  FROM about
  WHERE (by != 'none' OR effect = 'requested') AND vault NOT IN special
  GROUP BY vault, id
  HAVING countIf(effect = 'requested') > 0
)
), request AS (
SELECT vault, id, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires, hash,
  source_id, matures, funded_block, funded_ts, funded_assets, closed_block, closed_ts, closed_assets, closed_by,
  'none' AS by, false AS grouped, 0 AS group_id, 0 AS priced_block, toInt256(0) AS priced_assets,
  toInt256(0) AS cum_from, toInt256(0) AS cum_to
FROM plain
UNION ALL
SELECT vault, id, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires, hash,
  source_id, matures, funded_block, funded_ts, funded_assets, closed.1, closed.2, closed.3, closed.4,
  toString(by), grouped, group_id, priced_block, priced_assets,
  if(in_line, cum_to - shares, 0), if(in_line, cum_to, 0)
FROM (
  SELECT *, multiIf(
    paid.1 > 0 AND (last.1 = 0 OR paid.1 < last.1),
      (paid.2, paid.3, multiIf(paid.4 = 'cancelled', 0, funded_block = 18446744073709551615, assets, funded_assets), toString(paid.4)),
    last.1 > 0, (last.2, last.3, if(last.6, assets, last.4), toString(last.5)),
    (18446744073709551615, toUInt32(0), toInt256(0), 'none')) AS closed
  FROM line
  WHERE NOT is_claim
)
)
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, id AS request_id,
  concat('0x', lower(hex(user))) AS user, concat('0x', lower(hex(other))) AS receiver, partner,
  shares, assets AS estimate,
  if(expires = 0, NULL, toDateTime64(expires, 0, 'UTC')) AS expires_time,
  if(funded_block = 18446744073709551615, NULL, toDateTime(funded_ts, 'UTC')) AS funded_time, funded_assets,
  if(closed_block = 18446744073709551615, NULL, toDateTime(closed_ts, 'UTC')) AS closed_time, closed_assets,
  multiIf(closed_block != 18446744073709551615, toString(closed_by),
    funded_block != 18446744073709551615, 'funded', 'open') AS state,
  concat('0x', lower(hex(hash))) AS tx
FROM request
;

CREATE VIEW IF NOT EXISTS navlog_g7.navs ON CLUSTER main AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
  by, grouped, group_id, group_to, source_id, matures, no_nav, no_assets, no_shares, nav_digits,
  toUInt128(block) * 1099511627776 + toUInt64(log_index) * 256 + sub AS place,
  toFixedString(concat(toFixedString('', 16), reverse(reinterpretAsFixedString(partner))), 20) AS partner_owner
FROM navlog_g7.events
WHERE record = 'log' AND effect != 'none' AND sign = 1 AND seq <= 18446744073709551615 AND NOT passed AND NOT quarantined
  AND seq NOT IN (SELECT retracts FROM navlog_g7.events WHERE sign = -1 AND seq <= 18446744073709551615)
), valued AS (
SELECT block, log_index, sub, ts, vault, user, other, partner, id, id_to, expires, tx,
  if(no_shares, if(no_nav OR no_assets, if(supply > 0, supply, shares), if(nav > 0 AND assets >= 0 AND unit >= 0, toInt256(arrayMap(q -> if(q < bitShiftLeft(toUInt256(1), 191), q, 0), [arrayFold((acc, piece) -> ( least(acc.1, bitShiftLeft(toUInt256(1), 191)) * toUInt256('18446744073709551616') + least(intDiv(acc.2 * toUInt256('18446744073709551616') + piece * toUInt256(unit), toUInt256(greatest(nav, 1))), bitShiftLeft(toUInt256(1), 191)), (acc.2 * toUInt256('18446744073709551616') + piece * toUInt256(unit)) % toUInt256(greatest(nav, 1))), [intDiv(toUInt256(assets), toUInt256('18446744073709551616') * toUInt256('18446744073709551616')), intDiv(toUInt256(assets), toUInt256('18446744073709551616')) % toUInt256('18446744073709551616'), toUInt256(assets) % toUInt256('18446744073709551616')], (toUInt256(0), toUInt256(0))).1])[1]), toInt256(0))), shares) AS all_shares,
  if(no_nav, if(all_shares > 0 AND assets >= 0 AND unit >= 0, toInt256(arrayMap(q -> if(q < bitShiftLeft(toUInt256(1), 191), q, 0), [arrayFold((acc, piece) -> ( least(acc.1, bitShiftLeft(toUInt256(1), 191)) * toUInt256('18446744073709551616') + least(intDiv(acc.2 * toUInt256('18446744073709551616') + piece * toUInt256(unit), toUInt256(greatest(all_shares, 1))), bitShiftLeft(toUInt256(1), 191)), (acc.2 * toUInt256('18446744073709551616') + piece * toUInt256(unit)) % toUInt256(greatest(all_shares, 1))), [intDiv(toUInt256(assets), toUInt256('18446744073709551616') * toUInt256('18446744073709551616')), intDiv(toUInt256(assets), toUInt256('18446744073709551616')) % toUInt256('18446744073709551616'), toUInt256(assets) % toUInt256('18446744073709551616')], (toUInt256(0), toUInt256(0))).1])[1]), toInt256(0)), nav) AS all_nav,
  if(no_assets, if(unit > 0 AND all_nav >= 0 AND all_shares >= 0, toInt256(arrayMap(q -> if(q < bitShiftLeft(toUInt256(1), 191), q, 0), [arrayFold((acc, piece) -> ( least(acc.1, bitShiftLeft(toUInt256(1), 191)) * toUInt256('18446744073709551616') + least(intDiv(acc.2 * toUInt256('18446744073709551616') + piece * toUInt256(all_shares), toUInt256(greatest(unit, 1))), bitShiftLeft(toUInt256(1), 191)), (acc.2 * toUInt256('18446744073709551616') + piece * toUInt256(all_shares)) % toUInt256(greatest(unit, 1))), [intDiv(toUInt256(all_nav), toUInt256('18446744073709551616') * toUInt256('18446744073709551616')), intDiv(toUInt256(all_nav), toUInt256('18446744073709551616')) % toUInt256('18446744073709551616'), toUInt256(all_nav) % toUInt256('18446744073709551616')], (toUInt256(0), toUInt256(0))).1])[1]), toInt256(0)), assets) AS all_assets
FROM (
  SELECT *, sumIf(shares, effect = 'supply') OVER (PARTITION BY vault ORDER BY place ROWS UNBOUNDED PRECEDING) AS supply,
    toInt256(concat('1', repeat('0', nav_digits))) AS unit
  FROM live
  WHERE effect IN ('supply', 'valuation')
)
WHERE effect = 'valuation'
)
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, all_nav AS nav,
  all_assets AS total_assets, all_shares AS total_supply,
  concat('0x', lower(hex(other))) AS updater, concat('0x', lower(hex(tx))) AS tx
FROM valued
;

CREATE VIEW IF NOT EXISTS navlog_g7.sweeps ON CLUSTER main AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
  by, grouped, group_id, group_to, source_id, matures, no_nav, no_assets, no_shares, nav_digits,
  toUInt128(block) * 1099511627776 + toUInt64(log_index) * 256 + sub AS place,
  toFixedString(concat(toFixedString('', 16), reverse(reinterpretAsFixedString(partner))), 20) AS partner_owner
FROM navlog_g7.events
WHERE record = 'log' AND effect != 'none' AND sign = 1 AND seq <= 18446744073709551615 AND NOT passed AND NOT quarantined
  AND seq NOT IN (SELECT retracts FROM navlog_g7.events WHERE sign = -1 AND seq <= 18446744073709551615)
)
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault,
  id AS first_deposit, id_to AS last_deposit, assets,
  concat('0x', lower(hex(other))) AS custodian, concat('0x', lower(hex(tx))) AS tx
FROM live
WHERE effect = 'sweep'
;

CREATE VIEW IF NOT EXISTS navlog_g7.settlements ON CLUSTER main AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
  by, grouped, group_id, group_to, source_id, matures, no_nav, no_assets, no_shares, nav_digits,
  toUInt128(block) * 1099511627776 + toUInt64(log_index) * 256 + sub AS place,
  toFixedString(concat(toFixedString('', 16), reverse(reinterpretAsFixedString(partner))), 20) AS partner_owner
FROM navlog_g7.events
WHERE record = 'log' AND effect != 'none' AND sign = 1 AND seq <= 18446744073709551615 AND NOT passed AND NOT quarantined
  AND seq NOT IN (SELECT retracts FROM navlog_g7.events WHERE sign = -1 AND seq <= 18446744073709551615)
)
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, shares, assets, nav,
  concat('0x', lower(hex(other))) AS funder, concat('0x', lower(hex(tx))) AS tx
FROM live
WHERE effect = 'settled'
;

CREATE VIEW IF NOT EXISTS navlog_g7.users ON CLUSTER main AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
  by, grouped, group_id, group_to, source_id, matures, no_nav, no_assets, no_shares, nav_digits,
  toUInt128(block) * 1099511627776 + toUInt64(log_index) * 256 + sub AS place,
  toFixedString(concat(toFixedString('', 16), reverse(reinterpretAsFixedString(partner))), 20) AS partner_owner
FROM navlog_g7.events
WHERE record = 'log' AND effect != 'none' AND sign = 1 AND seq <= 18446744073709551615 AND NOT passed AND NOT quarantined
  AND seq NOT IN (SELECT retracts FROM navlog_g7.events WHERE sign = -1 AND seq <= 18446744073709551615)
), reach AS (
SELECT effect, vault, place, block, ts, assets, shares, bound, before IS NULL OR bound > before AS raises
FROM (
  SELECT effect, vault, place, block, ts, assets, shares,
    max(group_to) OVER (PARTITION BY effect, vault ORDER BY place ROWS UNBOUNDED PRECEDING) AS bound,
    max(toNullable(group_to)) OVER (PARTITION BY effect, vault ORDER BY place
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM live
  WHERE by = 'up_to_group'
)
), exact AS (
SELECT effect, vault, arrayJoin(arrayMap(x -> toUInt64(group_id + x), range(toUInt64(group_to - group_id + 1)))) AS group_id,
  place, block, assets, shares
FROM live
WHERE by = 'group'
), grouped_deposit AS (
SELECT * EXCEPT (price, price_to, void),
  void.1 > 0 AND (price.1 = 0 OR void.1 < price.1) AS is_void, price.1 > 0 AND NOT is_void AS is_priced,
  price.3 AS price_assets, price.4 AS price_shares,
  if(is_priced, if(price_assets > 0 AND assets >= 0 AND price_shares >= 0, toInt256(arrayMap(q -> if(q < bitShiftLeft(toUInt256(1), 191), q, 0), [arrayFold((acc, piece) -> ( least(acc.1, bitShiftLeft(toUInt256(1), 191)) * toUInt256('18446744073709551616') + least(intDiv(acc.2 * toUInt256('18446744073709551616') + piece * toUInt256(price_shares), toUInt256(greatest(price_assets, 1))), bitShiftLeft(toUInt256(1), 191)), (acc.2 * toUInt256('18446744073709551616') + piece * toUInt256(price_shares)) % toUInt256(greatest(price_assets, 1))), [intDiv(toUInt256(assets), toUInt256('18446744073709551616') * toUInt256('18446744073709551616')), intDiv(toUInt256(assets), toUInt256('18446744073709551616')) % toUInt256('18446744073709551616'), toUInt256(assets) % toUInt256('18446744073709551616')], (toUInt256(0), toUInt256(0))).1])[1]), toInt256(0)), 0) AS shares,
  if(is_priced, price.2, 18446744073709551615) AS priced_block,
  if(is_void, void.2, 18446744073709551615) AS closed_block, if(is_void, void.3, 0) AS closed_ts
FROM (
  SELECT d.block AS block, d.log_index AS log_index, d.sub AS sub, d.ts AS ts, d.vault AS vault, d.user AS user,
    d.other AS other, d.partner AS partner, d.partner_owner AS partner_owner, d.id AS id, d.assets AS assets, d.tx
    AS tx, d.grouped AS grouped, d.group_id AS group_id,
    multiIf(first_price.place = 0, (toUInt128(0), toUInt64(0), toInt256(0), toInt256(0)),
      first_price.place > d.place, (first_price.place, first_price.block, first_price.assets, first_price.shares),
      (next_price.place, next_price.block, next_price.assets, next_price.shares)) AS price_to,
    if(exact_price.place > 0 AND (price_to.1 = 0 OR exact_price.place < price_to.1),
      (exact_price.place, exact_price.block, exact_price.assets, exact_price.shares), price_to) AS price,
    if(by_id.place > 0 AND (by_owner.place = 0 OR by_id.place < by_owner.place),
      (by_id.place, by_id.block, by_id.ts), (by_owner.place, by_owner.block, by_owner.ts)) AS void
  FROM (SELECT * FROM live WHERE effect = 'deposit' AND grouped) AS d
  ASOF LEFT JOIN (SELECT * FROM exact WHERE effect = 'priced_deposits') AS exact_price
    ON d.vault = exact_price.vault AND d.group_id = exact_price.group_id AND d.place < exact_price.place
  ASOF LEFT JOIN (SELECT * FROM reach WHERE effect = 'priced_deposits' AND raises) AS first_price
    ON d.vault = first_price.vault AND d.group_id <= first_price.bound
  ASOF LEFT JOIN (SELECT * FROM reach WHERE effect = 'priced_deposits') AS next_price
    ON d.vault = next_price.vault AND d.place < next_price.place
  ASOF LEFT JOIN (SELECT * FROM live WHERE effect = 'void' AND by = 'id') AS by_id
    ON d.vault = by_id.vault AND d.id = by_id.id AND d.place < by_id.place
  ASOF LEFT JOIN (SELECT * FROM live WHERE effect = 'void' AND by = 'owner') AS by_owner
    ON d.vault = by_owner.vault AND d.user = by_owner.user AND d.group_id = by_owner.group_id
      AND d.place < by_owner.place
)
), about AS (
SELECT *
FROM live
WHERE effect = 'requested' OR effect IN ('funded', 'claimed', 'cancelled', 'expired') AND by = 'id'
UNION ALL
SELECT e.* REPLACE (s.id AS id, if(s.place = 0, 'none', 'source') AS by)
FROM (SELECT * FROM live WHERE effect IN ('funded', 'claimed', 'cancelled', 'expired') AND by = 'source') AS e
LEFT JOIN (
  SELECT vault, first.2 AS source_id, argMin(id, first.1) AS id, min(first.1) AS place
  FROM (
    SELECT vault, id, argMin((place, source_id), place) AS first
    FROM live
    WHERE effect = 'requested' AND vault IN (SELECT vault FROM live WHERE source_id != toFixedString('', 32))
    GROUP BY vault, id
  )
  WHERE source_id != toFixedString('', 32)
  GROUP BY vault, source_id
) AS s ON e.vault = s.vault AND e.source_id = s.source_id
), paid AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, partner_owner, id, shares, assets, tx
FROM live
WHERE effect = 'claimed' AND NOT no_assets OR effect = 'instant'
UNION ALL
SELECT c.effect, c.block, c.log_index, c.sub, c.ts, c.vault, c.user, c.other, c.partner, c.partner_owner, c.given, c.shares,
  if(c.by != 'none' AND q.asked.1 > 0 AND q.asked.1 < c.place, q.asked.2, 0), c.tx
FROM (SELECT *, if(by = 'id', id, 0) AS given FROM about WHERE effect = 'claimed' AND no_assets) AS c
LEFT JOIN (
  SELECT vault, id, argMin((place, assets), place) AS asked
  FROM live
  WHERE effect = 'requested' AND vault IN (SELECT vault FROM live WHERE effect = 'claimed' AND no_assets)
  GROUP BY vault, id
) AS q ON c.vault = q.vault AND c.id = q.id
), member AS (
SELECT scopes.1 AS owner, scopes.2 AS scope, scopes.3 AS ranked, user,
  min(first_block) AS block, argMin(first_ts, first_block) AS ts, sum(deposits) AS deposited, sum(payments) AS withdrawn
FROM (
  SELECT user, first_block, first_ts, deposits, payments,
    toFixedString('', 20) AS everything,
    arrayJoin(arrayConcat([(everything, everything, true), (vault, everything, true)],
      if(through = everything, [], [(through, everything, false), (through, vault, false)]))) AS scopes
  FROM (
    SELECT vault, user, if(what = 'deposit', partner_owner, toFixedString('', 20)) AS through,
      min(if(what IN ('claimed', 'void'), 18446744073709551615, block)) AS first_block,
      argMin(ts, if(what IN ('claimed', 'void'), 18446744073709551615, block)) AS first_ts,
      sum(multiIf(what = 'deposit', assets, what = 'void', -assets, 0)) AS deposits,
      sum(if(what IN ('claimed', 'instant'), assets, 0)) AS payments
    FROM (
      SELECT vault, user, partner_owner, toString(effect) AS what, block, ts, assets
      FROM live
      WHERE effect IN ('deposit', 'requested')
      UNION ALL
      SELECT vault, user, partner_owner, 'void', block, ts, assets
      FROM grouped_deposit
      WHERE is_void
      UNION ALL
      SELECT vault, user, partner_owner, toString(effect), block, ts, assets
      FROM paid
    )
    GROUP BY vault, user, through
  )
)
GROUP BY owner, scope, ranked, user
HAVING block != 18446744073709551615
)
SELECT concat('0x', lower(hex(user))) AS user, toDateTime(ts, 'UTC') AS first_time, block AS first_block,
  deposited, withdrawn
FROM member
WHERE owner = toFixedString('', 20)
;

CREATE TABLE IF NOT EXISTS navlog_g7.lists_draft ON CLUSTER main (
  list Enum8('cursor' = 0, 'vault_events' = 1, 'user_events' = 2, 'partner_events' = 3, 'queue' = 4, 'requests' = 5, 'user_requests' = 6, 'totals' = 7, 'members' = 8, 'first_seen' = 9, 'deposited' = 10, 'withdrawn' = 11, 'blocks' = 12, 'touched' = 13, 'user_totals' = 14, 'groups' = 15, 'request_sources' = 16, 'fifo' = 17, 'cursor_end' = 127),
  owner FixedString(20),
  scope FixedString(20),
  kind Enum8('none' = 0, 'deposit' = 1, 'sweep' = 2, 'settled' = 3, 'valuation' = 4, 'requested' = 5, 'funded' = 6, 'claimed' = 7, 'cancelled' = 8, 'expired' = 9, 'priced_deposits' = 10, 'priced_requests' = 11, 'void' = 12, 'supply' = 13, 'instant' = 14),
  key Int256,
  block UInt64,
  log_index UInt32,
  sub UInt8,
  user FixedString(20),
  sign Int8,
  vault FixedString(20),
  other FixedString(20),
  partner UInt32,
  id UInt64,
  id_to UInt64,
  shares Int256,
  assets Int256,
  nav Int256,
  expires UInt64,
  ts UInt32,
  hash FixedString(32),
  funded_block UInt64,
  funded_ts UInt32,
  funded_assets Int256,
  closed_block UInt64,
  closed_ts UInt32,
  closed_by Enum8('none' = 0, 'deposit' = 1, 'sweep' = 2, 'settled' = 3, 'valuation' = 4, 'requested' = 5, 'funded' = 6, 'claimed' = 7, 'cancelled' = 8, 'expired' = 9, 'priced_deposits' = 10, 'priced_requests' = 11, 'void' = 12, 'supply' = 13, 'instant' = 14),
  closed_assets Int256,
  by Enum8('none' = 0, 'id' = 1, 'source' = 2, 'owner' = 3, 'group' = 4, 'up_to_group' = 5, 'fifo' = 6, 'fifo_unfunded' = 7),
  grouped Bool,
  group_id UInt64,
  source_id FixedString(32),
  matures UInt64,
  priced_block UInt64,
  priced_assets Int256,
  cum_from Int256,
  cum_to Int256,
  deposits UInt64,
  deposited Int256,
  requests UInt64,
  estimated Int256,
  claims UInt64,
  claimed Int256,
  users UInt64,
  swept UInt64,
  swept_assets Int256,
  swept_to UInt64,
  valuations UInt64,
  supply Int256,
  funded_shares Int256,
  claimed_shares Int256,
  funded_to UInt64,
  deposits_to UInt64,
  requests_to UInt64,
  seq UInt64,
  rewrites UInt64,
  writer UInt64,
  touched Array(FixedString(21)),
  INDEX made block TYPE minmax GRANULARITY 1,
  INDEX timed ts TYPE minmax GRANULARITY 1
) ENGINE = ReplicatedCollapsingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', sign) PRIMARY KEY (list, owner, scope, kind, key, block)
ORDER BY (list, owner, scope, kind, key, block, log_index, sub, user)
SETTINGS replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 315360000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 256, min_bytes_for_wide_part = 10000000000, min_rows_for_wide_part = 1000000000;

RENAME TABLE navlog_g7.lists_draft TO navlog_g7.lists ON CLUSTER main;

DROP TABLE IF EXISTS navlog_g7.lists_draft ON CLUSTER main SYNC;

DROP DATABASE IF EXISTS navlog_g7 ON CLUSTER main SYNC;
