-- How many users vaults have, and the last seq that is in it: by the projection
-- totals up to the 4,096 blocks that the pin is among, and by the logs of those.
SELECT vault, sum(n) AS users, max(last) AS last
FROM (
  SELECT vault, sum(vault_user) AS n, max(seq) AS last
  FROM {db:Identifier}.flows
  WHERE intDiv(block, 4096) < intDiv({edge:UInt64}, 4096) AND vault = {vault:FixedString(20)}
  GROUP BY vault, intDiv(block, 4096)
  UNION ALL
  SELECT vault, sum(vault_user) AS n, toUInt64(0) AS last
  FROM {db:Identifier}.records
  WHERE kind = 'log' AND vault_user != 0 AND vault = {vault:FixedString(20)} AND block >= 4096 * intDiv({edge:UInt64}, 4096)
    AND block <= {block:UInt64} AND seq <= {seq:UInt64}
  GROUP BY vault
)
GROUP BY vault
