-- The requests of special vaults, with the results of their funding, price and end.
SELECT *,
  found.1 > 0 AND (stop.1 = 0 OR found.1 < stop.1) AS is_funded,
  price.1 > 0 AND (stop.1 = 0 OR price.1 < stop.1) AND (NOT is_funded OR price.1 < found.1) AS is_priced,
  multiIf(NOT grouped, 0, is_priced, price.2, {never:UInt64}) AS priced_block,
  price.3 AS price_assets, price.4 AS price_shares,
  if(is_priced, mulDiv(shares, price_assets, price_shares), 0) AS priced_assets,
  if(is_funded, found.2, {never:UInt64}) AS funded_block, if(is_funded, found.3, 0) AS funded_ts,
  multiIf(NOT is_funded, 0, single AND NOT funding.5, funding.4, is_priced, priced_assets, assets) AS funded_assets,
  if(is_funded, ended, stop) AS last,
  by = 'fifo' AND is_funded OR by = 'fifo_unfunded' AS in_line,
  if(by = 'fifo', found.1, place) AS line_place
FROM found
