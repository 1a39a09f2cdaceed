-- The deposits that belong to groups, with the first price of the group, and the effect that made the deposit void.
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
