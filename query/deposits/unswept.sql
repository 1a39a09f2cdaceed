-- The first deposits with numbers after one of some vaults, in the order of the numbers: of the rows at a place the newest
-- one says whether there is a live log.
SELECT vault, deposit_id, user, sender, partner, assets, shares, block, ts, tx, log_index
FROM (
  SELECT vault, deposit_id, user, sender, partner, assets, shares, block, ts, tx, log_index, sign
  FROM deposits
  WHERE seq <= {seq:UInt64} AND block <= {block:UInt64}
    AND (deposit_id, block, log_index) > ({from_id:UInt64}, {from_block:UInt64}, {from_log:UInt32})
    AND (vault = {vault1:FixedString(20)} AND deposit_id > {after1:UInt64}
    OR vault = {vault2:FixedString(20)} AND deposit_id > {after2:UInt64}
    OR vault = {vault3:FixedString(20)} AND deposit_id > {after3:UInt64}
    OR vault = {vault4:FixedString(20)} AND deposit_id > {after4:UInt64}
    OR vault = {vault5:FixedString(20)} AND deposit_id > {after5:UInt64}
    OR vault = {vault6:FixedString(20)} AND deposit_id > {after6:UInt64})
  ORDER BY vault, deposit_id, block, log_index, seq DESC
  LIMIT 1 BY vault, deposit_id, block, log_index
)
WHERE sign = 1
LIMIT {limit:UInt64}
SETTINGS optimize_use_projections = 0
