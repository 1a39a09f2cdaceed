CREATE DATABASE IF NOT EXISTS navlog_g7 ENGINE = Atomic;

CREATE TABLE IF NOT EXISTS navlog_g7.events (
  seq UInt64 CODEC(Delta, LZ4),
  sub UInt8,
  sign Int8,
  retracts UInt64,
  writer UInt64,
  record Enum8('log' = 0, 'block' = 1, 'vault' = 2, 'decision' = 3, 'sample' = 4),
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
) ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY (record, block) ORDER BY (record, block, seq, sub)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 1024;

CREATE TABLE IF NOT EXISTS navlog_g7.lists_draft (
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
  valued_block UInt64,
  valued_log UInt32,
  valued_ts UInt32,
  swept_block UInt64,
  swept_ts UInt32,
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
) ENGINE = CollapsingMergeTree(sign) PRIMARY KEY (list, owner, scope, kind, key, block)
ORDER BY (list, owner, scope, kind, key, block, log_index, sub, user)
SETTINGS non_replicated_deduplication_window = 100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, auto_statistics_types = '', index_granularity = 256, min_bytes_for_wide_part = 10000000000, min_rows_for_wide_part = 1000000000;

RENAME TABLE navlog_g7.lists_draft TO navlog_g7.lists;

CREATE VIEW IF NOT EXISTS navlog_g7.deposits AS
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, id AS deposit_id,
  concat('0x', lower(hex(user))) AS user, concat('0x', lower(hex(other))) AS sender, partner, assets,
  if(priced_block = 18446744073709551615, NULL, shares) AS shares, if(grouped AND priced_block != 18446744073709551615, priced_block, NULL) AS priced_block,
  if(closed_by = 'sweep', closed_block, NULL) AS swept_block,
  if(closed_by = 'sweep', toDateTime(closed_ts, 'UTC'), NULL) AS swept_time,
  concat('0x', lower(hex(hash))) AS tx
FROM navlog_g7.lists FINAL
WHERE list = 'vault_events' AND kind = 'deposit' AND closed_by != 'void'
;

CREATE VIEW IF NOT EXISTS navlog_g7.withdrawal_events AS
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, toString(effect) AS event,
  concat('0x', lower(hex(vault))) AS vault,
  id AS request_id, concat('0x', lower(hex(user))) AS user, concat('0x', lower(hex(other))) AS receiver, partner,
  shares, assets,
  if(expires = 0, NULL, toDateTime64(expires, 0, 'UTC')) AS expires_time, concat('0x', lower(hex(tx))) AS tx
FROM navlog_g7.events
WHERE effect IN ('requested', 'funded', 'cancelled', 'expired') AND sign = 1 AND NOT passed AND NOT quarantined
  AND seq <= (SELECT max(seq) FROM navlog_g7.lists WHERE list = 'cursor')
  AND seq NOT IN (SELECT retracts FROM navlog_g7.events WHERE sign = -1 AND seq <= (SELECT max(seq) FROM navlog_g7.lists WHERE list = 'cursor'))
UNION ALL
SELECT toDateTime(ts, 'UTC'), block, log_index, toString(kind), concat('0x', lower(hex(vault))), id,
  concat('0x', lower(hex(user))), concat('0x', lower(hex(other))), partner, shares, assets, NULL, concat('0x', lower(hex(hash)))
FROM navlog_g7.lists FINAL
WHERE list = 'user_events' AND kind IN ('claimed', 'instant')
;

CREATE VIEW IF NOT EXISTS navlog_g7.requests AS
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, id AS request_id,
  concat('0x', lower(hex(user))) AS user, concat('0x', lower(hex(other))) AS receiver, partner,
  shares, assets AS estimate,
  if(expires = 0, NULL, toDateTime64(expires, 0, 'UTC')) AS expires_time,
  if(funded_block = 18446744073709551615, NULL, toDateTime(funded_ts, 'UTC')) AS funded_time, funded_assets,
  if(closed_block = 18446744073709551615, NULL, toDateTime(closed_ts, 'UTC')) AS closed_time, closed_assets,
  multiIf(closed_block != 18446744073709551615, toString(closed_by),
    funded_block != 18446744073709551615, 'funded', 'open') AS state,
  concat('0x', lower(hex(hash))) AS tx
FROM navlog_g7.lists FINAL
WHERE list = 'requests'
;

CREATE VIEW IF NOT EXISTS navlog_g7.navs AS
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, nav,
  assets AS total_assets, shares AS total_supply,
  concat('0x', lower(hex(other))) AS updater, concat('0x', lower(hex(hash))) AS tx
FROM navlog_g7.lists FINAL
WHERE list = 'vault_events' AND kind = 'valuation'
;

CREATE VIEW IF NOT EXISTS navlog_g7.sweeps AS
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault,
  id AS first_deposit, id_to AS last_deposit, assets,
  concat('0x', lower(hex(other))) AS custodian, concat('0x', lower(hex(hash))) AS tx
FROM navlog_g7.lists FINAL
WHERE list = 'vault_events' AND kind = 'sweep'
;

CREATE VIEW IF NOT EXISTS navlog_g7.settlements AS
SELECT toDateTime(ts, 'UTC') AS time, block, log_index, concat('0x', lower(hex(vault))) AS vault, shares, assets, nav,
  concat('0x', lower(hex(other))) AS funder, concat('0x', lower(hex(tx))) AS tx
FROM navlog_g7.events
WHERE effect = 'settled' AND sign = 1 AND NOT passed AND NOT quarantined
  AND seq <= (SELECT max(seq) FROM navlog_g7.lists WHERE list = 'cursor')
  AND seq NOT IN (SELECT retracts FROM navlog_g7.events WHERE sign = -1 AND seq <= (SELECT max(seq) FROM navlog_g7.lists WHERE list = 'cursor'))
;

CREATE VIEW IF NOT EXISTS navlog_g7.users AS
SELECT concat('0x', lower(hex(user))) AS user, toDateTime(anyIf(ts, list = 'members'), 'UTC') AS first_time,
  anyIf(block, list = 'members') AS first_block,
  anyIf(key, list = 'deposited') AS deposited, anyIf(key, list = 'withdrawn') AS withdrawn
FROM navlog_g7.lists FINAL
WHERE list IN ('members', 'deposited', 'withdrawn') AND owner = toFixedString('', 20)
GROUP BY lists.user
;

DROP TABLE IF EXISTS navlog_g7.lists_draft SYNC;

DROP DATABASE IF EXISTS navlog_g7;
