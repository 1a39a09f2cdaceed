CREATE DATABASE IF NOT EXISTS navlog_g7 ENGINE = Atomic;

CREATE TABLE IF NOT EXISTS navlog_g7.events (
  seq UInt64 CODEC(Delta, LZ4),
  sub UInt8,
  sign Int8,
  retracts UInt64,
  writer UInt64,
  record Enum8('log' = 0, 'block' = 1, 'vault' = 2, 'decision' = 3),
  event LowCardinality(String),
  effect Enum8('none' = 0, 'deposit' = 1, 'sweep' = 2, 'settled' = 3, 'valuation' = 4, 'requested' = 5, 'funded' = 6, 'claimed' = 7, 'cancelled' = 8, 'expired' = 9),
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
  shares Int256,
  assets Int256,
  nav Int256,
  expires UInt64,
  tx FixedString(32),
  log_index UInt32,
  payload String,
  INDEX named (user, tx) TYPE bloom_filter GRANULARITY 1,
  INDEX numbered seq TYPE minmax GRANULARITY 1
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (record, block) ORDER BY (record, block, seq, sub)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 1024;

CREATE VIEW IF NOT EXISTS navlog_g7.deposits AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
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
), deposit AS (
SELECT d.* EXCEPT (place, effect),
  s.place > 0 AS swept,
  if(swept, greatest(d.block, s.block), 18446744073709551615) AS closed_block,
  multiIf(NOT swept, 0, s.block > d.block, s.ts, d.ts) AS closed_ts
FROM (SELECT * FROM live WHERE effect = 'deposit') AS d
ASOF LEFT JOIN reached AS s ON d.vault = s.vault AND d.id <= s.id_to
)
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, id AS deposit_id,
  concat('0x', lower(hex(user))) AS user, concat('0x', lower(hex(other))) AS sender, partner, assets, shares,
  if(swept, closed_block, NULL) AS swept_block, if(swept, toDateTime(closed_ts, 'UTC'), NULL) AS swept_time,
  concat('0x', lower(hex(tx))) AS tx
FROM deposit
;

CREATE VIEW IF NOT EXISTS navlog_g7.withdrawal_events AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
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

CREATE VIEW IF NOT EXISTS navlog_g7.requests AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
  toUInt128(block) * 1099511627776 + toUInt64(log_index) * 256 + sub AS place,
  toFixedString(concat(toFixedString('', 16), reverse(reinterpretAsFixedString(partner))), 20) AS partner_owner
