-- The valuations, with the amounts that a log does not give: the supply follows from NAV and assets, or is the sum of
-- earlier mints and burns, unless that sum is no valid amount (below 2^191); NAV and assets each follow from the other.
-- Each amount has its own subquery, because ClickHouse repeats the expression of a column wherever the column is named.
SELECT * EXCEPT (assets, nav), if(no_assets, mulDiv(all_nav, all_shares, unit), assets) AS all_assets
FROM (
  SELECT *, if(no_nav, mulDiv(assets, unit, all_shares), nav) AS all_nav
  FROM (
    SELECT block, log_index, sub, ts, vault, user, other, partner, id, id_to, expires, tx, assets, nav, no_nav, no_assets, unit,
      multiIf(NOT no_shares, shares, NOT no_nav AND NOT no_assets, mulDiv(assets, unit, nav),
        supply > 0 AND supply < bitShiftLeft(toInt256(1), 191), supply, shares) AS all_shares
    FROM (
      SELECT *, toInt256(concat('1', repeat('0', nav_digits))) AS unit, supply_before
        + sumIf(shares, effect = 'supply') OVER (PARTITION BY vault, bucket ORDER BY place ROWS UNBOUNDED PRECEDING) AS supply
      FROM (SELECT *, intDiv(block, {bucket:UInt64}) AS bucket FROM live WHERE effect IN ('supply', 'valuation')) AS values
      INNER JOIN (SELECT scope AS vault, bucket, supply AS supply_before FROM earlier WHERE owner = scope) AS totals_before
        USING (vault, bucket)
    )
    WHERE effect = 'valuation'
  )
)
