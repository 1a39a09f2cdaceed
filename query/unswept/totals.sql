-- How many deposits with numbers after one each of some vaults has, and what they sum up to.
SELECT vault, sum(sign) AS total, sum(sign * assets) AS amount
FROM deposits
WHERE seq <= {seq:UInt64} AND block <= {block:UInt64}
  AND (vault = {vault1:FixedString(20)} AND deposit_id > {after1:UInt64}
    OR vault = {vault2:FixedString(20)} AND deposit_id > {after2:UInt64}
    OR vault = {vault3:FixedString(20)} AND deposit_id > {after3:UInt64}
    OR vault = {vault4:FixedString(20)} AND deposit_id > {after4:UInt64}
    OR vault = {vault5:FixedString(20)} AND deposit_id > {after5:UInt64}
    OR vault = {vault6:FixedString(20)} AND deposit_id > {after6:UInt64})
GROUP BY vault
SETTINGS optimize_use_projections = 0
