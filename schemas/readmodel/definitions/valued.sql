-- The valuations. Of the amounts that a log does not give, the supply follows from the other two, or is what was minted
-- and burned before, and each of NAV and assets follows from the other.
SELECT block, log_index, sub, ts, vault, user, other, partner, id, id_to, expires, tx,
  if(no_shares, if(no_nav OR no_assets, if(supply > 0, supply, shares), mulDiv(assets, unit, nav)), shares) AS all_shares,
  if(no_nav, mulDiv(assets, unit, all_shares), nav) AS all_nav,
  if(no_assets, mulDiv(all_nav, all_shares, unit), assets) AS all_assets
FROM (
  SELECT *, sumIf(shares, effect = 'supply') OVER (PARTITION BY vault ORDER BY place ROWS UNBOUNDED PRECEDING) AS supply,
    toInt256(concat('1', repeat('0', nav_digits))) AS unit
  FROM live
  WHERE effect IN ('supply', 'valuation')
)
WHERE effect = 'valuation'