FROM navlog_g7.events
WHERE record = 'log' AND effect != 'none' AND sign = 1 AND seq <= 18446744073709551615 AND NOT passed AND NOT quarantined
  AND seq NOT IN (SELECT retracts FROM navlog_g7.events WHERE sign = -1 AND seq <= 18446744073709551615)
), request AS (
SELECT vault, id,
  asked.2 AS block, asked.3 AS log_index, asked.4 AS sub, asked.5 AS ts, asked.6 AS user, asked.7 AS other,
  asked.8 AS partner,
  asked.9 AS partner_owner, asked.10 AS shares, asked.11 AS assets, asked.12 AS expires, asked.13 AS hash,
  if(funded.1 = 0, 18446744073709551615, funded.2) AS funded_block, funded.3 AS funded_ts, funded.4 AS funded_assets,
  if(closed.1 = 0, 18446744073709551615, closed.2) AS closed_block, closed.3 AS closed_ts, closed.4 AS closed_assets,
  closed.5 AS closed_by
FROM (
  SELECT vault, id,
    argMinIf((place, block, log_index, sub, ts, user, other, partner, partner_owner, shares, assets, expires, tx),
      place, effect = 'requested') AS asked,
    arrayFirst(x -> x.1 > asked.1, arraySort(x -> x.1,
      groupArrayIf((place, block, ts, assets, effect), effect IN ('claimed', 'cancelled', 'expired')))) AS closed,
    arrayFirst(x -> x.1 > asked.1 AND (closed.1 = 0 OR x.1 < closed.1), arraySort(x -> x.1,
      groupArrayIf((place, block, ts, assets), effect = 'funded'))) AS funded
  FROM live
  WHERE effect IN ('requested', 'funded', 'claimed', 'cancelled', 'expired')
  GROUP BY vault, id
  HAVING countIf(effect = 'requested') > 0
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

CREATE VIEW IF NOT EXISTS navlog_g7.navs AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
  toUInt128(block) * 1099511627776 + toUInt64(log_index) * 256 + sub AS place,
  toFixedString(concat(toFixedString('', 16), reverse(reinterpretAsFixedString(partner))), 20) AS partner_owner
FROM navlog_g7.events
WHERE record = 'log' AND effect != 'none' AND sign = 1 AND seq <= 18446744073709551615 AND NOT passed AND NOT quarantined
  AND seq NOT IN (SELECT retracts FROM navlog_g7.events WHERE sign = -1 AND seq <= 18446744073709551615)
)
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, nav,
  assets AS total_assets, shares AS total_supply,
  concat('0x', lower(hex(other))) AS updater, concat('0x', lower(hex(tx))) AS tx
FROM live
WHERE effect = 'valuation'
;

CREATE VIEW IF NOT EXISTS navlog_g7.sweeps AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
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

CREATE VIEW IF NOT EXISTS navlog_g7.settlements AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
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

CREATE VIEW IF NOT EXISTS navlog_g7.users AS
WITH live AS (
SELECT effect, block, log_index, sub, ts, vault, user, other, partner, id, id_to, shares, assets, nav, expires, tx,
  toUInt128(block) * 1099511627776 + toUInt64(log_index) * 256 + sub AS place,
  toFixedString(concat(toFixedString('', 16), reverse(reinterpretAsFixedString(partner))), 20) AS partner_owner
FROM navlog_g7.events
WHERE record = 'log' AND effect != 'none' AND sign = 1 AND seq <= 18446744073709551615 AND NOT passed AND NOT quarantined
  AND seq NOT IN (SELECT retracts FROM navlog_g7.events WHERE sign = -1 AND seq <= 18446744073709551615)
), member AS (
SELECT scopes.1 AS owner, scopes.2 AS scope, scopes.3 AS ranked, user,
  min(first_block) AS block, argMin(first_ts, first_block) AS ts, sum(deposits) AS deposited, sum(claims) AS withdrawn
FROM (
  SELECT user, first_block, first_ts, deposits, claims,
    toFixedString('', 20) AS everything,
    arrayJoin(arrayConcat([(everything, everything, true), (vault, everything, true)],
      if(through = everything, [], [(through, everything, false), (through, vault, false)]))) AS scopes
  FROM (
    SELECT vault, user, if(effect = 'deposit', partner_owner, toFixedString('', 20)) AS through,
      min(if(effect = 'claimed', 18446744073709551615, block)) AS first_block,
      argMin(ts, if(effect = 'claimed', 18446744073709551615, block)) AS first_ts,
      sum(if(effect = 'deposit', assets, 0)) AS deposits, sum(if(effect = 'claimed', assets, 0)) AS claims
    FROM live
    WHERE effect IN ('deposit', 'requested', 'claimed')
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

CREATE TABLE IF NOT EXISTS navlog_g7.lists_draft (
  list Enum8('cursor' = 0, 'vault_events' = 1, 'user_events' = 2, 'partner_events' = 3, 'queue' = 4, 'requests' = 5, 'user_requests' = 6, 'totals' = 7, 'members' = 8, 'first_seen' = 9, 'deposited' = 10, 'withdrawn' = 11, 'blocks' = 12, 'touched' = 13, 'user_totals' = 14, 'cursor_end' = 127),
  owner FixedString(20),
  scope FixedString(20),
  kind Enum8('none' = 0, 'deposit' = 1, 'sweep' = 2, 'settled' = 3, 'valuation' = 4, 'requested' = 5, 'funded' = 6, 'claimed' = 7, 'cancelled' = 8, 'expired' = 9),
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
  closed_by Enum8('none' = 0, 'deposit' = 1, 'sweep' = 2, 'settled' = 3, 'valuation' = 4, 'requested' = 5, 'funded' = 6, 'claimed' = 7, 'cancelled' = 8, 'expired' = 9),
  closed_assets Int256,
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
  seq UInt64,
  rewrites UInt64,
  writer UInt64,
  touched Array(FixedString(21)),
  INDEX made block TYPE minmax GRANULARITY 1,
  INDEX timed ts TYPE minmax GRANULARITY 1
) ENGINE = CollapsingMergeTree(sign) PRIMARY KEY (list, owner, scope, kind, key, block)
ORDER BY (list, owner, scope, kind, key, block, log_index, sub, user)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 256, min_bytes_for_wide_part = 10000000000, min_rows_for_wide_part = 1000000000;

RENAME TABLE navlog_g7.lists_draft TO navlog_g7.lists;

DROP TABLE IF EXISTS navlog_g7.lists_draft SYNC;

DROP DATABASE IF EXISTS navlog_g7;
