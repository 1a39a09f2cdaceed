-- The deposits that belong to groups: whether they became void before the first price of the group, and the resulting
-- price, shares and blocks.
SELECT * EXCEPT (price, price_to, void),
  void.1 > 0 AND (price.1 = 0 OR void.1 < price.1) AS is_void, price.1 > 0 AND NOT is_void AS is_priced,
  price.3 AS price_assets, price.4 AS price_shares,
  if(is_priced, mulDiv(assets, price_shares, price_assets), 0) AS shares,
  if(is_priced, price.2, {never:UInt64}) AS priced_block,
  if(is_void, void.2, {never:UInt64}) AS closed_block, if(is_void, void.3, 0) AS closed_ts
FROM grouped
