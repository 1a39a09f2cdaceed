-- The requests of special vaults, with the effects on their groups: stop ends a request that is not funded, found is
-- the first funding of the request or of its group, and price is the first price of its group.
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
