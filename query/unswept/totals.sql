-- How many deposits with numbers after one up to another each of some vaults has, what they sum up to, and how many of
-- later blocks are among them.
SELECT vault, sumIf(sign, block <= {block:UInt64}) AS total, sumIf(sign * assets, block <= {block:UInt64}) AS amount,
  sumIf(sign, block > {block:UInt64}) AS later
FROM deposits
WHERE seq <= {seq:UInt64}
  AND (vault = {vault1:FixedString(20)} AND deposit_id > {after1:UInt64} AND deposit_id <= {to1:UInt64}
    OR vault = {vault2:FixedString(20)} AND deposit_id > {after2:UInt64} AND deposit_id <= {to2:UInt64}
    OR vault = {vault3:FixedString(20)} AND deposit_id > {after3:UInt64} AND deposit_id <= {to3:UInt64}
    OR vault = {vault4:FixedString(20)} AND deposit_id > {after4:UInt64} AND deposit_id <= {to4:UInt64}
    OR vault = {vault5:FixedString(20)} AND deposit_id > {after5:UInt64} AND deposit_id <= {to5:UInt64}
    OR vault = {vault6:FixedString(20)} AND deposit_id > {after6:UInt64} AND deposit_id <= {to6:UInt64})
GROUP BY vault
SETTINGS optimize_use_projections = 0
