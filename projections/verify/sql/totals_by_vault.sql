-- Live deposits, requests and claims of vaults: how many, and their sums.
SELECT concatWithSeparator(' ', lower(hex(vault)), toString(sum(deposits)), toString(sum(deposited)), toString(sum(requests)), toString(sum(estimated)), toString(sum(claims)), toString(sum(claimed)))
FROM (
  SELECT vault, toInt64(sign) AS deposits, sign * assets AS deposited, toInt64(0) AS requests, toInt256(0) AS estimated, toInt64(0) AS claims, toInt256(0) AS claimed
  FROM deposits WHERE seq <= {seq:UInt64} AND {both}
  UNION ALL
  SELECT vault, 0, 0, sign * (kind = 'requested'), sign * (kind = 'requested') * assets, sign * (kind = 'claimed'), sign * (kind = 'claimed') * assets
  FROM withdrawal_events WHERE seq <= {seq:UInt64} AND {both}
)
GROUP BY vault
ORDER BY vault
